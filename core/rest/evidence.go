package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

func (s *server) evidenceRoutes() []route {
	return []route{
		{"GET /api/evidence", "listEvidence", s.listEvidence},
		{"GET /api/evidence/{id}", "getEvidence", s.getEvidence},
	}
}

func (s *server) listEvidence(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Runs.EvidenceOf(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "evidence", page)
}

func (s *server) getEvidence(w http.ResponseWriter, r *http.Request) error {
	e, err := s.Runs.Evidence(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return reply(w, e)
}
