package approval

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Reject is a no. It needs no earlier look: saying no can send nothing. For a run it
// rejects what waits, revokes what is approved and not on its way, and reports the rest.
func (s *Service) Reject(ctx context.Context, p core.Principal, d Decide) (*Outcome, error) {
	return s.sayNo(ctx, p, d, core.VerdictReject)
}

// Revoke takes a yes back while nothing was sent.
func (s *Service) Revoke(ctx context.Context, p core.Principal, d Decide) (*Outcome, error) {
	return s.sayNo(ctx, p, d, core.VerdictRevoke)
}

func (s *Service) sayNo(ctx context.Context, p core.Principal, d Decide, verdict core.Verdict) (*Outcome, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	scope := core.ScopeRunsWrite
	if verdict == core.VerdictRevoke {
		scope = core.ScopeActionsApprove
	}
	if err := p.Require(scope); err != nil {
		return nil, s.refuse(ctx, p, "action."+string(verdict), d.target(), err)
	}
	var out *Outcome
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		r, err := w.review(ctx, d)
		if err != nil {
			return err
		}
		picks, err := r.refusable(d)
		if err != nil {
			return err
		}
		done, leftOut := []*store.Action{}, []LeftOut{}
		for _, a := range picks {
			err := w.deny(ctx, r, a, d, verdict)
			if err == nil {
				done = append(done, a)
				continue
			}
			// A decision on a whole run reports what it could not stop.
			if e := core.AsError(err); d.ActionID == "" && len(d.ActionIDs) == 0 && (e.Kind == core.KindConflict || e.Kind == core.KindForbidden) && !store.IsChanged(err) {
				leftOut = append(leftOut, LeftOut{a.ID, e.Detail})
				continue
			}
			return err
		}
		out, err = w.outcome(r, done, leftOut)
		return err
	})
	if core.IsKind(err, core.KindForbidden) {
		return nil, s.refuse(ctx, p, "action."+string(verdict), d.target(), err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// refusable selects what a no is about: all that could still be sent or was refused by
// the same principal before, or the named ones.
func (r *reviewed) refusable(d Decide) ([]*store.Action, error) {
	named := map[string]bool{}
	for _, id := range d.ActionIDs {
		named[id] = true
	}
	if d.ActionID != "" {
		named[d.ActionID] = true
	}
	all, picks := len(named) == 0, []*store.Action{}
	for i := range r.actions {
		a := &r.actions[i]
		switch {
		case named[a.ID]:
			picks = append(picks, a)
		case all && (!a.Status.IsFinal() && a.Status != core.ActionStatusUnknown || r.denied(a) != nil):
			picks = append(picks, a)
		}
		delete(named, a.ID)
	}
	for id := range named {
		return nil, core.Errf(core.KindNotFound, "not_found", "There is no action %s in run %s.", id, r.runID)
	}
	if d.ExpectedDigest == "" {
		return picks, nil
	}
	waits := []run.PackItem{}
	for i := range r.actions {
		if a := &r.actions[i]; a.Status.IsWaiting() || r.denied(a) != nil {
			waits = append(waits, run.PackItem{ID: a.ID, Revision: a.Revision, Digest: a.Digest})
		}
	}
	if pack := run.PackDigest(waits); d.ExpectedDigest != pack && (len(picks) != 1 || d.ExpectedDigest != picks[0].Digest) {
		if d.ActionID != "" {
			pack = picks[0].Digest
		}
		return nil, mismatch("It is not what the digest names.", pack)
	}
	return picks, nil
}

// denied is the principal's own earlier no, which makes the same no again a success.
func (r *reviewed) denied(a *store.Action) *store.Decision {
	if a.Status != core.ActionStatusRejected && a.Status != core.ActionStatusRevoked {
		return nil
	}
	for i := range r.decisions {
		d := &r.decisions[i]
		if d.ActionID == a.ID && d.ByID == r.by.ID && (d.Decision == core.VerdictReject || d.Decision == core.VerdictRevoke) && d.Revision == a.Revision {
			return d
		}
	}
	return nil
}

// deny says no to one action: reject while it waits, revoke after.
func (w *work) deny(ctx context.Context, r *reviewed, a *store.Action, d Decide, verdict core.Verdict) error {
	if r.denied(a) != nil {
		return nil
	}
	ev, reason := core.EventReject, "Rejected by "+name(w.p)+"."
	switch a.Status {
	case core.ActionStatusExpired:
		return expired(a)
	case core.ActionStatusSending, core.ActionStatusUnknown, core.ActionStatusSucceeded:
		return core.Errf(core.KindConflict, "already_sending", "Action %s was handed to the provider already; it can no longer be stopped here.", a.ID)
	case core.ActionStatusProposed:
		return core.Errf(core.KindConflict, "wrong_state", "Action %s is still being drafted. Cancel the run, or reject it when it waits for a decision.", a.ID)
	case core.ActionStatusApproved, core.ActionStatusClaimed:
		ev, reason, verdict = core.EventRevoke, "Revoked by "+name(w.p)+".", core.VerdictRevoke
		if err := w.p.Require(core.ScopeActionsApprove); err != nil {
			return err
		}
	default:
		if verdict == core.VerdictRevoke {
			ev = core.EventRevoke
		}
	}
	if _, err := core.NextActionStatus(a.Status, ev); err != nil {
		return err
	}
	if err := mayEdit(ctx, w, a); err != nil && !w.p.Can(core.ScopeActionsApprove) {
		return err
	}
	dec := &store.Decision{Decision: verdict}
	if err := w.decide(ctx, a, dec, d); err != nil {
		return err
	}
	r.decisions = append(r.decisions, *dec)
	a.LeaseOwner, a.LeaseUntil = "", store.Time{}
	if d.Reason != "" {
		reason = strings.TrimSuffix(reason, ".") + ": " + d.Reason
	}
	return w.move(ctx, a, ev, reason, map[string]any{"decision": dec.ID, "channel": d.Channel})
}

func name(p core.Principal) string {
	if p.Label != "" {
		return p.Label
	}
	return p.ID
}

// DoneByHand reports that a person did an approved manual action, with the address at
// which the result can be seen.
func (s *Service) DoneByHand(ctx context.Context, p core.Principal, actionID, proofURL, note string) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	if p.Kind != core.ActorKindPerson {
		return nil, s.refuse(ctx, p, "action.done_by_hand", actionID, core.Errf(core.KindForbidden, "person_required", "Only a person can report what a person did."))
	}
	if u, err := url.Parse(proofURL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(proofURL) > 2000 {
		e := core.Errf(core.KindInvalid, "invalid", "proofUrl must be the web address of the result.")
		e.Fields = []core.FieldError{{Pointer: "/proofUrl", Message: "must be an http or https address"}}
		return nil, e
	}
	return s.settle(ctx, p, actionID, note, func(a *store.Action, now time.Time) (core.ActionEvent, *store.Decision, error) {
		if a.Executor != core.ActionExecutorManual {
			return "", nil, core.Errf(core.KindConflict, "not_manual", "Action %s is sent by its connector; only manual actions are reported by hand.", a.ID)
		}
		if a.Status == core.ActionStatusApproved && !now.Before(a.ExpiresAt.Time) {
			return "", nil, expired(a)
		}
		a.Outcome, a.ExternalURL, a.StartedAt, a.FinishedAt = string(core.ActionExecutionOutcomeSucceeded), proofURL, store.At(now), store.At(now)
		return core.EventDoneByHand, &store.Decision{Decision: core.VerdictDoneByHand, ProofURL: proofURL}, nil
	})
}

// Reconcile settles an action whose outcome is unknown by what a person saw at the
// provider. It asks for a recent sign-in and a note.
func (s *Service) Reconcile(ctx context.Context, p core.Principal, actionID string, happened bool, note string) (*core.Action, error) {
	if err := p.Require(core.ScopeActionsApprove); err != nil {
		return nil, s.refuse(ctx, p, "action.reconcile", actionID, err)
	}
	if rank(p.ProofAt(s.d.Clock.Now())) < rank(core.ProofP2) {
		return nil, s.refuse(ctx, p, "action.reconcile", actionID, core.Errf(core.KindForbidden, "weak_proof", "Settling an unknown outcome asks for a recent sign-in. Sign in again and repeat it within five minutes."))
	}
	if strings.TrimSpace(note) == "" {
		e := core.Errf(core.KindInvalid, "invalid", "Say in the note what you saw at the provider.")
		e.Fields = []core.FieldError{{Pointer: "/note", Message: "must not be empty"}}
		return nil, e
	}
	return s.settle(ctx, p, actionID, note, func(a *store.Action, now time.Time) (core.ActionEvent, *store.Decision, error) {
		ev, outcome := core.EventNotHappened, core.ActionExecutionOutcomeFailed
		if happened {
			ev, outcome = core.EventHappened, core.ActionExecutionOutcomeSucceeded
		} else if err := senderDead(a, now); err != nil && a.Status == core.ActionStatusUnknown {
			return "", nil, err // it may still happen
		}
		a.Outcome, a.FinishedAt = string(outcome), store.At(now)
		return ev, &store.Decision{Decision: core.VerdictReconcile}, nil
	})
}

// settle lets a person end an action by what happened outside.
func (s *Service) settle(ctx context.Context, p core.Principal, actionID, note string, how func(*store.Action, time.Time) (core.ActionEvent, *store.Decision, error)) (*core.Action, error) {
	channel := string(core.DecisionChannelRest)
	if p.SessionID != "" {
		channel = string(core.DecisionChannelWeb)
	}
	d := Decide{ActionID: actionID, Reason: note, Channel: channel}
	if err := d.check(); err != nil {
		return nil, err
	}
	var out *core.Action
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		a, err := w.tx.LockAction(ctx, store.WorkspaceID(p.WorkspaceID), actionID)
		if err != nil {
			return err
		}
		ev, dec, err := how(a, w.now)
		if err != nil {
			return err
		}
		if _, err := core.NextActionStatus(a.Status, ev); err != nil {
			return err
		}
		if err := w.decide(ctx, a, dec, d); err != nil {
			return err
		}
		if err := w.move(ctx, a, ev, "Settled by "+name(p)+": "+firstLine(note), map[string]any{"decision": dec.ID, "proofUrl": dec.ProofURL}); err != nil {
			return err
		}
		if a.Status == core.ActionStatusSucceeded {
			if err := w.release(ctx, a); err != nil {
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

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if s == "" {
		return "no note"
	}
	return s
}

// Execute wakes the sender for an approved action and ends its undo window. For an
// action that is on its way or done it changes nothing.
func (s *Service) Execute(ctx context.Context, p core.Principal, actionID string) (*core.Action, error) {
	if err := p.Require(core.ScopeActionsExecute); err != nil {
		return nil, s.refuse(ctx, p, "action.execute", actionID, err)
	}
	var out *core.Action
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		a, err := w.tx.LockAction(ctx, store.WorkspaceID(p.WorkspaceID), actionID)
		if err != nil {
			return err
		}
		switch a.Status {
		case core.ActionStatusApproved:
			if err := w.wake(ctx, a); err != nil {
				return err
			}
		case core.ActionStatusClaimed, core.ActionStatusSending, core.ActionStatusSucceeded:
		case core.ActionStatusExpired:
			return expired(a)
		default:
			return core.Errf(core.KindConflict, "wrong_state", "The action is %s; only an approved action can be executed.", a.Status)
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

func (w *work) wake(ctx context.Context, a *store.Action) error {
	switch {
	case a.Executor == core.ActionExecutorManual:
		return core.Errf(core.KindConflict, "manual", "A person does this action by hand and then reports the address of the result.")
	case !w.now.Before(a.ExpiresAt.Time):
		return expired(a)
	case a.NotBefore.After(w.now):
		return core.Errf(core.KindConflict, "not_due", "The action was approved for %s, not earlier.", a.NotBefore.UTC().Format(time.RFC3339))
	}
	a.ExecuteAt, a.NextTryAt, a.UpdatedAt = store.At(w.now), store.Time{}, store.At(w.now)
	if err := w.tx.UpdateAction(ctx, a); err != nil {
		return err
	}
	w.touch(a.RunID)
	w.log("action.execute", a.ID, map[string]any{"runId": a.RunID, "digest": a.Digest})
	return w.s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, w.now)
}

// Again is what a retry compiles anew: the same call, for a new action that takes the
// old one's place once it is proposed with Supersedes.
type Again struct {
	WorkspaceID, RunID, ActionID string // ActionID is the action to supersede
	Tool, Connector, Channel     string
	ConnectionName               string
	Input                        json.RawMessage
	AssetRefs                    []core.AssetRef
	EvidenceIDs, DependsOn       []string
}

// Retry returns what to compile again for a failed, unknown or expired action. It
// changes nothing: Propose with Supersedes does, and the new action needs its own approval.
func (s *Service) Retry(ctx context.Context, p core.Principal, actionID string) (*Again, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	a, err := s.d.DB.Action(ctx, store.WorkspaceID(p.WorkspaceID), actionID)
	if err != nil {
		return nil, err
	}
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return nil, err
	}
	if err := replaceable(a, now); err != nil {
		return nil, err
	}
	c, err := connectionOf(a)
	if err != nil {
		return nil, err
	}
	return &Again{WorkspaceID: string(a.WorkspaceID), RunID: a.RunID, ActionID: a.ID, Tool: a.Tool, Connector: a.Connector, Channel: a.Channel,
		ConnectionName: c.Name, Input: json.RawMessage(a.Input), AssetRefs: a.AssetRefs, EvidenceIDs: a.EvidenceIDs, DependsOn: a.DependsOn}, nil
}

// CancelRun ends a run; see run.Service.Cancel.
func (s *Service) CancelRun(ctx context.Context, p core.Principal, runID string) (*core.Run, error) {
	return s.d.Runs.Cancel(ctx, p, runID)
}
