package rest

import "net/http"

func (s *server) usageRoutes() []route {
	return []route{{"GET /api/usage", "getUsage", s.getUsage}}
}

func (s *server) getUsage(w http.ResponseWriter, r *http.Request) error {
	u, err := readOf(r.Context(), requestOf(r).principal, s.Usage.Usage)
	if err != nil {
		return err
	}
	return reply(w, u)
}
