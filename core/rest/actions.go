package rest

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

func (s *server) actionRoutes() []route {
	return []route{
		{"GET /api/actions", "listActions", s.listActions},
		{"GET /api/actions/{id}", "getAction", s.getAction},
		{"PATCH /api/actions/{id}", "editAction", s.editAction},
		{"POST /api/actions/{id}/execute", "executeAction", s.executeAction},
		{"POST /api/actions/{id}/retry", "retryAction", s.retryAction},
		{"POST /api/actions/{id}/done", "reportDone", s.reportDone},
		{"POST /api/actions/{id}/reconcile", "reconcileAction", s.reconcileAction},
	}
}

func (s *server) listActions(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	p := requestOf(r).principal
	page, err := s.Approval.List(r.Context(), p, q)
	// The actions of one run, all of them, are its pack: whoever reads them has seen it.
	// It is remembered, and then read anew, so that a change in between makes the decision stale.
	whole := q.RunID != "" && q.Cursor == "" && q.Status == "" && q.Since.IsZero() && page.NextCursor == ""
	if err == nil && whole && shows(r) {
		if _, err := s.Approval.Deliver(r.Context(), p, q.RunID); err != nil {
			return err
		}
		page, err = s.Approval.List(r.Context(), p, q)
	}
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "actions", page)
}

func (s *server) getAction(w http.ResponseWriter, r *http.Request) error {
	p, id := requestOf(r).principal, chi.URLParam(r, "id")
	if shows(r) { // it counts as seen; remembered first, as with runs
		if err := s.Approval.DeliverAction(r.Context(), p, id); err != nil {
			return err
		}
	}
	a, err := s.Approval.Get(r.Context(), p, id)
	return s.replyAction(w, r, a, err)
}

func (s *server) replyAction(w http.ResponseWriter, r *http.Request, a *core.Action, err error) error {
	if err != nil {
		return err
	}
	return replyTagged(w, r, a.Digest, a)
}

func (s *server) editAction(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Input  json.RawMessage
		Reason string
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	digest, err := digestOf(r, nil)
	if err != nil {
		return err
	}
	a, err := s.Dispatcher.Revise(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"), digest, in.Input)
	return s.replyAction(w, r, a, err)
}

func (s *server) executeAction(w http.ResponseWriter, r *http.Request) error {
	p, id := requestOf(r).principal, chi.URLParam(r, "id")
	digest, err := digestOf(r, nil)
	if err != nil {
		return err
	}
	if digest != "" {
		current, err := s.Approval.Get(r.Context(), p, id)
		if err != nil {
			return err
		}
		if current.Digest != digest {
			e := core.Errf(core.KindPrecondition, "digest_mismatch", "The action has another digest than the one named. Read it again.")
			e.CurrentDigest = current.Digest
			return e
		}
	}
	a, err := s.Approval.Execute(r.Context(), p, id)
	return s.replyAction(w, r, a, err)
}

func (s *server) retryAction(w http.ResponseWriter, r *http.Request) error {
	a, err := s.Dispatcher.Retry(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"))
	return s.replyAction(w, r, a, err)
}

func (s *server) reportDone(w http.ResponseWriter, r *http.Request) error {
	var in struct{ ProofURL, Note string }
	if err := decode(r, &in); err != nil {
		return err
	}
	a, err := s.Approval.DoneByHand(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"), in.ProofURL, in.Note)
	return s.replyAction(w, r, a, err)
}

func (s *server) reconcileAction(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Happened bool
		Note     string
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	a, err := s.Approval.Reconcile(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"), in.Happened, in.Note)
	return s.replyAction(w, r, a, err)
}
