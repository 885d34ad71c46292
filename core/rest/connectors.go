package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core/connector"
)

func (s *server) connectorRoutes() []route {
	return []route{
		{"GET /api/connectors", "listConnectors", s.listConnectors},
		{"PUT /api/connectors/{provider}", "putConnector", s.putConnector},
		{"DELETE /api/connectors/{provider}", "deleteConnector", s.deleteConnector},
		{"POST /api/connectors/{provider}/snapshot", "takeSnapshot", s.takeSnapshot},
		{"POST /api/connectors/{provider}/oauth/start", "startOAuth", s.startOAuth},
		{"GET /api/connectors/{provider}/oauth/callback", "finishOAuth", s.finishOAuth},
	}
}

func (s *server) listConnectors(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Connectors.Catalog(r.Context(), requestOf(r).principal)
	if err != nil {
		return err
	}
	return reply(w, map[string]any{"connectors": orEmpty(all)})
}

func (s *server) putConnector(w http.ResponseWriter, r *http.Request) error {
	var in connector.Credentials
	if err := decode(r, &in); err != nil {
		return err
	}
	c, err := s.Connectors.Put(r.Context(), requestOf(r).principal, chi.URLParam(r, "provider"), in)
	if err != nil {
		return err
	}
	return reply(w, c)
}

func (s *server) deleteConnector(w http.ResponseWriter, r *http.Request) error {
	err := s.Connectors.Delete(r.Context(), requestOf(r).principal, chi.URLParam(r, "provider"), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) takeSnapshot(w http.ResponseWriter, r *http.Request) error {
	shot, err := s.Connectors.Snapshot(r.Context(), requestOf(r).principal, chi.URLParam(r, "provider"))
	if err != nil {
		return err
	}
	return reply(w, shot)
}

func (s *server) startOAuth(w http.ResponseWriter, r *http.Request) error {
	start, err := s.Connectors.OAuthStart(r.Context(), requestOf(r).principal, chi.URLParam(r, "provider"))
	if err != nil {
		return err
	}
	return reply(w, start)
}

// finishOAuth is where the provider sends the browser. What it brings counts only
// together with the state that OAuthStart stored, for the person who is signed in.
func (s *server) finishOAuth(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	back := connector.Callback{State: v.Get("state"), Code: v.Get("code"), Error: v.Get("error"), Issuer: v.Get("iss")}
	if _, err := s.Connectors.OAuthCallback(r.Context(), requestOf(r).principal, chi.URLParam(r, "provider"), back); err != nil {
		return err
	}
	s.goTo(w, "/inbox")
	return nil
}
