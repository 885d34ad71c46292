package rest

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"
)

func (s *server) datasetRoutes() []route {
	return []route{
		{"GET /api/datasets", "listDatasets", s.listDatasets},
		{"POST /api/datasets", "createDataset", s.createDataset},
		{"GET /api/datasets/{id}", "getDataset", s.getDataset},
		{"GET /api/datasets/{id}/rows", "readDataset", s.readDataset},
		{"DELETE /api/datasets/{id}", "deleteDataset", s.deleteDataset},
	}
}

func (s *server) listDatasets(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Datasets.List(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "datasets", page)
}

// createDataset takes the file as it is: its name stands in the address, so that
// uploading needs no wrapping.
func (s *server) createDataset(w http.ResponseWriter, r *http.Request) error {
	rc := requestOf(r)
	d, err := s.Datasets.Create(r.Context(), rc.principal, r.URL.Query().Get("name"), r.Header.Get("Content-Type"), rc.body)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.BaseURL+"/api/datasets/"+d.ID)
	return reply(w, d)
}

func (s *server) getDataset(w http.ResponseWriter, r *http.Request) error {
	d, err := s.Datasets.Get(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return reply(w, d)
}

// readDataset writes all rows as they are read, so that a large dataset is never held
// whole. Once rows are on their way a failure can only cut the reply.
func (s *server) readDataset(w http.ResponseWriter, r *http.Request) error {
	p, id := requestOf(r).principal, chi.URLParam(r, "id")
	if _, err := s.Datasets.Get(r.Context(), p, id); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	const open = `{"rows":[`
	before := open
	err := s.Datasets.Rows(r.Context(), p.WorkspaceID, id, func(rows []json.RawMessage) error {
		for _, row := range rows {
			if _, err := w.Write(append([]byte(before), row...)); err != nil {
				return err
			}
			before = ","
		}
		return nil
	})
	if err != nil && before == open {
		return err
	}
	if err != nil {
		s.Log.Warn("dataset not read to its end", "dataset", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	if before == open {
		_, _ = w.Write([]byte(open))
	}
	_, _ = w.Write([]byte("]}\n"))
	return nil
}

func (s *server) deleteDataset(w http.ResponseWriter, r *http.Request) error {
	if err := s.Datasets.Delete(r.Context(), requestOf(r).principal, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
