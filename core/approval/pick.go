package approval

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
)

// reviewed is a run's actions with what the principal decided and saw before.
type reviewed struct {
	runID     string
	actions   []store.Action
	decisions []store.Decision
	seen      *store.Delivery // nil when nothing was shown within core.SeenWithin
	by        core.Principal
}

// review locks the actions that a decision may be about and reads what it depends on.
func (w *work) review(ctx context.Context, d Decide) (*reviewed, error) {
	ws := store.WorkspaceID(w.p.WorkspaceID)
	r := &reviewed{runID: d.RunID, by: w.p}
	var err error
	if d.ActionID != "" {
		a, err := w.tx.LockAction(ctx, ws, d.ActionID)
		if err != nil {
			return nil, err
		}
		r.runID, r.actions = a.RunID, []store.Action{*a}
	} else if r.actions, err = w.tx.LockActionsOfRun(ctx, ws, r.runID); err != nil {
		return nil, err
	}
	if len(r.actions) == 0 {
		if _, err := w.tx.Run(ctx, ws, r.runID); err != nil { // there is none, or it is empty
			return nil, err
		}
	}
	ids := make([]string, len(r.actions))
	for i := range r.actions {
		ids[i] = r.actions[i].ID
	}
	if r.decisions, err = w.tx.DecisionsOf(ctx, ws, ids...); err != nil {
		return nil, err
	}
	if d.ExpectedDigest != "" { // judged alone
		return r, nil
	}
	seen, err := w.tx.Delivery(ctx, ws, w.p.ID, r.runID)
	if err != nil && !core.IsKind(err, core.KindNotFound) {
		return nil, err
	}
	if err == nil && w.now.Sub(seen.At.Time) <= core.SeenWithin {
		r.seen = seen
	}
	return r, nil
}

// mine reports whether the principal said yes to the content in force.
func (r *reviewed) mine(a *store.Action) bool {
	return slices.ContainsFunc(r.decisions, func(d store.Decision) bool { return yes(&d, a) && d.ByID == r.by.ID })
}

// people are those who said yes to the content in force.
func (r *reviewed) people(a *store.Action) map[string]bool {
	who := map[string]bool{}
	for i := range r.decisions {
		if d := &r.decisions[i]; yes(d, a) {
			who[answerable(d)] = true
		}
	}
	return who
}

func yes(d *store.Decision, a *store.Action) bool {
	return d.ActionID == a.ID && d.Decision == core.VerdictApprove && !d.Void && d.Revision == a.Revision && d.Digest == a.Digest
}

// answerable is the person whose word a decision is. A key speaks for its owner, so that
// one person with several credentials is still one person.
func answerable(d *store.Decision) string {
	if d.By.OnBehalfOf != nil && *d.By.OnBehalfOf != "" {
		return *d.By.OnBehalfOf
	}
	return d.ByID
}

// pick selects the actions a decision covers and checks that the principal decides on
// what is there now. It changes nothing.
func (r *reviewed) pick(d Decide) (picks []*store.Action, leftOut []LeftOut, err error) {
	named := map[string]bool{}
	for _, id := range d.ActionIDs {
		named[id] = true
	}
	if d.ActionID != "" {
		named[d.ActionID] = true
	}
	all := len(named) == 0
	for i := range r.actions {
		a := &r.actions[i]
		covered := named[a.ID]
		if all { // what was seen as waiting counts too: what became of it decides the answer
			covered = a.Status.IsWaiting() || r.mine(a) && live(a.Status) || d.ExpectedDigest == "" && r.shown(a.ID) != nil
		}
		delete(named, a.ID)
		switch {
		case !covered:
		case d.ActionID == "" && a.Proof == core.ProofP3:
			leftOut = append(leftOut, LeftOut{a.ID, "It moves money or deletes something and is decided on by itself, with a passkey."})
		default:
			picks = append(picks, a)
		}
	}
	for id := range named {
		return nil, nil, core.Errf(core.KindNotFound, "not_found", "There is no action %s in run %s.", id, r.runID)
	}
	if d.ExpectedDigest != "" {
		return picks, leftOut, r.matches(d, picks)
	}
	return picks, leftOut, r.wasShown(d, picks)
}

// live reports whether an approved action's approval still stands or was used.
func live(s core.ActionStatus) bool {
	switch s {
	case core.ActionStatusRevoked, core.ActionStatusCancelled, core.ActionStatusSuperseded, core.ActionStatusExpired, core.ActionStatusRejected:
		return false
	}
	return true
}

func (r *reviewed) shown(id string) *store.DeliveredAction {
	if r.seen == nil {
		return nil
	}
	for i := range r.seen.Actions {
		if r.seen.Actions[i].ID == id {
			return &r.seen.Actions[i]
		}
	}
	return nil
}

// matches judges a named digest: of the action, of the pack that waits, or of the pack
// as it was before the principal's own earlier yes.
func (r *reviewed) matches(d Decide, picks []*store.Action) error {
	if len(picks) == 1 && d.ExpectedDigest == picks[0].Digest {
		return nil
	}
	if d.ActionID != "" {
		return mismatch("The action is not what the digest names.", picks[0].Digest)
	}
	waits, before := []run.PackItem{}, []run.PackItem{}
	for i := range r.actions {
		a := &r.actions[i]
		item := run.PackItem{ID: a.ID, Revision: a.Revision, Digest: a.Digest}
		if a.Status.IsWaiting() {
			waits = append(waits, item)
		}
		if a.Status.IsWaiting() || r.mine(a) {
			before = append(before, item)
		}
	}
	current := run.PackDigest(waits)
	if d.ExpectedDigest != current && d.ExpectedDigest != run.PackDigest(before) {
		return mismatch("What waits in the run is not what the digest names.", current)
	}
	return nil
}

// wasShown judges a decision without a digest by what was delivered last.
func (r *reviewed) wasShown(d Decide, picks []*store.Action) error {
	for _, a := range picks {
		if r.mine(a) {
			continue
		}
		seen := r.shown(a.ID)
		switch {
		case seen == nil && (r.seen == nil || r.seen.PackDigest == "" || d.ActionID != ""):
			return core.Errf(core.KindUnseen, "not_seen", "What is decided on was not shown to you within the last %d minutes. Read the run or open its review page first, or name the digest.", int(core.SeenWithin.Minutes()))
		case seen == nil, seen.Digest != a.Digest, seen.Revision != a.Revision:
			e := core.Errf(core.KindConflict, "stale_review", "Action %s was changed or added after you looked. Read it again, then decide.", a.ID)
			e.CurrentDigest = a.Digest
			return e
		}
	}
	return nil
}
