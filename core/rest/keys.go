package rest

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

func (s *server) keyRoutes() []route {
	return []route{
		{"GET /api/keys", "listKeys", s.listKeys},
		{"POST /api/keys", "createKey", s.createKey},
		{"DELETE /api/keys/{id}", "revokeKey", s.revokeKey},
	}
}

func (s *server) listKeys(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Auth.Keys(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "keys", page)
}

func (s *server) createKey(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name      string
		Kind      core.APIKeyKind
		Scopes    []string
		ExpiresAt *time.Time
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	k, err := s.Auth.CreateKey(r.Context(), requestOf(r).principal, auth.NewKey{Name: in.Name, Kind: in.Kind, Scopes: in.Scopes, ExpiresAt: in.ExpiresAt})
	if err != nil {
		return err
	}
	return reply(w, k)
}

func (s *server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	if err := s.Auth.RevokeKey(r.Context(), requestOf(r).principal, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
