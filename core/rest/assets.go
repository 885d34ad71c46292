package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

func (s *server) assetRoutes() []route {
	return []route{
		{"GET /api/assets", "listAssets", s.listAssets},
		{"GET /api/assets/{id}", "getAsset", s.getAsset},
	}
}

func (s *server) listAssets(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Runs.Assets(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "assets", page)
}

func (s *server) getAsset(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Runs.Asset(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return reply(w, a)
}
