package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// sweepBatch is how many actions one sweep looks at.
const sweepBatch = 200

// each runs fn on some actions, each in its own transaction, and counts those it
// changed. One that somebody else changed meanwhile is left to the next sweep.
func (s *Service) each(ctx context.Context, who string, actions []store.Action, fn func(ctx context.Context, w *work, a *store.Action) (changed bool, err error)) (int, error) {
	n := 0
	for _, brief := range actions {
		changed := false
		err := s.inTx(ctx, system(who, brief.WorkspaceID), func(ctx context.Context, w *work) error {
			a, err := w.tx.LockAction(ctx, brief.WorkspaceID, brief.ID)
			if err != nil {
				return err
			}
			changed, err = fn(ctx, w, a)
			return err
		})
		if err != nil && !store.IsChanged(err) {
			return n, err
		}
		if err == nil && changed {
			n++
		}
	}
	return n, nil
}

// ExpireDue ends actions that were not decided on, or not sent, in time. It returns how
// many it ended.
func (s *Service) ExpireDue(ctx context.Context) (int, error) {
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return 0, err
	}
	due, err := s.d.DB.SystemOverdueActions(ctx, now, sweepBatch)
	if err != nil {
		return 0, err
	}
	return s.each(ctx, "deadline", due, overdue)
}

func overdue(ctx context.Context, w *work, a *store.Action) (bool, error) {
	if _, err := core.NextActionStatus(a.Status, core.EventExpire); err != nil || a.Status == core.ActionStatusClaimed || w.now.Before(a.ExpiresAt.Time) {
		return false, nil // decided in the meantime; what is claimed is its executor's
	}
	return true, w.move(ctx, a, core.EventExpire, "Nobody decided, or nothing could be sent, before the deadline.", nil)
}

// expire ends actions a caller found overdue; failing to do so leaves it to the sweep.
func (s *Service) expire(ctx context.Context, workspaceID string, ids []string) {
	rows := []store.Action{}
	for _, id := range ids {
		rows = append(rows, store.Action{ID: id, WorkspaceID: store.WorkspaceID(workspaceID)})
	}
	_, _ = s.each(ctx, "deadline", rows, overdue)
}

// SweepLeases takes actions back from executors that fell silent: a claimed one was
// certainly not sent and is approved again, a sending one is unknown.
func (s *Service) SweepLeases(ctx context.Context) (int, error) {
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return 0, err
	}
	ended, err := s.d.DB.SystemEndedLeases(ctx, now, sweepBatch)
	if err != nil {
		return 0, err
	}
	return s.each(ctx, "lease sweep", ended, func(ctx context.Context, w *work, a *store.Action) (bool, error) {
		if _, err := core.NextActionStatus(a.Status, core.EventLeaseEnded); err != nil || w.now.Before(a.LeaseUntil.Time) {
			return false, nil
		}
		details := map[string]any{"owner": a.LeaseOwner, "generation": a.Generation}
		if a.Status == core.ActionStatusClaimed {
			a.LeaseOwner, a.LeaseUntil = "", store.Time{}
			if err := s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, w.now); err != nil {
				return false, err
			}
			return true, w.move(ctx, a, core.EventLeaseEnded, "The sender fell silent before anything was sent; it is tried again.", details)
		}
		// LeaseUntil stays: it tells when the sender is certainly dead.
		a.Outcome, a.ExecError = string(core.ActionExecutionOutcomeUnknown), &core.ExecutionError{Code: "sender_silent", Message: "The sender fell silent while sending."}
		return true, w.move(ctx, a, core.EventLeaseEnded, "The sender fell silent while sending; look at the provider, then say whether it happened.", details)
	})
}

// WakeDue enqueues approved actions whose time has come, in case a job was lost. It
// returns how many it woke.
func (s *Service) WakeDue(ctx context.Context) (int, error) {
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return 0, err
	}
	due, err := s.d.DB.SystemDueActions(ctx, now, sweepBatch)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	return len(due), s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, a := range due {
			if err := s.d.Enqueue.EnqueueExecute(ctx, tx, a.ID, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// Recover is for a database that is older than its anchor, as a restored backup is:
// what it holds as approved may have been sent after the backup was made. All of that
// becomes unknown; what waits for a decision carries a warning.
func (s *Service) Recover(ctx context.Context, reason string) (int, error) {
	total, after := 0, ""
	for {
		rows, err := s.d.DB.SystemActionsIn(ctx, after, sweepBatch, core.ActionStatusPending, core.ActionStatusApproved, core.ActionStatusClaimed, core.ActionStatusSending)
		if err != nil || len(rows) == 0 {
			return total, err
		}
		after = rows[len(rows)-1].ID
		n, err := s.each(ctx, "recovery", rows, func(ctx context.Context, w *work, a *store.Action) (bool, error) {
			if a.Status == core.ActionStatusPending {
				a.StatusReason, a.UpdatedAt = "The database was restored; look whether this was sent before.", store.At(w.now)
				w.touch(a.RunID)
				return false, w.tx.UpdateAction(ctx, a)
			}
			if _, err := core.NextActionStatus(a.Status, core.EventRestored); err != nil || a.Executor == core.ActionExecutorManual {
				return false, nil
			}
			a.Outcome, a.LeaseOwner = string(core.ActionExecutionOutcomeUnknown), ""
			a.ExecError = &core.ExecutionError{Code: "restored", Message: reason}
			return true, w.move(ctx, a, core.EventRestored, "restored: "+reason, nil)
		})
		total += n
		if err != nil {
			return total, err
		}
	}
}

// Void cancels an action because what it rests on changed and compiling it again was
// not possible; one that was claimed once fails instead. Approvals are void with it.
func (s *Service) Void(ctx context.Context, workspaceID, actionID, reason string) error {
	ws := store.WorkspaceID(workspaceID)
	return s.inTx(ctx, system("changed", ws), func(ctx context.Context, w *work) error {
		a, err := w.tx.LockAction(ctx, ws, actionID)
		if err != nil {
			return err
		}
		if a.ClaimedOnce && a.Status == core.ActionStatusApproved {
			w.fail(a, "changed", reason, false)
			return w.move(ctx, a, core.EventRecheckFailed, reason, nil)
		}
		return w.move(ctx, a, core.EventVoid, reason, nil)
	})
}

// supersede marks the action that a new one replaces; nil when it replaces none.
func (w *work) supersede(ctx context.Context, a *store.Action, in Proposal) (*store.Action, error) {
	if in.Supersedes == "" {
		return nil, nil
	}
	old, err := w.tx.LockAction(ctx, a.WorkspaceID, in.Supersedes)
	if err != nil {
		return nil, err
	}
	if old.RunID != a.RunID {
		return nil, core.Errf(core.KindInvalid, "invalid_proposal", "Action %s belongs to another run.", old.ID)
	}
	if err := replaceable(old, w.now); err != nil {
		return nil, err
	}
	kept := *old
	old.SupersededBy = a.ID
	return &kept, w.move(ctx, old, core.EventSupersede, "Replaced by "+a.ID+".", map[string]any{"supersededBy": a.ID})
}

// replaceable refuses to replace an action that may still be sent.
func replaceable(a *store.Action, now time.Time) error {
	if _, err := core.NextActionStatus(a.Status, core.EventSupersede); err != nil {
		return err
	}
	return senderDead(a, now)
}

// senderDead refuses while a sender that fell silent may still write: until its lease
// and a margin are over. An executor that reported back has given its lease up.
func senderDead(a *store.Action, now time.Time) error {
	until := a.LeaseUntil.Add(SendMargin)
	if a.LeaseUntil.IsZero() || !now.Before(until) {
		return nil
	}
	e := core.Errf(core.KindConflict, "sender_alive", "The sender of action %s may still be at work. Try again after %s.", a.ID, until.UTC().Format(time.RFC3339))
	e.RetryAfter = until.Sub(now)
	return e
}

// sameSteps reports whether two actions would send the same bytes to the same account.
func sameSteps(old, a *store.Action) bool {
	was, err := effect.Decode(old.Sealed)
	if err != nil {
		return false
	}
	is, err := effect.Decode(a.Sealed)
	if err != nil {
		return false
	}
	before, err1 := json.Marshal(was.Steps)
	after, err2 := json.Marshal(is.Steps)
	return err1 == nil && err2 == nil && bytes.Equal(before, after) && bytes.Equal(old.Connection, a.Connection) && bytes.Equal(old.Endpoints, a.Endpoints) && len(is.Steps) > 0
}
