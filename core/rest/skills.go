package rest

import "net/http"

func (s *server) skillRoutes() []route {
	return []route{
		{"GET /api/skills", "listSkills", s.listSkills},
		{"GET /api/operators", "listOperators", s.listOperators},
	}
}

func (s *server) listSkills(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{"skills": orEmpty(s.Registry.Snapshot().Skills())})
}

func (s *server) listOperators(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{"operators": orEmpty(s.Registry.Snapshot().Operators())})
}
