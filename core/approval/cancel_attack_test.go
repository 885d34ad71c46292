package approval

import (
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// A run that was cancelled has nothing that could still be approved, also where an
// action was being proposed in that moment.
func TestProposeAndCancelAtOnce(t *testing.T) {
	onBoth(t, func(f *fixture) {
		for range 25 {
			f.run = f.newRun()
			old := f.pending("hello")[0]
			f.row(old.ID, func(a *store.Action) { a.Status = core.ActionStatusFailed })
			again := f.proposal(f.newID(), "hello")
			again.Supersedes = old.ID
			var all sync.WaitGroup
			start := make(chan struct{})
			all.Go(func() { <-start; _, _ = f.s.Propose(f.Context(), f.owner, again) })
			all.Go(func() { <-start; _, _ = f.runs.Cancel(f.Context(), f.owner, f.run) })
			close(start)
			all.Wait()
			row, err := f.db.Run(f.Context(), ws, f.run)
			f.ok(err)
			actions, err := f.db.ActionsOfRun(f.Context(), ws, f.run)
			f.ok(err)
			for _, a := range actions {
				if row.Phase == core.PhaseCancelled && (a.Status.IsWaiting() || a.Status == core.ActionStatusApproved) {
					f.Fatalf("the run is cancelled and action %s is %s", a.ID, a.Status)
				}
			}
		}
	})
}

// What was once handed to the wire is never claimed again, whatever its state says.
func TestASentActionSetBackIsNotSentAgain(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	e, err := f.s.Claim(f.Context(), a.ID, "host", MaxLease)
	f.ok(err)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	_, err = f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded})
	f.ok(err)
	f.row(a.ID, func(row *store.Action) { row.Status = core.ActionStatusApproved })
	if _, err := f.s.Claim(f.Context(), a.ID, "host", MaxLease); err == nil {
		t.Fatal("claimed a second time after it was sent")
	}
}
