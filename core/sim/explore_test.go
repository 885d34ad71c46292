package sim_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/sim"
)

// The real table with the real guards: in no order of events is anything sent twice,
// unseen, or after a no.
func TestNoOrderOfEventsBreaksThePromise(t *testing.T) {
	n, bad := sim.Explorer{}.Explore()
	if bad != nil {
		t.Fatal(bad)
	}
	if n < 1000 {
		t.Fatalf("only %d states: the model does not reach far enough", n)
	}
	t.Logf("%d states", n)
}

// Each guard is needed: without it the explorer finds a way to break the promise.
func TestEveryGuardIsNeeded(t *testing.T) {
	for name, rules := range map[string]sim.Rules{
		"approval bound to what was seen":       {ApproveUnseen: true},
		"claim by compare-and-swap":             {ClaimUnguarded: true},
		"looked at again before the first byte": {MarkUnchecked: true},
		"content frozen at the first claim":     {EditAfterClaim: true, RearmUnknown: true},
		"unknown is never sent again":           {RearmUnknown: true},
		"silent while sending is unknown":       {RearmSending: true},
		"no revoke while sending":               {RevokeSending: true},
		"settled only when the sender is dead":  {ReplaceTooEarly: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, bad := sim.Explorer{Rules: rules}.Explore()
			if bad == nil {
				t.Fatal("nothing breaks without this guard")
			}
			t.Log(bad)
		})
	}
}

// The explorer follows the table: a wrong entry in it is found.
func TestWrongTableIsFound(t *testing.T) {
	for _, wrong := range []core.Transition{
		{From: core.ActionStatusSending, Event: core.EventLeaseEnded, To: core.ActionStatusApproved},
		{From: core.ActionStatusSending, Event: core.EventRevoke, To: core.ActionStatusRevoked},
		{From: core.ActionStatusSending, Event: core.EventCancel, To: core.ActionStatusCancelled},
		{From: core.ActionStatusSending, Event: core.EventExpire, To: core.ActionStatusExpired},
		{From: core.ActionStatusSucceeded, Event: core.EventClaim, To: core.ActionStatusClaimed},
		{From: core.ActionStatusUnknown, Event: core.EventClaim, To: core.ActionStatusClaimed},
	} {
		_, bad := sim.Explorer{Next: func(s core.ActionStatus, e core.ActionEvent) (core.ActionStatus, error) {
			if s == wrong.From && e == wrong.Event {
				return wrong.To, nil
			}
			return core.NextActionStatus(s, e)
		}}.Explore()
		if bad == nil {
			t.Errorf("%s on %s to %s: nothing found", wrong.From, wrong.Event, wrong.To)
		}
	}
}
