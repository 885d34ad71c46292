// Package approval is the gate: it takes sealed effects in, shows them, takes decisions
// on their digests, and hands out what was approved for sending. Nothing reaches the
// outside world on another way.
package approval

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Enqueuer wakes the sender. core/jobs implements it; the job commits with the decision.
type Enqueuer interface {
	EnqueueExecute(ctx context.Context, tx *store.Tx, actionID string, at time.Time) error
}

// Plugins tells what a plugin declares now, so that an approval of something a changed
// plugin compiled does not count. ok is false when there is no such plugin or tool.
type Plugins interface {
	CurrentDigests(plugin, tool string) (manifestDigest, toolDigest string, ok bool)
}

// Deps is what the service works with; all but the last three are required.
type Deps struct {
	DB      *store.DB
	Audit   *audit.Log
	Events  *event.Bus
	Runs    *run.Service
	Keys    *secret.Keeper // signs decisions with a key that is not in the database
	Enqueue Enqueuer
	// Plugins is required for claiming: without it every claim is refused.
	Plugins Plugins

	Clock      core.Clock    // the machine's when nil
	UndoWindow time.Duration // between approval and claim; 0 means none
	ActionTTL  time.Duration // core.DefaultActionTTL when 0
}

// Service is safe for concurrent use, also by several hosts on one database.
type Service struct{ d Deps }

// New makes the service.
func New(d Deps) *Service {
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if d.ActionTTL == 0 {
		d.ActionTTL = core.DefaultActionTTL
	}
	return &Service{d}
}

// UsePlugins sets what the service asks about plugins; the registry is made after it.
// It must be called before the first claim.
func (s *Service) UsePlugins(p Plugins) { s.d.Plugins = p }

// UseEnqueuer sets what wakes the sender; the job queue is made after the service. It
// must be called before the first approval.
func (s *Service) UseEnqueuer(e Enqueuer) { s.d.Enqueue = e }

// Limits of a run.
const (
	MaxActionsPerRun = core.MaxLimit // one page of a list: what is reviewed is shown whole
	MaxReason        = 2000          // characters of a reason or note
)

// policy is how a workspace decides; it is stored as JSON with the workspace.
type policy struct {
	Proof  core.Proof `json:"proof"`  // weakest proof that publishes or sends
	Needed int        `json:"needed"` // distinct people who must say yes
}

func (s *Service) policyOf(ctx context.Context, tx *store.Tx, ws store.WorkspaceID) (policy, error) {
	p := policy{Proof: core.ProofP2, Needed: 1}
	w, err := tx.Workspace(ctx, ws)
	if err != nil {
		return p, err
	}
	if err := w.Policy.Decode(&p); err != nil {
		return p, err
	}
	if rank(p.Proof) == 0 {
		p.Proof = core.ProofP2
	}
	p.Needed = max(p.Needed, 1)
	return p, nil
}

// rank orders proof levels; 0 is none.
func rank(p core.Proof) int {
	switch p {
	case core.ProofP1:
		return 1
	case core.ProofP2:
		return 2
	case core.ProofP3:
		return 3
	}
	return 0
}

// system is the principal of work that nobody asked for: deadlines, sweeps, recovery.
func system(id string, ws store.WorkspaceID) core.Principal {
	return core.Principal{Kind: core.ActorKindJob, ID: id, Label: id, WorkspaceID: string(ws)}
}

// work is one transaction that changes actions. It collects what comes after them, so
// that locks are always taken in the order actions, runs, head of the log.
type work struct {
	s   *Service
	tx  *store.Tx
	p   core.Principal
	now time.Time

	show    *Outcome // completed with run and receipt when all is written
	runs    []string
	edits   map[string]func(*store.Run) error
	entries []audit.Entry
	events  []core.Event
}

// inTx runs fn in one transaction, then recomputes the runs it touched, tells
// subscribers and appends to the log. fn may run more than once.
func (s *Service) inTx(ctx context.Context, p core.Principal, fn func(ctx context.Context, w *work) error) error {
	return s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		w := &work{s: s, tx: tx, p: p, now: now, edits: map[string]func(*store.Run) error{}}
		if err := fn(ctx, w); err != nil {
			return err
		}
		for _, id := range w.runs {
			row, err := s.d.Runs.Recompute(ctx, tx, p.WorkspaceID, id, w.edits[id])
			if err != nil {
				return err
			}
			if w.show != nil && w.show.Run.ID == id {
				if w.show.Run, err = s.d.Runs.Show(ctx, tx, row); err != nil {
					return err
				}
			}
		}
		for _, e := range w.events {
			if err := s.d.Events.Emit(ctx, tx, e); err != nil {
				return err
			}
		}
		for _, e := range w.entries {
			if _, err := s.d.Audit.Append(ctx, tx, e); err != nil {
				return err
			}
		}
		return w.receipt(ctx)
	})
}

// receipt completes what a decision returns.
func (w *work) receipt(ctx context.Context) (err error) {
	if w.show == nil {
		return nil
	}
	if len(w.runs) == 0 { // nothing was changed: the same decision again
		if w.show.Run, err = w.s.d.Runs.Read(ctx, w.tx, w.p.WorkspaceID, w.show.Run.ID, w.now); err != nil {
			return err
		}
	}
	w.show.Receipt.TreeSize, w.show.Receipt.Root, err = w.s.d.Audit.Standing(ctx, w.tx)
	return err
}

func (w *work) touch(runID string) {
	for _, id := range w.runs {
		if id == runID {
			return
		}
	}
	w.runs = append(w.runs, runID)
}

// move writes an action in the state that event leads to, with whatever else the
// caller changed in it, and notes it for run, subscribers and log.
func (w *work) move(ctx context.Context, a *store.Action, ev core.ActionEvent, reason string, details map[string]any) error {
	from := a.Status
	to, err := core.NextActionStatus(from, ev)
	if err != nil {
		return err
	}
	a.Status, a.StatusReason, a.UpdatedAt = to, reason, store.At(w.now)
	if err := w.tx.UpdateAction(ctx, a); err != nil {
		return err
	}
	w.note(a, ev, from, details)
	return nil
}

// note records a change of an action without writing it.
func (w *work) note(a *store.Action, ev core.ActionEvent, from core.ActionStatus, details map[string]any) {
	w.touch(a.RunID)
	all := map[string]any{"runId": a.RunID, "event": string(ev), "from": string(from), "to": string(a.Status), "revision": a.Revision, "digest": a.Digest}
	for k, v := range details {
		all[k] = v
	}
	w.log(entryOf(ev), a.ID, all)
	if ev == core.EventDrafted { // the run tells it once for the pack
		return
	}
	kind := event.ActionUpdated
	switch {
	case ev == core.EventApprove:
		kind = event.ActionApproved
	case a.Status == core.ActionStatusRejected || a.Status == core.ActionStatusExpired || a.Status == core.ActionStatusSucceeded ||
		a.Status == core.ActionStatusFailed || a.Status == core.ActionStatusUnknown:
		kind = "action." + string(a.Status)
	}
	w.events = append(w.events, core.Event{ID: core.NewID(core.PrefixEvent, w.now), Type: kind, WorkspaceID: string(a.WorkspaceID), RunID: &a.RunID, ActionID: &a.ID,
		At: w.now, Data: core.EventData{"status": string(a.Status), "revision": a.Revision, "digest": a.Digest}})
}

// happened names events in the log as what came to be; others stand there by their name.
var happened = map[core.ActionEvent]string{core.EventApprove: "approved", core.EventApprovePart: "partly_approved", core.EventReject: "rejected", core.EventExpire: "expired",
	core.EventRevoke: "revoked", core.EventEdit: "edited", core.EventDrafted: "pending", core.EventClaim: "claimed", core.EventMarkSending: "sending",
	core.EventReplyOK: "succeeded", core.EventRefused: "failed", core.EventUncertain: "unknown", core.EventSupersede: "superseded", core.EventCancel: "cancelled"}

func entryOf(ev core.ActionEvent) string {
	if past, ok := happened[ev]; ok {
		return "action." + past
	}
	return "action." + string(ev)
}

func (w *work) log(action, target string, details map[string]any) {
	w.entries = append(w.entries, audit.Entry{Actor: w.p.Actor(), WorkspaceID: w.p.WorkspaceID, Action: action, Target: target, Outcome: "ok",
		RequestID: w.p.RequestID, IP: w.p.IP, Details: details})
}

// refuse writes a refused attempt to the log and returns why it was refused. Nothing
// else was changed.
func (s *Service) refuse(ctx context.Context, p core.Principal, action, target string, cause error) error {
	e := core.AsError(cause)
	err := s.d.Audit.AppendNow(ctx, audit.Entry{Actor: p.Actor(), WorkspaceID: p.WorkspaceID, Action: action, Target: target, Outcome: "refused",
		RequestID: p.RequestID, IP: p.IP, Details: map[string]any{"code": e.Code}})
	if err != nil {
		return err
	}
	return cause
}

// connectionOf decodes what an action was compiled for.
func connectionOf(a *store.Action) (effect.Connection, error) {
	var c effect.Connection
	err := a.Connection.Decode(&c)
	return c, err
}
