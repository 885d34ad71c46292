package approval

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/core/store"
)

// subject is one action on its way through the states.
type subject struct {
	*fixture
	id     string
	effect approved.Effect // of its last claim; zero before
}

func (s *subject) do(err error) { s.Helper(); s.ok(err) }

// reach brings a new action into a state, through the service alone.
func reach(t *testing.T, f *fixture, want core.ActionStatus, manual bool) *subject {
	t.Helper()
	mine := *f
	mine.T, mine.run = t, f.newRun()
	s := &subject{fixture: &mine}
	if head, err := f.db.LogHead(t.Context()); err == nil {
		mine.logged = head.AuditSize
	}
	in := s.proposal(s.newID(), "hello")
	if manual {
		in = s.manual(s.newID())
	}
	a, err := s.s.Propose(s.Context(), s.agent, in)
	s.ok(err)
	s.id = a.ID
	sent := func(o core.ActionExecutionOutcome) {
		s.effect = s.claim(s.id)
		s.do(s.s.MarkSending(s.Context(), s.effect, "host"))
		_, err := s.s.Record(s.Context(), s.effect, "host", Sent{Outcome: o})
		s.do(err)
	}
	if want != core.ActionStatusProposed {
		s.do(s.s.Ready(s.Context(), ws, s.run))
	}
	switch want {
	case core.ActionStatusProposed, core.ActionStatusPending:
	case core.ActionStatusRejected:
		s.do(s.fire(core.EventReject))
	case core.ActionStatusExpired:
		s.do(s.fire(core.EventExpire))
	case core.ActionStatusCancelled:
		s.do(s.fire(core.EventVoid))
	default:
		s.approve(s.id)
	}
	switch want {
	case core.ActionStatusRevoked:
		s.do(s.fire(core.EventRevoke))
	case core.ActionStatusClaimed:
		s.effect = s.claim(s.id)
	case core.ActionStatusSending:
		s.effect = s.claim(s.id)
		s.do(s.s.MarkSending(s.Context(), s.effect, "host"))
	case core.ActionStatusSucceeded:
		sent(core.ActionExecutionOutcomeSucceeded)
	case core.ActionStatusFailed:
		sent(core.ActionExecutionOutcomeFailed)
	case core.ActionStatusUnknown:
		sent(core.ActionExecutionOutcomeUnknown)
	case core.ActionStatusSuperseded:
		sent(core.ActionExecutionOutcomeFailed)
		s.do(s.fire(core.EventSupersede))
	}
	s.is(s.id, want)
	return s
}

// fire causes an event through the call of the service that stands for it.
func (s *subject) fire(ev core.ActionEvent) error {
	ctx, at := s.Context(), s.get(s.id)
	yes := Decide{ActionID: s.id, ExpectedDigest: at.Digest, Channel: "rest"}
	s.owner.AuthTime = s.clock.Now()
	record := func(o core.ActionExecutionOutcome) error {
		return second(s.s.Record(ctx, s.effect, "host", Sent{Outcome: o}))
	}
	switch ev {
	case core.EventDrafted:
		return s.s.Ready(ctx, ws, s.run)
	case core.EventEdit:
		return second(s.s.Revise(ctx, s.agent, s.id, "", s.proposal(s.id, "edited")))
	case core.EventApprove:
		return second(s.s.Approve(ctx, s.owner, yes))
	case core.EventApprovePart:
		s.row(s.id, func(a *store.Action) { a.Needed = 2 })
		return second(s.s.Approve(ctx, s.owner, yes))
	case core.EventReject:
		return second(s.s.Reject(ctx, s.member, Decide{ActionID: s.id, Channel: "rest"}))
	case core.EventRevoke:
		return second(s.s.Revoke(ctx, s.owner, Decide{ActionID: s.id, Channel: "rest"}))
	case core.EventDoneByHand:
		return second(s.s.DoneByHand(ctx, s.member, s.id, "https://x.example/1", ""))
	case core.EventExpire:
		s.clock.turn(core.DefaultActionTTL)
		if at.Status == core.ActionStatusClaimed { // its executor finds out, with a lease that still lives
			s.row(s.id, func(a *store.Action) { a.LeaseUntil = store.At(s.clock.Now().Add(time.Minute)) })
			return s.s.MarkSending(ctx, s.effect, "host")
		}
		return second(s.s.ExpireDue(ctx))
	case core.EventClaim:
		return second(s.s.Claim(ctx, s.id, "other", time.Minute))
	case core.EventConnectFailed:
		return second(s.s.ReturnToApproved(ctx, s.effect, "host", "refused"))
	case core.EventMarkSending:
		return s.s.MarkSending(ctx, s.effect, "host")
	case core.EventLeaseEnded:
		s.clock.turn(2 * time.Minute)
		return second(s.s.SweepLeases(ctx))
	case core.EventRecheckFailed:
		if at.Status == core.ActionStatusApproved { // claimed once, then what it rests on changed
			s.row(s.id, func(a *store.Action) { a.ClaimedOnce = true })
			return s.s.Void(ctx, ws, s.id, "changed")
		}
		return s.s.FailClaim(ctx, s.effect, "host", "changed", "It changed.")
	case core.EventReplyOK:
		return record(core.ActionExecutionOutcomeSucceeded)
	case core.EventRefused:
		return record(core.ActionExecutionOutcomeFailed)
	case core.EventUncertain:
		return record(core.ActionExecutionOutcomeUnknown)
	case core.EventFound:
		return s.s.Found(ctx, s.id, "x", "")
	case core.EventHappened, core.EventNotHappened:
		return second(s.s.Reconcile(ctx, s.owner, s.id, ev == core.EventHappened, "looked"))
	case core.EventSupersede:
		in := s.proposal(s.newID(), "hello")
		in.Supersedes = s.id
		return second(s.s.Propose(ctx, s.agent, in))
	case core.EventRestored:
		return second(s.s.Recover(ctx, "older"))
	case core.EventCancel:
		return second(s.s.CancelRun(ctx, s.agent, s.run))
	case core.EventVoid:
		return s.s.Void(ctx, ws, s.id, "gone")
	}
	panic("no call for " + string(ev))
}

// Every state and every event: what the table allows happens, and nothing else does.
// EventChanged has the same call as EventEdit; which of them it is, is the caller's reason.
func TestEveryStateAndEvent(t *testing.T) {
	f := onSQLite(t)
	moved := map[core.Transition]bool{}
	for _, from := range core.ActionStatuses() {
		for _, ev := range core.ActionEvents() {
			if ev == core.EventChanged {
				continue
			}
			t.Run(string(from)+"/"+string(ev), func(t *testing.T) {
				s := reach(t, f, from, ev == core.EventDoneByHand && from == core.ActionStatusApproved)
				want, allowed := from, false
				if to, err := core.NextActionStatus(from, ev); err == nil {
					want, allowed = to, true
				}
				err := s.fire(ev)
				got := s.get(s.id)
				if got.Status != want {
					t.Fatalf("got %s, want %s (%v)", got.Status, want, err)
				}
				if allowed {
					moved[core.Transition{From: from, Event: ev}] = true
					if n := s.audited(entryOf(ev), s.id, "ok"); n == 0 {
						t.Errorf("the move is not in the log")
					}
				}
			})
		}
	}
	for _, tr := range core.ActionTransitions() {
		if tr.Event != core.EventChanged && !moved[core.Transition{From: tr.From, Event: tr.Event}] {
			t.Errorf("%s on %s was never seen through the service", tr.From, tr.Event)
		}
	}
}
