package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

// followEvery is how often a page loads itself again after its reader asked for that.
// Without being asked no page does: it would take the place from who reads on.
const followEvery = 3

func (s *Site) inbox(w http.ResponseWriter, r *http.Request, p core.Principal) {
	var waiting []core.Run
	for _, status := range []core.RunStatus{core.RunStatusNeedsAttention, core.RunStatusAwaitingApproval, core.RunStatusPartiallyApproved} {
		runs, err := s.Runs.List(r.Context(), p, core.Query{Status: string(status), Limit: core.MaxLimit})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		waiting = append(waiting, runs.Items...)
	}
	open := 0
	for _, run := range waiting {
		open += openOf(run.Counts)
	}
	pg := page{Title: "Inbox", Section: "inbox", Data: map[string]any{"Runs": waiting, "Open": open}}
	if open > 0 {
		pg.Title = fmt.Sprintf("(%d) Inbox", open)
	}
	s.show(w, r, p, http.StatusOK, "inbox", pg)
}

// openOf counts what waits for a decision.
func openOf(counts core.RunCounts) int {
	return counts[string(core.ActionStatusPending)] + counts[string(core.ActionStatusProposed)]
}

func (s *Site) runs(w http.ResponseWriter, r *http.Request, p core.Principal) {
	runs, err := s.Runs.List(r.Context(), p, core.Query{Cursor: r.URL.Query().Get("cursor")})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, p, http.StatusOK, "runs", page{Title: "Runs", Section: "runs", Data: map[string]any{"Runs": runs.Items, "Next": runs.NextCursor}})
}

func (s *Site) run(w http.ResponseWriter, r *http.Request, p core.Principal) {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	run, err := s.Runs.Get(ctx, p, id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	q := core.Query{RunID: id, Limit: core.MaxLimit}
	assets, err := s.Runs.Assets(ctx, p, q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	evidence, err := s.Runs.EvidenceOf(ctx, p, q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	actions, err := s.Approval.List(ctx, p, q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	moving := run.Status == core.RunStatusCreated || run.Status == core.RunStatusGathering || run.Status == core.RunStatusDrafting || run.Status == core.RunStatusExecuting
	following := moving && r.URL.Query().Get("follow") != ""
	pg := page{Title: "Run: " + shorten(run.Goal), Section: "runs", Data: map[string]any{"Run": run, "Assets": assets.Items, "Evidence": evidence.Items, "MoreEvidence": evidence.NextCursor != "",
		"Actions": inOrder(actions.Items), "Moving": moving, "Following": following}}
	if following {
		pg.Refresh = followEvery
	}
	s.show(w, r, p, http.StatusOK, "run", pg)
}

func (s *Site) audit(w http.ResponseWriter, r *http.Request, p core.Principal) {
	if err := p.Require(core.ScopeAuditRead); err != nil {
		s.fail(w, r, err)
		return
	}
	entries, err := listOf(r.Context(), p, core.Query{Cursor: r.URL.Query().Get("cursor"), Limit: 100}, s.Audit.List)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, p, http.StatusOK, "audit", page{Title: "Audit", Section: "audit", Data: map[string]any{"Entries": entries.Items, "Next": entries.NextCursor}})
}

// listOf lists what belongs to the principal's workspace. The log names workspaces by a
// type of the store, which this package does not know.
func listOf[W ~string, T any](ctx context.Context, p core.Principal, q core.Query, list func(context.Context, W, core.Query) (core.Page[T], error)) (core.Page[T], error) {
	return list(ctx, W(p.WorkspaceID), q)
}
