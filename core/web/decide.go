package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
)

// decideRun approves or rejects everything of a run that waits, at the digest shown.
func (s *Site) decideRun(w http.ResponseWriter, r *http.Request, p core.Principal) {
	id := chi.URLParam(r, "id")
	d := approval.Decide{RunID: id, ExpectedDigest: r.PostFormValue("digest"), Reason: r.PostFormValue("reason"), Channel: "web"}
	var err error
	if chi.URLParam(r, "verb") == "approve" {
		_, err = s.Approval.Approve(r.Context(), p, d)
	} else {
		_, err = s.Approval.Reject(r.Context(), p, d)
	}
	s.decided(w, r, p, id, err)
}

// decideAction decides one action, at the digest shown.
func (s *Site) decideAction(w http.ResponseWriter, r *http.Request, p core.Principal) {
	ctx := r.Context()
	act, err := s.Approval.Get(ctx, p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d := approval.Decide{ActionID: act.ID, ExpectedDigest: r.PostFormValue("digest"), Reason: r.PostFormValue("reason"), Channel: "web"}
	switch chi.URLParam(r, "verb") {
	case "approve":
		_, err = s.Approval.Approve(ctx, p, d)
	case "reject":
		_, err = s.Approval.Reject(ctx, p, d)
	case "revoke":
		_, err = s.Approval.Revoke(ctx, p, d)
	}
	s.decided(w, r, p, act.RunID, err)
}

// edit compiles the action again with changed texts: a new revision.
func (s *Site) edit(w http.ResponseWriter, r *http.Request, p core.Principal) {
	ctx := r.Context()
	act, err := s.Approval.Get(ctx, p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	input := maps.Clone(act.Input)
	for name, values := range r.PostForm {
		if field, ok := strings.CutPrefix(name, "field."); ok && len(values) == 1 {
			if _, text := input[field].(string); text {
				input[field] = strings.ReplaceAll(values[0], "\r\n", "\n") // browsers send CRLF
			}
		}
	}
	raw, err := json.Marshal(input)
	if err == nil {
		_, err = s.Tools.Revise(ctx, p, act.ID, r.PostFormValue("digest"), raw)
	}
	s.decided(w, r, p, act.RunID, err)
}

// done takes a person's word that a manual action was done, with its address.
func (s *Site) done(w http.ResponseWriter, r *http.Request, p core.Principal) {
	act, err := s.Approval.DoneByHand(r.Context(), p, chi.URLParam(r, "id"), r.PostFormValue("url"), "")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.decided(w, r, p, act.RunID, nil)
}

// reconcile settles an unknown outcome.
func (s *Site) reconcile(w http.ResponseWriter, r *http.Request, p core.Principal) {
	act, err := s.Approval.Reconcile(r.Context(), p, chi.URLParam(r, "id"), r.PostFormValue("happened") == "yes", r.PostFormValue("note"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.decided(w, r, p, act.RunID, nil)
}

// decided goes back to the review page; a decision that failed is explained there,
// above what is in force now.
func (s *Site) decided(w http.ResponseWriter, r *http.Request, p core.Principal, runID string, err error) {
	if err == nil {
		http.Redirect(w, r, "/review/"+runID, http.StatusSeeOther)
		return
	}
	e := core.AsError(err)
	switch {
	case e.Code == "weak_proof":
		http.Redirect(w, r, "/login?again=1&next=/review/"+runID, http.StatusSeeOther)
	case e.Kind == core.KindInternal:
		s.fail(w, r, err)
	default:
		s.showReview(w, r, p, runID, e.Kind.Status(), problemOf(err))
	}
}
