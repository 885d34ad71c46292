package approval

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/core/store"
)

// SendMargin is how long after the end of a lease a sender that fell silent might still
// write; only after it is an action of unknown outcome replaced by another.
const SendMargin = time.Minute

// Limits of a lease.
const (
	MinLease = time.Second
	MaxLease = 15 * time.Minute
)

// executor is the principal of the sender in the log.
func executor(owner string, ws store.WorkspaceID) core.Principal {
	return core.Principal{Kind: core.ActorKindJob, ID: owner, Label: "executor", WorkspaceID: string(ws)}
}

// Claim takes an approved action for one executor until the lease ends and returns
// what was approved, after everything it rests on was verified again. From here until
// MarkSending the action is certainly not sent.
//
// Errors are conflicts: not_due (with RetryAfter) and not_claimable mean try later or
// never mind; recheck_failed and void mean that the action ended, because what was
// stored, or what it rests on, is not what was approved. expired is gone.
func (s *Service) Claim(ctx context.Context, actionID, owner string, lease time.Duration) (approved.Effect, error) {
	if owner == "" || lease < MinLease || lease > MaxLease {
		return approved.Effect{}, fmt.Errorf("approval: claim by %q for %s: an owner and a lease of %s to %s are needed", owner, lease, MinLease, MaxLease)
	}
	brief, err := s.d.DB.SystemAction(ctx, actionID)
	if err != nil {
		return approved.Effect{}, err
	}
	var out approved.Effect
	var refusal error // committed: the action ended or waits
	err = s.inTx(ctx, executor(owner, brief.WorkspaceID), func(ctx context.Context, w *work) error {
		out, refusal = approved.Effect{}, nil
		a, err := w.tx.LockAction(ctx, brief.WorkspaceID, actionID)
		if err != nil {
			return err
		}
		if err := w.due(ctx, a); err != nil {
			return err
		}
		o, trouble, err := w.verify(ctx, a)
		if err != nil {
			return err
		}
		if trouble != nil {
			refusal, err = w.giveUp(ctx, a, trouble)
			return err
		}
		a.Generation, a.ClaimedOnce, a.LeaseOwner, a.LeaseUntil = a.Generation+1, true, owner, store.At(w.now.Add(lease))
		a.Attempt, a.NextTryAt = a.Attempt+1, store.Time{}
		if a.StartedAt.IsZero() {
			a.StartedAt = store.At(w.now)
		}
		if err := w.move(ctx, a, core.EventClaim, "A connection is being made; nothing is sent yet.", map[string]any{"generation": a.Generation, "owner": owner}); err != nil {
			return err
		}
		out = approved.New(approved.Content{ActionID: a.ID, WorkspaceID: string(a.WorkspaceID), RunID: a.RunID, Kind: a.Kind, Revision: a.Revision, Digest: o.digest,
			Generation: a.Generation, Owner: owner, LeaseUntil: a.LeaseUntil.Time, NotAfter: a.ExpiresAt.Time, IdempotencyKey: a.IdempotencyKey,
			ContentSHA256: a.ContentSHA256, Resolved: o.resolved})
		return nil
	})
	if err == nil {
		err = refusal
	}
	if err != nil {
		return approved.Effect{}, err
	}
	return out, nil
}

// due refuses to claim what is not approved or whose time has not come. It changes nothing.
func (w *work) due(ctx context.Context, a *store.Action) error {
	if a.Status != core.ActionStatusApproved {
		return core.Errf(core.KindConflict, "not_claimable", "The action is %s.", a.Status)
	}
	if a.Executor == core.ActionExecutorManual {
		return core.Errf(core.KindConflict, "not_claimable", "A person does this action by hand.")
	}
	if !w.now.Before(a.ExpiresAt.Time) {
		return nil // verify says so, and the action ends
	}
	for _, t := range []store.Time{a.ExecuteAt, a.NextTryAt, a.NotBefore} {
		if t.After(w.now) {
			e := core.Errf(core.KindConflict, "not_due", "The action is due at %s.", t.UTC().Format(time.RFC3339))
			e.RetryAfter = t.Sub(w.now)
			return e
		}
	}
	space, err := w.tx.Workspace(ctx, a.WorkspaceID)
	if err != nil {
		return err
	}
	if space.Frozen {
		e := core.Errf(core.KindConflict, "frozen", "Sending is frozen in this workspace.")
		e.RetryAfter = time.Minute
		return e
	}
	for _, id := range a.DependsOn {
		on, err := w.tx.Action(ctx, a.WorkspaceID, id)
		if err != nil {
			return err
		}
		if on.Status != core.ActionStatusSucceeded {
			e := core.Errf(core.KindConflict, "not_due", "The action waits for %s, which is %s.", id, on.Status)
			e.RetryAfter = time.Minute
			return e
		}
	}
	return nil
}

// trouble is why an approved action cannot be sent.
type trouble struct {
	code   string // expired, recheck_failed, changed or waiting
	detail string
}

// verify checks again, on what is stored now, that a person approved exactly this and
// that it still rests on what it rested on.
func (w *work) verify(ctx context.Context, a *store.Action) (*opened, *trouble, error) {
	if !w.now.Before(a.ExpiresAt.Time) {
		return nil, &trouble{"expired", "The approval ended at " + a.ExpiresAt.UTC().Format(time.RFC3339) + "."}, nil
	}
	if !a.SendingAt.IsZero() { // no event leads back here: somebody set the state by hand
		return nil, &trouble{"recheck_failed", "It was handed to the provider before; look there whether it happened."}, nil
	}
	installation, err := w.tx.InstallationID(ctx)
	if err != nil {
		return nil, nil, err
	}
	o, err := check(a, installation)
	if err != nil {
		return nil, &trouble{"recheck_failed", "What is stored is not what was approved: " + err.Error() + "."}, nil
	}
	decisions, err := w.tx.DecisionsOf(ctx, a.WorkspaceID, a.ID)
	if err != nil {
		return nil, nil, err
	}
	if problem := w.s.proven(a, decisions); problem != "" {
		return nil, &trouble{"recheck_failed", problem}, nil
	}
	if t := w.unchanged(a); t != nil {
		return nil, t, nil
	}
	c, err := w.tx.Connection(ctx, a.WorkspaceID, o.resolved.Connection.ID)
	switch {
	case core.IsKind(err, core.KindNotFound):
		return nil, &trouble{"changed", "The connection it was approved for was removed."}, nil
	case err != nil:
		return nil, nil, err
	case c.BindingDigest != o.resolved.Connection.Binding:
		return nil, &trouble{"changed", "The connection leads to another account or address than the one that was approved."}, nil
	case c.Status != core.ConnectorStatusConnected:
		return nil, &trouble{"waiting", "The connection is " + string(c.Status) + "; connect it again."}, nil
	}
	return o, nil, nil
}

// unchanged compares what the plugin declared when it compiled with what it declares now.
func (w *work) unchanged(a *store.Action) *trouble {
	if w.s.d.Plugins == nil {
		return &trouble{"waiting", "The plugins are not loaded yet."}
	}
	manifest, tool, ok := w.s.d.Plugins.CurrentDigests(a.Plugin, a.Tool)
	switch {
	case !ok:
		return &trouble{"waiting", "The plugin " + a.Plugin + " is not loaded."}
	case manifest != a.ManifestDigest || tool != a.ToolDigest:
		return &trouble{"changed", "The plugin " + a.Plugin + " declares something else than when this was approved."}
	}
	return nil
}

// proven says what is missing for a complete, genuine approval; empty when nothing is.
func (s *Service) proven(a *store.Action, decisions []store.Decision) string {
	people := map[string]bool{}
	for i := range decisions {
		d := &decisions[i]
		if d.ActionID != a.ID || d.WorkspaceID != a.WorkspaceID || d.RunID != a.RunID || !s.d.Keys.CheckMAC(macPurpose, d.MAC, macParts(d)...) {
			return "A decision on it was changed in the database."
		}
		if d.Revision != a.Revision {
			continue
		}
		switch d.Decision {
		case core.VerdictReject, core.VerdictRevoke:
			return "A person said no to it."
		case core.VerdictApprove:
			if !d.Void && d.Digest == a.Digest && d.ByID == d.By.ID && rank(d.Proof) >= rank(a.Proof) {
				people[answerable(d)] = true
			}
		}
	}
	if len(people) < max(a.Needed, 1) {
		return "The approvals it needs are not there."
	}
	return ""
}

// giveUp ends an action that may not be sent, or lets it wait, and says so to the executor.
func (w *work) giveUp(ctx context.Context, a *store.Action, t *trouble) (refusal, err error) {
	details := map[string]any{"code": t.code}
	switch {
	case t.code == "waiting":
		a.NextTryAt, a.StatusReason, a.UpdatedAt = store.At(w.now.Add(time.Minute)), t.detail, store.At(w.now)
		e := core.Errf(core.KindConflict, "not_due", "%s", t.detail)
		e.RetryAfter = time.Minute
		if err := w.s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, a.NextTryAt.Time); err != nil {
			return nil, err
		}
		if a.Status != core.ActionStatusApproved { // between claim and mark: back, certainly not sent
			a.LeaseOwner, a.LeaseUntil = "", store.Time{}
			return e, w.move(ctx, a, core.EventConnectFailed, t.detail, details)
		}
		return e, w.tx.UpdateAction(ctx, a)
	case t.code == "expired":
		a.LeaseOwner, a.LeaseUntil = "", store.Time{}
		return expired(a), w.move(ctx, a, core.EventExpire, t.detail, details)
	case t.code == "changed" && !a.ClaimedOnce:
		return core.Errf(core.KindConflict, "void", "%s", t.detail), w.move(ctx, a, core.EventVoid, t.detail+" Propose it anew.", details)
	}
	if a.Status == core.ActionStatusApproved && !a.ClaimedOnce { // the table knows this failure only of what was claimed
		a.Generation, a.ClaimedOnce = a.Generation+1, true
		if err := w.move(ctx, a, core.EventClaim, "Being verified.", map[string]any{"generation": a.Generation}); err != nil {
			return nil, err
		}
	}
	w.fail(a, "recheck_failed", t.detail, false)
	return core.Errf(core.KindConflict, "recheck_failed", "%s", t.detail), w.move(ctx, a, core.EventRecheckFailed, t.detail, details)
}

// fail fills in a definite failure.
func (w *work) fail(a *store.Action, code, message string, retryable bool) {
	a.Outcome, a.FinishedAt, a.LeaseOwner, a.LeaseUntil = string(core.ActionExecutionOutcomeFailed), store.At(w.now), "", store.Time{}
	a.ExecError = &core.ExecutionError{Code: code, Message: message, Retryable: retryable}
}

// held locks the action of an effect and checks that the executor still holds it.
func (w *work) held(ctx context.Context, e approved.Effect, owner string, states ...core.ActionStatus) (*store.Action, error) {
	if !e.Valid() || e.Owner() != owner {
		return nil, fmt.Errorf("approval: the effect was not claimed by %q", owner)
	}
	a, err := w.tx.LockAction(ctx, store.WorkspaceID(e.WorkspaceID()), e.ActionID())
	if err != nil {
		return nil, err
	}
	if a.Generation != e.Generation() {
		return nil, core.Errf(core.KindConflict, "lost", "The action was claimed again in the meantime.")
	}
	for _, s := range states {
		if a.Status == s {
			return a, nil
		}
	}
	return nil, core.Errf(core.KindConflict, "lost", "The action is %s by now.", a.Status)
}

// MarkSending makes durable that the action may be sent from now on. The executor calls
// it when the connection stands and writes the first byte only if it returns nil. A
// signed checkpoint over the log, which holds the approval, is made before.
func (s *Service) MarkSending(ctx context.Context, e approved.Effect, owner string) error {
	if _, err := s.d.Audit.Checkpoint(ctx); err != nil {
		return err
	}
	var refusal error
	err := s.inTx(ctx, executor(owner, store.WorkspaceID(e.WorkspaceID())), func(ctx context.Context, w *work) error {
		refusal = nil
		a, err := w.held(ctx, e, owner, core.ActionStatusClaimed)
		if err != nil {
			return err
		}
		if a.LeaseOwner != owner || !w.now.Before(a.LeaseUntil.Time) {
			return core.Errf(core.KindConflict, "lost", "The lease on the action is over.")
		}
		o, trouble, err := w.verify(ctx, a)
		if err != nil {
			return err
		}
		want := e.Digest()
		if trouble == nil && !bytes.Equal(o.digest[:], want[:]) {
			trouble = mismatched
		}
		if trouble != nil {
			refusal, err = w.giveUp(ctx, a, trouble)
			return err
		}
		a.SendingAt, a.SentSHA256 = store.At(w.now), e.ContentSHA256()
		return w.move(ctx, a, core.EventMarkSending, "Being sent.", map[string]any{"generation": a.Generation, "idempotencyKey": a.IdempotencyKey})
	})
	if err != nil {
		return err
	}
	return refusal
}

var mismatched = &trouble{"recheck_failed", "What the sender holds is not what is stored."}
