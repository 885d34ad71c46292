package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

func (s *server) webhookRoutes() []route {
	return []route{
		{"GET /api/webhooks", "listWebhooks", s.withHooks(s.listWebhooks)},
		{"POST /api/webhooks", "createWebhook", s.withHooks(s.createWebhook)},
		{"DELETE /api/webhooks/{id}", "deleteWebhook", s.withHooks(s.deleteWebhook)},
	}
}

// withHooks answers for an installation that delivers no events.
func (s *server) withHooks(next handler) handler {
	if s.Hooks != nil {
		return next
	}
	return func(http.ResponseWriter, *http.Request) error {
		return core.Errf(core.KindUnavailable, "webhooks_unavailable", "This installation delivers no events. Follow runs with GET /api/runs/{id}/events.")
	}
}

func (s *server) listWebhooks(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Hooks.List(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "webhooks", page)
}

func (s *server) createWebhook(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		URL    string
		Events []string
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	made, err := s.Hooks.Create(r.Context(), requestOf(r).principal, in.URL, in.Events)
	if err != nil {
		return err
	}
	return reply(w, made)
}

func (s *server) deleteWebhook(w http.ResponseWriter, r *http.Request) error {
	if err := s.Hooks.Delete(r.Context(), requestOf(r).principal, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
