package rest

import "net/http"

func (s *server) identityRoutes() []route {
	return []route{{"GET /api/me", "getMe", s.getMe}}
}

func (s *server) getMe(w http.ResponseWriter, r *http.Request) error {
	me, err := s.Auth.Me(r.Context(), requestOf(r).principal)
	if err != nil {
		return err
	}
	return reply(w, me)
}
