package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
)

// decision reads what a form decides. Every form carries the digest of what it stands
// below; a post without one was made by no page of ours.
func decision(r *http.Request) (approval.Decide, error) {
	d := approval.Decide{ExpectedDigest: r.PostFormValue("digest"), Reason: strings.TrimSpace(r.PostFormValue("reason")), Channel: "web"}
	switch {
	case d.ExpectedDigest == "":
		return d, core.Errf(core.KindInvalid, "digest_missing", "The form does not say what was decided on. Open the review page and decide there.")
	case chi.URLParam(r, "verb") == "reject" && d.Reason == "":
		return d, core.Errf(core.KindInvalid, "reason_missing", "Say why you reject it: whoever proposed it learns from the reason.")
	}
	return d, nil
}

// decideRun approves or rejects everything of a run that waits, at the digest shown.
func (s *Site) decideRun(w http.ResponseWriter, r *http.Request, p core.Principal) {
	id := chi.URLParam(r, "id")
	d, err := decision(r)
	d.RunID = id
	var out *approval.Outcome
	switch {
	case err != nil:
	case chi.URLParam(r, "verb") == "approve":
		if err = s.wholeRun(r, p, id); err == nil {
			out, err = s.Approval.Approve(r.Context(), p, d)
		}
	default:
		out, err = s.Approval.Reject(r.Context(), p, d)
	}
	s.decided(w, r, p, id, "", said(out), err)
}

// decideAction decides one action, at the digest shown.
func (s *Site) decideAction(w http.ResponseWriter, r *http.Request, p core.Principal) {
	ctx := r.Context()
	act, err := s.Approval.Get(ctx, p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d, err := decision(r)
	d.ActionID = act.ID
	var out *approval.Outcome
	if err == nil {
		switch chi.URLParam(r, "verb") {
		case "approve":
			if err = whole(*act); err == nil {
				out, err = s.Approval.Approve(ctx, p, d)
			}
		case "reject":
			out, err = s.Approval.Reject(ctx, p, d)
		case "revoke":
			out, err = s.Approval.Revoke(ctx, p, d)
		}
	}
	s.decided(w, r, p, act.RunID, act.ID, said(out), err)
}

// whole refuses what the page cannot show whole: nobody can have read it there.
func whole(a core.Action) error {
	v, err := viewOf(a, &budget{left: pageLimit})
	if err == nil && !v.Whole {
		err = notWhole(a.ID)
	}
	return err
}

func (s *Site) wholeRun(r *http.Request, p core.Principal, runID string) error {
	actions, err := s.Approval.List(r.Context(), p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		return err
	}
	page := &budget{left: pageLimit}
	for _, a := range inOrder(actions.Items) {
		v, err := viewOf(a, page)
		if err != nil {
			return err
		}
		if v.CanDecide && !v.Whole {
			return notWhole(a.ID)
		}
	}
	return nil
}

func notWhole(id string) error {
	return core.Errf(core.KindInvalid, "not_shown", "Action %s is too large to be shown whole on a page, so that it cannot be approved here. Read it with `sallyport action show %s` and decide on the command line.", id, id)
}

// said tells what a decision did, with the receipt that its maker may keep.
func said(out *approval.Outcome) string {
	if out == nil {
		return ""
	}
	counts := map[core.ActionStatus]int{}
	for _, a := range out.Actions {
		counts[a.Status]++
	}
	var parts []string
	for _, status := range core.ActionStatuses() {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	text := "Recorded: " + strings.Join(parts, ", ") + "."
	if n := len(out.LeftOut); n > 0 {
		text += fmt.Sprintf(" Left out: %d.", n)
	}
	return fmt.Sprintf("%s Receipt: the audit log then held %d entries with root %s.", text, out.Receipt.TreeSize, out.Receipt.Root)
}

// edit compiles the action again with changed texts: a new revision.
func (s *Site) edit(w http.ResponseWriter, r *http.Request, p core.Principal) {
	ctx := r.Context()
	act, err := s.Approval.Get(ctx, p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d, err := decision(r)
	if err == nil {
		err = s.revise(r, p, act, d.ExpectedDigest)
	}
	s.decided(w, r, p, act.RunID, act.ID, "Saved as a new revision. It needs its own approval.", err)
}

func (s *Site) revise(r *http.Request, p core.Principal, act *core.Action, digest string) error {
	changed := map[string]string{}
	for name, values := range r.PostForm {
		if pointer, ok := strings.CutPrefix(name, "field."); ok && len(values) == 1 {
			changed[pointer] = values[0]
		}
	}
	raw, err := json.Marshal(withTexts(act.Input, changed))
	if err != nil {
		return err
	}
	_, err = s.Tools.Revise(r.Context(), p, act.ID, digest, raw)
	return err
}

// retry stages a new action in the place of one that failed or ran out.
func (s *Site) retry(w http.ResponseWriter, r *http.Request, p core.Principal) {
	act, err := s.Approval.Get(r.Context(), p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	again, err := s.Tools.Retry(r.Context(), p, act.ID)
	anchor := act.ID
	if err == nil {
		anchor = again.ID
	}
	s.decided(w, r, p, act.RunID, anchor, "Drafted again as a new action. It needs its own approval.", err)
}

// done takes a person's word that a manual action was done, with its address.
func (s *Site) done(w http.ResponseWriter, r *http.Request, p core.Principal) {
	act, err := s.Approval.Get(r.Context(), p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	_, err = s.Approval.DoneByHand(r.Context(), p, act.ID, strings.TrimSpace(r.PostFormValue("url")), "")
	s.decided(w, r, p, act.RunID, act.ID, "Recorded as done by hand.", err)
}

// reconcile settles an unknown outcome.
func (s *Site) reconcile(w http.ResponseWriter, r *http.Request, p core.Principal) {
	act, err := s.Approval.Get(r.Context(), p, chi.URLParam(r, "id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	switch happened := r.PostFormValue("happened"); happened {
	case "yes", "no":
		_, err = s.Approval.Reconcile(r.Context(), p, act.ID, happened == "yes", strings.TrimSpace(r.PostFormValue("note")))
	default:
		err = core.Errf(core.KindInvalid, "invalid", "Say whether it was sent or not.")
	}
	s.decided(w, r, p, act.RunID, act.ID, "Settled.", err)
}

// decided goes back to the review page; a decision that failed is explained there,
// above what is in force now.
func (s *Site) decided(w http.ResponseWriter, r *http.Request, p core.Principal, runID, actionID, notice string, err error) {
	if err == nil {
		s.notice(w, p, notice)
		http.Redirect(w, r, "/review/"+runID, http.StatusSeeOther)
		return
	}
	e := core.AsError(err)
	switch {
	case e.Code == "weak_proof":
		back := "/review/" + runID
		if actionID != "" {
			back += "#" + actionID
		}
		http.Redirect(w, r, signInAt(back, true), http.StatusSeeOther)
	case e.Kind == core.KindInternal:
		s.fail(w, r, err)
	default:
		s.showReview(w, r, p, runID, e.Kind.Status(), problemOf(err))
	}
}
