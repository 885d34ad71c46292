package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Sent is what became of a send.
type Sent struct {
	// Outcome is succeeded where the success predicate holds, failed where it is certain
	// that nothing happened, unknown in every other case.
	Outcome     core.ActionExecutionOutcome
	ExternalID  string
	ExternalURL string
	// ContentSHA256 are the hashes of what was handed to the wire; those of the approved
	// content where empty.
	ContentSHA256 []string
	// StepsDone is the number of steps that certainly succeeded.
	StepsDone int
	// Steps is what is known of each step, as JSON; may be empty.
	Steps json.RawMessage
	Error *core.ExecutionError
}

// Record writes the outcome of a send. It takes a late one too: of an action that was
// given up as unknown meanwhile, and, as a note only, of one that was superseded.
func (s *Service) Record(ctx context.Context, e approved.Effect, owner string, o Sent) (*core.Action, error) {
	var out *core.Action
	err := s.inTx(ctx, executor(owner, store.WorkspaceID(e.WorkspaceID())), func(ctx context.Context, w *work) error {
		a, err := w.held(ctx, e, owner, core.ActionStatusSending, core.ActionStatusUnknown, core.ActionStatusSuperseded)
		if err != nil {
			return err
		}
		late := a.Status != core.ActionStatusSending
		details := map[string]any{"outcome": string(o.Outcome), "late": late, "externalId": o.ExternalID, "stepsDone": o.StepsDone}
		if o.Error != nil {
			details["code"] = o.Error.Code
		}
		put(a, o, w.now)
		switch {
		case a.Status == core.ActionStatusSuperseded, late && o.Outcome == core.ActionExecutionOutcomeUnknown:
			a.UpdatedAt = store.At(w.now)
			if err := w.tx.UpdateAction(ctx, a); err != nil {
				return err
			}
			w.touch(a.RunID)
			w.log("action.late_reply", a.ID, details)
		case o.Outcome == core.ActionExecutionOutcomeSucceeded:
			if err := w.move(ctx, a, core.EventReplyOK, "The provider confirmed it.", details); err != nil {
				return err
			}
			if err := w.release(ctx, a); err != nil {
				return err
			}
		case o.Outcome == core.ActionExecutionOutcomeFailed:
			if err := w.move(ctx, a, core.EventRefused, said(o, "The provider refused it; nothing happened."), details); err != nil {
				return err
			}
		default:
			if err := w.move(ctx, a, core.EventUncertain, said(o, "It is not certain whether it happened."), details); err != nil {
				return err
			}
		}
		decisions, err := w.tx.DecisionsOf(ctx, a.WorkspaceID, a.ID)
		if err != nil {
			return err
		}
		out, err = s.resource(a, decisions)
		return err
	})
	return out, err
}

func said(o Sent, otherwise string) string {
	if o.Error != nil && o.Error.Message != "" {
		return o.Error.Message
	}
	return otherwise
}

func put(a *store.Action, o Sent, now time.Time) {
	a.Outcome, a.FinishedAt, a.ExecError, a.StepsDone = string(o.Outcome), store.At(now), o.Error, o.StepsDone
	a.LeaseOwner, a.LeaseUntil = "", store.Time{}
	if o.ExternalID != "" {
		a.ExternalID = o.ExternalID
	}
	if o.ExternalURL != "" {
		a.ExternalURL = o.ExternalURL
	}
	if len(o.ContentSHA256) > 0 {
		a.SentSHA256 = o.ContentSHA256
	}
	if len(o.Steps) > 0 {
		a.Steps = store.JSON(o.Steps)
	}
}

// StepDone records that a step certainly succeeded and lengthens the lease for the
// next. Only if it returns nil may the next step begin.
func (s *Service) StepDone(ctx context.Context, e approved.Effect, owner string, done int, steps json.RawMessage, lease time.Duration) error {
	return s.inTx(ctx, executor(owner, store.WorkspaceID(e.WorkspaceID())), func(ctx context.Context, w *work) error {
		a, err := w.held(ctx, e, owner, core.ActionStatusSending)
		if err != nil {
			return err
		}
		a.StepsDone, a.LeaseUntil, a.UpdatedAt = done, store.At(w.now.Add(min(lease, MaxLease))), store.At(w.now)
		if len(steps) > 0 {
			a.Steps = store.JSON(steps)
		}
		if err := w.tx.UpdateAction(ctx, a); err != nil {
			return err
		}
		w.touch(a.RunID)
		w.log("action.step_done", a.ID, map[string]any{"runId": a.RunID, "step": done, "generation": a.Generation})
		return nil
	})
}

// backOff is how long to wait after each failed try to connect.
var backOff = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// ReturnToApproved gives a claimed action back because no connection came about: it is
// certain that nothing was sent. After the fifth try it fails; then retryAt is zero.
func (s *Service) ReturnToApproved(ctx context.Context, e approved.Effect, owner, reason string) (retryAt time.Time, err error) {
	err = s.inTx(ctx, executor(owner, store.WorkspaceID(e.WorkspaceID())), func(ctx context.Context, w *work) error {
		retryAt = time.Time{}
		a, err := w.held(ctx, e, owner, core.ActionStatusClaimed)
		if err != nil {
			return err
		}
		a.ConnectTries++
		if a.ConnectTries >= core.MaxConnectTries {
			w.fail(a, "connect_failed", reason, true)
			return w.move(ctx, a, core.EventRecheckFailed, "No connection in five tries: "+reason, map[string]any{"code": "connect_failed", "tries": a.ConnectTries})
		}
		retryAt = w.now.Add(backOff[a.ConnectTries-1])
		a.NextTryAt, a.LeaseOwner, a.LeaseUntil = store.At(retryAt), "", store.Time{}
		if err := w.s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, retryAt); err != nil {
			return err
		}
		return w.move(ctx, a, core.EventConnectFailed, "No connection; it is tried again: "+reason, map[string]any{"tries": a.ConnectTries})
	})
	return retryAt, err
}

// FailClaim ends a claimed action that must not be sent, for example because a
// precondition no longer holds or the effect cannot be signed. Nothing was sent.
func (s *Service) FailClaim(ctx context.Context, e approved.Effect, owner, code, message string) error {
	return s.inTx(ctx, executor(owner, store.WorkspaceID(e.WorkspaceID())), func(ctx context.Context, w *work) error {
		a, err := w.held(ctx, e, owner, core.ActionStatusClaimed)
		if err != nil {
			return err
		}
		w.fail(a, code, message, false)
		return w.move(ctx, a, core.EventRecheckFailed, message, map[string]any{"code": code})
	})
}

// Found settles an action of unknown outcome by a look-up that found our own marker.
func (s *Service) Found(ctx context.Context, actionID, externalID, externalURL string) error {
	brief, err := s.d.DB.SystemAction(ctx, actionID)
	if err != nil {
		return err
	}
	return s.inTx(ctx, system("look-up", brief.WorkspaceID), func(ctx context.Context, w *work) error {
		a, err := w.tx.LockAction(ctx, brief.WorkspaceID, actionID)
		if err != nil {
			return err
		}
		a.Outcome, a.FinishedAt, a.ExternalID, a.ExternalURL, a.ExecError = string(core.ActionExecutionOutcomeSucceeded), store.At(w.now), externalID, externalURL, nil
		if err := w.move(ctx, a, core.EventFound, "It was found at the provider by its marker.", map[string]any{"externalId": externalID}); err != nil {
			return err
		}
		return w.release(ctx, a)
	})
}

// release wakes the approved actions that waited for one that succeeded.
func (w *work) release(ctx context.Context, done *store.Action) error {
	others, err := w.tx.ActionsOfRun(ctx, done.WorkspaceID, done.RunID)
	if err != nil {
		return err
	}
	for i := range others {
		a := &others[i]
		if a.Status != core.ActionStatusApproved || a.Executor == core.ActionExecutorManual {
			continue
		}
		for _, id := range a.DependsOn {
			if id == done.ID {
				at := w.now
				if a.ExecuteAt.After(at) {
					at = a.ExecuteAt.Time
				}
				if err := w.s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, at); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
