// Package execute sends what was approved: it claims an action, has core/egress connect,
// marks the action as being sent before the first byte, and records what is known after
// the last. It alone calls egress.Send.
package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/store"
)

// DefaultLease is how long an executor keeps an action to itself: the longest step and
// room to record it.
const DefaultLease = 3 * time.Minute

const (
	// recordFor is how long the record of a send is tried again when the database does
	// not answer. After it the sweep makes the action unknown, which is what we know.
	recordFor  = time.Minute
	claimFor   = 10 * time.Second
	markFor    = 5 * time.Second // a connection waits meanwhile
	firstPause = 50 * time.Millisecond
)

// Deps is what the executor works with.
type Deps struct {
	DB         *store.DB
	Approval   *approval.Service
	Connectors *connector.Service
	Egress     *egress.Egress
	Log        *slog.Logger
	// Owner names this executor in leases; the host id of the database when empty.
	Owner string
	Lease time.Duration // DefaultLease when 0
}

// Executor sends approved actions. It is safe for concurrent use, also with executors of
// other hosts.
type Executor struct{ d Deps }

// New makes an executor.
func New(d Deps) *Executor {
	if d.Owner == "" {
		d.Owner = d.DB.HostID()
	}
	if d.Lease == 0 {
		d.Lease = DefaultLease
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return &Executor{d}
}

// Run sends one action, if it is approved and due. That another executor has it, that
// it is not due yet or that it ended meanwhile is no error.
func (x *Executor) Run(ctx context.Context, actionID string) error {
	e, err := x.claim(ctx, actionID)
	if settled(err) {
		x.d.Log.Debug("nothing to send", "action", actionID, "reason", core.AsError(err).Code)
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", actionID, err)
	}
	Hit("after_claim")
	conn := e.Connection()
	cred, err := x.d.Connectors.Credential(ctx, e.WorkspaceID(), conn.ID)
	if err != nil {
		return x.giveBack(ctx, e, "The credential cannot be used: "+core.AsError(err).Detail)
	}
	o := x.send(ctx, e, cred)
	Hit("after_reply")
	return x.record(ctx, e, o)
}

// claim asks again when somebody else changed the run or the action in the same moment:
// that says nothing about whether this action is due.
func (x *Executor) claim(ctx context.Context, actionID string) (e approved.Effect, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimFor)
	defer cancel()
	err = again(ctx, func() error {
		e, err = x.d.Approval.Claim(ctx, actionID, x.d.Owner, x.d.Lease)
		return err
	})
	return e, err
}

// settled reports whether a claim was refused for a reason that is not ours to solve.
func settled(err error) bool {
	return core.IsKind(err, core.KindConflict) || core.IsKind(err, core.KindGone) || core.IsKind(err, core.KindNotFound)
}

// send holds one send within its lease. A panic after the mark is an unknown outcome.
func (x *Executor) send(ctx context.Context, e approved.Effect, cred egress.Credential) (o egress.Outcome) {
	marked := false
	defer func() {
		if v := recover(); v != nil {
			x.d.Log.Error("send panicked", "action", e.ActionID(), "panic", fmt.Sprint(v))
			o = egress.Outcome{Event: core.EventConnectFailed, Code: "internal", Detail: "Sending failed on our side before it began."}
			if marked {
				o = egress.Outcome{Event: core.EventUncertain, Code: "internal", Detail: "Sending failed on our side after it began."}
			}
		}
	}()
	// Nothing may be written once the lease is over; a quarter of it stays for the record.
	// Each confirmed step lengthens the lease for the next.
	ctx, cancel := context.WithTimeout(ctx, x.d.Lease*3/4*time.Duration(max(1, len(e.Steps()))))
	defer cancel()
	return x.d.Egress.Send(ctx, e, cred, egress.Hooks{
		Connected: func() error {
			if err := x.mark(ctx, e); err != nil {
				x.d.Log.Warn("send not begun", "action", e.ActionID(), "error", err)
				return err
			}
			marked = true
			Hit("after_sending")
			return nil
		},
		Written: func() { Hit("after_sent") },
		Stepped: func(done []egress.StepOutcome) error {
			raw, err := json.Marshal(done)
			if err != nil {
				return err
			}
			return x.d.Approval.StepDone(ctx, e, x.d.Owner, len(done), raw, x.d.Lease)
		},
	})
}

// mark makes durable that sending begins. A mark whose commit was not confirmed is asked
// for again, which is refused if it stands: then nothing is sent, and the sweep says so.
func (x *Executor) mark(ctx context.Context, e approved.Effect) error {
	ctx, cancel := context.WithTimeout(ctx, markFor)
	defer cancel()
	return again(ctx, func() error {
		err := x.d.Approval.MarkSending(ctx, e, x.d.Owner)
		return err
	})
}

// record writes down what is known. It outlives the caller: a send that happened is
// recorded even while the host stops.
func (x *Executor) record(ctx context.Context, e approved.Effect, o egress.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	x.d.Log.Info("send ended", "action", e.ActionID(), "event", o.Event, "code", o.Code, "steps", len(o.Steps))
	if o.Code == "auth_failed" {
		reason := o.Detail
		if err := x.d.Connectors.NeedsReauth(ctx, e.WorkspaceID(), e.Connection().ID, reason); err != nil {
			x.d.Log.Warn("connection not marked", "connection", e.Connection().ID, "error", err)
		}
	}
	switch o.Event {
	case core.EventConnectFailed:
		return x.giveBack(ctx, e, o.Detail)
	case core.EventRecheckFailed:
		return again(ctx, func() error { return x.d.Approval.FailClaim(ctx, e, x.d.Owner, o.Code, o.Detail) })
	}
	s, err := sent(o)
	if err != nil {
		return err
	}
	return again(ctx, func() error {
		_, err := x.d.Approval.Record(ctx, e, x.d.Owner, s)
		return err
	})
}

// giveBack returns an action that certainly was not sent. That it is not ours any more
// is no error: whoever took it knows better.
func (x *Executor) giveBack(ctx context.Context, e approved.Effect, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	err := again(ctx, func() error {
		_, err := x.d.Approval.ReturnToApproved(ctx, e, x.d.Owner, reason)
		return err
	})
	if settled(err) {
		return nil
	}
	return err
}

// again repeats what the database did not do. Other refusals are final.
func again(ctx context.Context, do func() error) error {
	pause := firstPause
	for {
		err := do()
		if err == nil || !core.IsKind(err, core.KindUnavailable) && !store.IsChanged(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// sent is the outcome as the action keeps it.
func sent(o egress.Outcome) (approval.Sent, error) {
	s := approval.Sent{ExternalID: o.ExternalID, ExternalURL: o.ExternalURL}
	for _, step := range o.Steps {
		if step.Event == core.EventReplyOK {
			s.StepsDone++
		}
	}
	switch o.Event {
	case core.EventReplyOK:
		s.Outcome = core.ActionExecutionOutcomeSucceeded
	case core.EventRefused:
		s.Outcome = core.ActionExecutionOutcomeFailed
	default:
		s.Outcome = core.ActionExecutionOutcomeUnknown
	}
	if o.Event != core.EventReplyOK {
		s.Error = &core.ExecutionError{Code: o.Code, Message: o.Detail, Retryable: o.Retryable && o.Event == core.EventRefused}
	}
	steps := o.Steps
	if steps == nil {
		steps = []egress.StepOutcome{}
	}
	raw, err := json.Marshal(steps)
	if err != nil {
		return s, fmt.Errorf("outcome of the steps: %w", err)
	}
	s.Steps = raw
	return s, nil
}

// Sweep settles actions whose executor fell silent.
func (x *Executor) Sweep(ctx context.Context) error {
	n, err := x.d.Approval.SweepLeases(ctx)
	if n > 0 {
		x.d.Log.Warn("leases ended", "actions", n)
	}
	return err
}
