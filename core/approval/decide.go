package approval

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Decide names what is decided on. Exactly one of RunID and ActionID is set; ActionIDs
// narrows a run. A named ExpectedDigest (of the action, or the pack of the run) is
// judged alone; without one the decision is on what was delivered to the principal last.
type Decide struct {
	RunID, ActionID string
	ActionIDs       []string
	ExpectedDigest  string
	Reason          string
	Channel         string // rest, mcp, web or cli
}

// LeftOut is an action that a decision did not cover, and why.
type LeftOut struct {
	ActionID string
	Reason   string
}

// Receipt is where the audit log stood after a decision, for the person to keep: a log
// that is changed later cannot reproduce it.
type Receipt struct {
	TreeSize int64
	Root     string // base64, as in the log's checkpoints
}

// Outcome is what a decision did.
type Outcome struct {
	Run     *core.Run
	Actions []core.Action // those decided on, in order
	LeftOut []LeftOut
	Receipt Receipt
}

func (d *Decide) check() error {
	if (d.RunID == "") == (d.ActionID == "") {
		return core.Errf(core.KindInvalid, "invalid", "Name either a run or an action.")
	}
	if d.ActionID != "" && len(d.ActionIDs) > 0 {
		return core.Errf(core.KindInvalid, "invalid", "actionIds belongs to a decision on a run.")
	}
	if utf8.RuneCountInString(d.Reason) > MaxReason || !utf8.ValidString(d.Reason) {
		return core.Errf(core.KindInvalid, "invalid", "The reason must be UTF-8 text of at most %d characters.", MaxReason)
	}
	switch core.DecisionChannel(d.Channel) {
	case core.DecisionChannelRest, core.DecisionChannelMcp, core.DecisionChannelWeb, core.DecisionChannelCli:
		return nil
	}
	return core.Errf(core.KindInvalid, "invalid", "The channel %q is none of rest, mcp, web, cli.", d.Channel)
}

func (d *Decide) target() string {
	if d.ActionID != "" {
		return d.ActionID
	}
	return d.RunID
}

// Approve is a yes to exact content. For a run it is all or nothing: either every
// covered action is approved, or none. The same yes again changes nothing.
func (s *Service) Approve(ctx context.Context, p core.Principal, d Decide) (*Outcome, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := s.mayApprove(ctx, p, d); err != nil {
		return nil, s.refuse(ctx, p, "action.approve", d.target(), err)
	}
	var out *Outcome
	var overdue []string
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		overdue = nil
		r, err := w.review(ctx, d)
		if err != nil {
			return err
		}
		picks, leftOut, err := r.pick(d)
		if err != nil {
			return err
		}
		for _, a := range picks {
			if err := w.approve(ctx, r, a, d); err != nil {
				if core.IsKind(err, core.KindGone) {
					overdue = append(overdue, a.ID)
				}
				return err
			}
		}
		out, err = w.outcome(r, picks, leftOut)
		return err
	})
	if err != nil {
		s.expire(ctx, p.WorkspaceID, overdue)
		if core.IsKind(err, core.KindForbidden) {
			return nil, s.refuse(ctx, p, "action.approve", d.target(), s.review(ctx, p, d, err))
		}
		return nil, err
	}
	return out, nil
}

// mayApprove refuses principals that may never say yes, with the way to somebody who may.
func (s *Service) mayApprove(ctx context.Context, p core.Principal, d Decide) error {
	if p.Can(core.ScopeActionsApprove) {
		return nil
	}
	if p.Kind != core.ActorKindKey {
		return p.Require(core.ScopeActionsApprove)
	}
	// Whether the thing exists is told only to those who may read it.
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return err
	}
	e := core.Errf(core.KindForbidden, "approval_required", "A key cannot approve. A person has to look at the content and decide on the review page.")
	return s.review(ctx, p, d, e)
}

// review adds the review page to a refusal, if the thing exists for the caller.
func (s *Service) review(ctx context.Context, p core.Principal, d Decide, cause error) error {
	e := core.AsError(cause)
	runID := d.RunID
	if d.ActionID != "" {
		a, err := s.d.DB.Action(ctx, store.WorkspaceID(p.WorkspaceID), d.ActionID)
		if err != nil {
			return err
		}
		runID = a.RunID
	} else if _, err := s.d.DB.Run(ctx, store.WorkspaceID(p.WorkspaceID), runID); err != nil {
		return err
	}
	if e.ReviewURL == "" {
		e.ReviewURL = s.d.Runs.ReviewURL(runID)
	}
	if e.Next == nil {
		e.Next = &core.NextAction{URL: &e.ReviewURL, Reason: "A person signs in there, looks at the exact content and decides."}
	}
	return e
}

// approve records the principal's yes to one action and moves it when enough people
// said yes.
func (w *work) approve(ctx context.Context, r *reviewed, a *store.Action, d Decide) error {
	switch a.Status {
	case core.ActionStatusExpired:
		return expired(a)
	case core.ActionStatusPending, core.ActionStatusApproved, core.ActionStatusClaimed, core.ActionStatusSending:
	default:
		if r.mine(a) && a.Status != core.ActionStatusRevoked && a.Status != core.ActionStatusCancelled && a.Status != core.ActionStatusSuperseded {
			return nil // approved before and done by now: the same yes again
		}
		_, err := core.NextActionStatus(a.Status, core.EventApprove)
		return err
	}
	if r.mine(a) {
		return nil
	}
	if !w.now.Before(a.ExpiresAt.Time) {
		return expired(a)
	}
	sole, err := w.entitled(ctx, a)
	if err != nil {
		return err
	}
	if a.Status == core.ActionStatusPending {
		if err := w.standing(ctx, a); err != nil {
			return err
		}
	}
	dec := &store.Decision{Decision: core.VerdictApprove, SoleApprover: sole}
	if err := w.decide(ctx, a, dec, d); err != nil {
		return err
	}
	r.decisions = append(r.decisions, *dec)
	details := map[string]any{"decision": dec.ID, "proof": string(dec.Proof), "channel": string(dec.Channel), "viaServiceKey": dec.ViaServiceKey, "soleApprover": sole, "pluginDigest": a.PluginDigest}
	if a.Status != core.ActionStatusPending { // a further person agrees; nothing is sent twice
		w.log("action.approve_more", a.ID, details)
		return nil
	}
	if len(r.people(a)) < a.Needed {
		return w.move(ctx, a, core.EventApprovePart, "More people have to approve.", details)
	}
	a.ApprovedAt = store.At(w.now)
	reason := "Approved; a person does it by hand and reports the address."
	if a.Executor == core.ActionExecutorConnector {
		at := w.now.Add(w.s.d.UndoWindow)
		if a.NotBefore.After(at) {
			at = a.NotBefore.Time
		}
		a.ExecuteAt, reason = store.At(at), "Approved; it is sent next."
		if err := w.s.d.Enqueue.EnqueueExecute(ctx, w.tx, a.ID, at); err != nil {
			return err
		}
	}
	return w.move(ctx, a, core.EventApprove, reason, details)
}

// entitled checks proof level and duties. sole tells that the rule against
// self-approval rested, because the workspace has only one person who may approve.
func (w *work) entitled(ctx context.Context, a *store.Action) (sole bool, err error) {
	if proof := w.p.ProofAt(w.s.d.Clock.Now()); rank(proof) < rank(a.Proof) {
		e := core.Errf(core.KindForbidden, "weak_proof", "This action asks for proof level %s. Sign in again and decide within five minutes.", a.Proof)
		switch {
		case a.Proof == core.ProofP3:
			e.Detail = "This action moves money or deletes something and asks for a passkey. Sign in with a passkey and decide on the review page."
		case w.p.Kind == core.ActorKindKey:
			e.Detail = "This action asks for a recent sign-in, which a key does not have unless an owner granted it. A person decides on the review page."
		}
		return false, e
	}
	self := map[string]bool{a.CreatedByID: true, a.EditedByID: true}
	for _, actor := range []core.Actor{a.CreatedBy, a.EditedBy} {
		if actor.OnBehalfOf != nil {
			self[*actor.OnBehalfOf] = true
		}
	}
	if !self[w.p.ID] && (w.p.OnBehalfOf == "" || !self[w.p.OnBehalfOf]) {
		return false, nil
	}
	n, err := w.tx.CountApprovers(ctx, a.WorkspaceID)
	if err != nil {
		return false, err
	}
	if n > 1 {
		return false, core.Errf(core.KindForbidden, "self_approval", "Who proposed or last edited an action, or owns the key that did, cannot approve it. Another approver of this workspace has to decide.")
	}
	return true, nil
}

// standing refuses to approve what could not be sent as it was compiled.
func (w *work) standing(ctx context.Context, a *store.Action) error {
	if a.Executor != core.ActionExecutorConnector {
		return nil
	}
	c, err := connectionOf(a)
	if err != nil {
		return err
	}
	now, err := w.tx.Connection(ctx, a.WorkspaceID, c.ID)
	if err != nil && !core.IsKind(err, core.KindNotFound) {
		return err
	}
	if err != nil || now.BindingDigest != c.Binding {
		return core.Errf(core.KindConflict, "connection_changed", "The connection %s was removed or leads to another account since this was drafted. Edit the action, so that it is drafted for the account of now.", c.Provider)
	}
	return nil
}

// decide writes a decision, signed with a key that is not in the database.
func (w *work) decide(ctx context.Context, a *store.Action, dec *store.Decision, d Decide) error {
	dec.ID, dec.WorkspaceID, dec.ActionID, dec.RunID, dec.Revision, dec.Digest = core.NewID(core.PrefixDecision, w.now), a.WorkspaceID, a.ID, a.RunID, a.Revision, a.Digest
	dec.By, dec.ByID, dec.AuthTime, dec.SessionID = w.p.Actor(), w.p.ID, store.At(w.p.AuthTime), w.p.SessionID
	dec.Proof, dec.Channel, dec.Reason, dec.At = w.p.ProofAt(w.s.d.Clock.Now()), core.DecisionChannel(d.Channel), d.Reason, store.At(w.now)
	if rank(dec.Proof) == 0 {
		dec.Proof = core.ProofP1 // a key may say no, report and reconcile without a sign-in
	}
	dec.ViaServiceKey = w.p.Kind == core.ActorKindKey
	dec.MAC = w.s.d.Keys.MAC(macPurpose, macParts(dec)...)
	return w.tx.InsertDecision(ctx, dec)
}

const macPurpose = "decision"

// macParts is everything of a decision that counts, in a fixed order.
func macParts(d *store.Decision) [][]byte {
	on := ""
	if d.By.OnBehalfOf != nil {
		on = *d.By.OnBehalfOf
	}
	texts := []string{d.ID, string(d.WorkspaceID), d.RunID, d.ActionID, strconv.Itoa(d.Revision), d.Digest, string(d.Decision), d.ByID, string(d.By.Kind), d.By.ID, d.By.Label, on,
		string(d.Proof), micros(d.AuthTime), d.SessionID, string(d.Channel), d.Reason, d.ProofURL, strconv.FormatBool(d.ViaServiceKey), strconv.FormatBool(d.SoleApprover), micros(d.At)}
	parts := make([][]byte, len(texts))
	for i, t := range texts {
		parts[i] = []byte(t)
	}
	return parts
}

func micros(t store.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

// outcome builds the reply; run and receipt are added when all is written.
func (w *work) outcome(r *reviewed, picks []*store.Action, leftOut []LeftOut) (*Outcome, error) {
	out := &Outcome{Run: &core.Run{ID: r.runID}, Actions: []core.Action{}, LeftOut: notNil(leftOut)}
	for _, a := range picks {
		shown, err := w.s.resource(a, r.decisions)
		if err != nil {
			return nil, err
		}
		out.Actions = append(out.Actions, *shown)
	}
	w.show = out
	return out, nil
}
