package execute

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/jobs"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// host makes a rig with a connected provider.
func host(t *testing.T, db *store.DB) (*rig, *provider) {
	t.Helper()
	p := newProvider(t)
	r := newRig(t, db, t.TempDir(), p.Listener.Addr().String())
	r.settle()
	r.connect(p.URL + "/hook")
	return r, p
}

func run1(t *testing.T, x *Executor, id string) {
	t.Helper()
	if err := x.Run(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyWhatIsApprovedIsSentOnceAndExactly(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r, p := host(t, db)
		x := r.executor("host-1")
		runID, ids := r.propose(1)
		run1(t, x, ids[0])
		if n := len(p.got(ids[0])); n != 0 {
			t.Fatalf("%d sends before the approval", n)
		}
		r.approve(runID)
		for range 3 {
			run1(t, x, ids[0])
		}
		a, got := r.action(ids[0]), p.got(ids[0])
		if a.Status != core.ActionStatusSucceeded || len(got) != 1 {
			t.Fatalf("%s after %d sends", a.Status, len(got))
		}
		if len(a.Execution.ContentSha256) != 1 || a.Execution.ContentSha256[0] != got[0] {
			t.Errorf("received %s, approved %v", got[0], a.Execution.ContentSha256)
		}
	})
}

func TestTwoHostsSendEachActionOnce(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		db := testdb.Open(t, url, nil)
		r, p := host(t, db)
		second := r
		if db.Driver() == store.Postgres { // SQLite has one host by its lock
			second = newRig(t, testdb.Open(t, url, nil), t.TempDir(), p.Listener.Addr().String())
			second.approval, second.connectors = r.approval, r.connectors
		}
		runID, ids := r.propose(12)
		r.approve(runID)
		one, two := r.executor("host-1"), second.executor("host-2")
		var wg sync.WaitGroup
		for _, id := range ids {
			for _, x := range []*Executor{one, two, one, two} {
				wg.Go(func() {
					if err := x.Run(context.Background(), id); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				})
			}
		}
		wg.Wait()
		for _, id := range ids {
			if n := len(p.got(id)); n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
			if a := r.action(id); a.Status != core.ActionStatusSucceeded {
				t.Errorf("%s is %s", id, a.Status)
			}
		}
	})
}

func TestOutcomesOfReplies(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r, p := host(t, db)
		x := r.executor("host-1")
		for _, c := range []struct {
			name   string
			answer func(http.ResponseWriter, *http.Request)
			want   core.ActionStatus
		}{
			{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, core.ActionStatusUnknown},
			{"429", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, core.ActionStatusUnknown},
			{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, core.ActionStatusUnknown},
			{"400", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, core.ActionStatusFailed},
			{"410", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, core.ActionStatusFailed},
			{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, core.ActionStatusSucceeded},
		} {
			p.answers(c.answer)
			runID, ids := r.propose(1)
			r.approve(runID)
			run1(t, x, ids[0])
			run1(t, x, ids[0]) // whatever came out, nothing is sent again by itself
			if a := r.action(ids[0]); a.Status != c.want || len(p.got(ids[0])) != 1 {
				t.Errorf("%s: %s after %d sends, want %s", c.name, a.Status, len(p.got(ids[0])), c.want)
			}
		}
	})
}

func TestNoConnectionIsTriedFiveTimes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		r := newRig(t, db, t.TempDir(), address)
		r.settle()
		r.connect("http://" + address + "/hook")
		x := r.executor("host-1")
		runID, ids := r.propose(1)
		r.approve(runID)
		for try := 1; try <= core.MaxConnectTries; try++ {
			run1(t, x, ids[0])
			a := r.action(ids[0])
			want := core.ActionStatusApproved
			if try == core.MaxConnectTries {
				want = core.ActionStatusFailed
			}
			if a.Status != want {
				t.Fatalf("try %d: %s, want %s", try, a.Status, want)
			}
			r.endBackOff(ids[0])
		}
	})
}

// endBackOff lets the pause pass without waiting for it.
func (r *rig) endBackOff(id string) {
	r.t.Helper()
	err := r.db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.SystemAction(ctx, id)
		if err != nil {
			return err
		}
		a.NextTryAt = store.Time{}
		return tx.UpdateAction(ctx, a)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestAnotherAddressVoidsTheApproval(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r, p := host(t, db)
		runID, ids := r.propose(1)
		r.approve(runID)
		r.connect(p.URL + "/elsewhere")
		run1(t, r.executor("host-1"), ids[0])
		if a := r.action(ids[0]); a.Status != core.ActionStatusCancelled || len(p.got(ids[0])) != 0 {
			t.Errorf("%s after %d sends", a.Status, len(p.got(ids[0])))
		}
	})
}

// TestApprovalWakesTheSender joins the real queue: a yes alone makes the send happen.
func TestApprovalWakesTheSender(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r, p := host(t, db)
		j, err := jobs.New(db, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if err := j.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		r.approval.UseEnqueuer(j)
		x := r.executor("host-1")
		ended := make(chan string, 10)
		err = j.Start(ctx, jobs.Work{
			Execute: func(ctx context.Context, id string) error { defer func() { ended <- id }(); return x.Run(ctx, id) },
			Advance: func(context.Context, string, string) error { return nil },
			Expire:  r.approval.ExpireDue, Sweep: x.Sweep,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := j.Stop(ctx); err != nil {
				t.Error(err)
			}
		}()
		runID, ids := r.propose(3)
		r.approve(runID)
		for range ids {
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the sender was not woken")
			}
		}
		for _, id := range ids {
			if a := r.action(id); a.Status != core.ActionStatusSucceeded || len(p.got(id)) != 1 {
				t.Errorf("%s: %s after %d sends", id, a.Status, len(p.got(id)))
			}
		}
	})
}

// TestWhatIsNotKnownIsUnknown checks the mapping; only a definite refusal may be retried.
func TestWhatIsNotKnownIsUnknown(t *testing.T) {
	for event, want := range map[core.ActionEvent]core.ActionExecutionOutcome{
		core.EventReplyOK: core.ActionExecutionOutcomeSucceeded, core.EventRefused: core.ActionExecutionOutcomeFailed, core.EventUncertain: core.ActionExecutionOutcomeUnknown, "anything else": core.ActionExecutionOutcomeUnknown,
	} {
		s, err := sent(egress.Outcome{Event: event, Code: "c", Detail: "d", Retryable: true, Steps: []egress.StepOutcome{{Step: 1, Event: core.EventReplyOK}, {Step: 2, Event: event}}})
		if err != nil || s.Outcome != want || (event == core.EventUncertain && s.Error.Retryable) {
			t.Errorf("%s: %+v, %v", event, s, err)
		}
	}
}
