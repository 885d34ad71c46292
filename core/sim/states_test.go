package sim_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/sim"
)

func TestStatesPageIsFresh(t *testing.T) {
	page, err := os.ReadFile("../../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != sim.StatesDoc() {
		t.Error("docs/states.md is stale; run: go run ./core/sim/statesdoc")
	}
}

// The table of run states is prose; these examples keep it true.
func TestRunTableSaysWhatTheCodeDoes(t *testing.T) {
	const p, a, u = core.ActionStatusPending, core.ActionStatusApproved, core.ActionStatusUnknown
	for _, c := range []struct {
		actions []core.ActionStatus
		open    bool
		want    core.RunStatus
	}{
		{nil, false, core.RunStatusCompleted},
		{[]core.ActionStatus{p, u}, false, core.RunStatusNeedsAttention},
		{[]core.ActionStatus{p, core.ActionStatusSending}, false, core.RunStatusExecuting},
		{[]core.ActionStatus{p, a}, false, core.RunStatusPartiallyApproved},
		{[]core.ActionStatus{p, core.ActionStatusRejected}, false, core.RunStatusAwaitingApproval},
		{[]core.ActionStatus{a, core.ActionStatusFailed}, false, core.RunStatusApproved},
		{[]core.ActionStatus{core.ActionStatusFailed, core.ActionStatusSucceeded}, true, core.RunStatusNeedsAttention},
		{[]core.ActionStatus{core.ActionStatusSucceeded}, true, core.RunStatusMeasuring},
		{[]core.ActionStatus{core.ActionStatusSucceeded}, false, core.RunStatusCompleted},
		{[]core.ActionStatus{core.ActionStatusExpired, core.ActionStatusRejected}, false, core.RunStatusExpired},
		{[]core.ActionStatus{core.ActionStatusRevoked}, false, core.RunStatusRejected},
		{[]core.ActionStatus{core.ActionStatusCancelled}, false, core.RunStatusCancelled},
	} {
		m := &core.Measurement{Status: core.RunMeasurementStatusClosed}
		if c.open {
			m.Status = core.RunMeasurementStatusOpen
		}
		if got := core.RunStatusOf(core.PhaseInReview, c.actions, m); got != c.want || !strings.Contains(sim.StatesDoc(), "| "+string(got)+" |") {
			t.Errorf("%v: %s, want %s", c.actions, got, c.want)
		}
	}
}
