package web

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

// reviewData is what the review page shows of a run.
type reviewData struct {
	Run     *core.Run
	Actions []actionView
	// Open is how many wait; Coverable how many one approval of the run covers, 0 where
	// not all of what waits is on the page.
	Open, Coverable      int
	MayApprove, MayWrite bool
	Following, Moving    bool
	Timeline             []moment
}

// moment is a line of the timeline.
type moment struct {
	At   time.Time
	Text string
}

func (s *Site) review(w http.ResponseWriter, r *http.Request, p core.Principal) {
	s.showReview(w, r, p, chi.URLParam(r, "id"), http.StatusOK, nil)
}

// showReview shows a run for decision, with a problem above it when a decision failed.
func (s *Site) showReview(w http.ResponseWriter, r *http.Request, p core.Principal, runID string, status int, pr *problem) {
	ctx := r.Context()
	// Remember what is shown before reading it: a change in between makes the decision stale, never unseen.
	if _, err := s.Approval.Deliver(ctx, p, runID); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Runs.Get(ctx, p, runID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	actions, err := s.Approval.List(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	views, err := s.actionViews(r, p, runID, actions.Items)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d := reviewData{Run: run, Actions: views, MayApprove: p.Can(core.ScopeActionsApprove), MayWrite: p.Can(core.ScopeRunsWrite), Timeline: timeline(run, actions.Items)}
	d.Open, d.Coverable = tally(views)
	for _, a := range actions.Items {
		d.Moving = d.Moving || a.Status == core.ActionStatusClaimed || a.Status == core.ActionStatusSending || a.Status == core.ActionStatusApproved && a.Executor == core.ActionExecutorConnector
	}
	pg := page{Title: "Review: " + shorten(run.Goal), Section: "inbox", Problem: pr, Data: &d}
	if d.Open > 0 {
		pg.Title = fmt.Sprintf("(%d) %s", d.Open, pg.Title)
	}
	if d.Moving && r.Method == http.MethodGet && r.URL.Query().Get("follow") != "" {
		d.Following, pg.Refresh = true, followEvery
	}
	s.show(w, r, p, status, "review", pg)
}

// tally counts what waits, and what one approval of the run would cover: all of it but
// what is decided on by itself, and nothing where something is not on the page.
func tally(views []actionView) (open, coverable int) {
	whole := true
	for _, v := range views {
		if !v.CanDecide {
			continue
		}
		open++
		whole = whole && v.Whole
		if v.Policy.Proof != core.ActionPolicyProofP3 {
			coverable++
		}
	}
	if !whole {
		coverable = 0
	}
	return open, coverable
}

func (s *Site) actionViews(r *http.Request, p core.Principal, runID string, actions []core.Action) ([]actionView, error) {
	ctx := r.Context()
	assets, err := s.Runs.Assets(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		return nil, err
	}
	drafts := map[string]core.Asset{}
	for _, a := range assets.Items {
		drafts[a.ID] = a
	}
	found, err := s.Runs.EvidenceOf(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		return nil, err
	}
	evidence := map[string]core.Evidence{}
	for _, e := range found.Items {
		evidence[e.ID] = e
	}
	room := &budget{left: pageLimit}
	views := make([]actionView, 0, len(actions))
	for _, a := range inOrder(actions) {
		v, err := viewOf(a, room)
		if err != nil {
			return nil, err
		}
		for _, ref := range a.AssetRefs {
			draft := drafts[ref.ID]
			if risk := draft.GenericityRisk; risk != nil && (v.Genericity == nil || risk.Score > v.Genericity.Score) {
				v.Genericity = risk
			}
			v.addClaims(draft)
		}
		for _, id := range a.EvidenceIds {
			e, ok := evidence[id]
			if !ok { // a run may have more than a page of it
				one, err := s.Runs.Evidence(ctx, p, id)
				if core.IsKind(err, core.KindNotFound) {
					continue
				}
				if err != nil {
					return nil, err
				}
				e = *one
			}
			v.Evidence = append(v.Evidence, e)
		}
		views = append(views, v)
	}
	return views, nil
}

// addClaims sorts the claims of a draft into those that hold and those that do not; the
// drafts of one action often make the same one.
func (v *actionView) addClaims(a core.Asset) {
	for _, c := range a.Claims {
		list := &v.Doubtful
		switch c.Verdict {
		case core.AssetClaimsElemVerdictNotAClaim:
			continue
		case core.AssetClaimsElemVerdictSupported:
			list = &v.Supported
		}
		if !slices.ContainsFunc(*list, func(other core.Claim) bool { return other.Text == c.Text && other.Verdict == c.Verdict }) {
			*list = append(*list, c)
		}
	}
}

func timeline(run *core.Run, actions []core.Action) []moment {
	out := []moment{{run.CreatedAt, "Asked by " + run.CreatedBy.Label}}
	for _, a := range actions {
		out = append(out, moment{a.CreatedAt, "Proposed: " + a.Title})
		for _, d := range a.Decisions {
			out = append(out, moment{d.At, fmt.Sprintf("%s by %s: %s", sentence(d.Decision), d.By.Label, a.Title)})
		}
		if x := a.Execution; x != nil && x.FinishedAt != nil {
			out = append(out, moment{*x.FinishedAt, fmt.Sprintf("%s: %s", sentence(a.Status), a.Title)})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}
