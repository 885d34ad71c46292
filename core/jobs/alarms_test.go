package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// tolerance is how late a job may start on a busy machine; left to River alone it would
// be up to five seconds. An idle machine needs about a tenth of a second.
const tolerance = 1500 * time.Millisecond

type woken struct {
	id string
	at time.Time
}

// startTimed is a queue that tells when it was woken.
func startTimed(t *testing.T, db *store.DB) (*Jobs, <-chan woken) {
	t.Helper()
	j, err := New(db, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := j.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	ch := make(chan woken, 100)
	work := Work{
		Execute: func(_ context.Context, id string) error { ch <- woken{id, time.Now()}; return nil },
		Advance: func(context.Context, string, string) error { return nil },
		Expire:  func(context.Context) (int, error) { return 0, nil },
		Sweep:   func(context.Context) error { return nil },
	}
	if err := j.Start(ctx, work); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return j, ch
}

func onTime(t *testing.T, ch <-chan woken, id string, due time.Time) {
	t.Helper()
	select {
	case w := <-ch:
		late := w.at.Sub(due)
		t.Logf("%s started %s after its time", w.id, late)
		if w.id != id || late < 0 || late > tolerance {
			t.Errorf("woken for %s %s after the time of %s", w.id, late, id)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("not woken for %s", id)
	}
}

func TestActionsStartOnTime(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		j, ch := startTimed(t, db)
		soon, later := time.Now().Add(700*time.Millisecond), time.Now().Add(1300*time.Millisecond)
		err := db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(j.EnqueueExecute(ctx, tx, "act_later", later), j.EnqueueExecute(ctx, tx, "act_soon", soon), j.EnqueueExecute(ctx, tx, "act_tomorrow", soon.Add(24*time.Hour)))
		})
		if err != nil {
			t.Fatal(err)
		}
		rolledBack := errors.New("rolled back")
		err = db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(j.EnqueueExecute(ctx, tx, "act_ghost", soon), rolledBack)
		})
		if !errors.Is(err, rolledBack) {
			t.Fatal(err)
		}
		onTime(t, ch, "act_soon", soon)
		onTime(t, ch, "act_later", later)
	})
}

// TestPatrolLooksAhead stands for an action that another host approved before it died:
// only the row says when it is due.
func TestPatrolLooksAhead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		j, ch := startTimed(t, db)
		now := time.Now()
		due := now.Add(1200 * time.Millisecond)
		a := &store.Action{ID: core.NewID(core.PrefixAction, now), WorkspaceID: "ws_1", RunID: "run_1", Status: core.ActionStatusApproved, Executor: core.ActionExecutorConnector,
			ExecuteAt: store.At(now), NextTryAt: store.At(due), ExpiresAt: store.At(now.Add(time.Hour)), CreatedAt: store.At(now), UpdatedAt: store.At(now)}
		if err := db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, a) }); err != nil {
			t.Fatal(err)
		}
		for range 3 { // one alarm, however many patrols
			if err := j.Patrol(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		onTime(t, ch, a.ID, store.At(due).Time)
		select {
		case w := <-ch:
			t.Errorf("woken again for %s", w.id)
		case <-time.After(3 * pollEvery):
		}
	})
}

type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func TestPurgeEveryHour(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		clock := &movedClock{}
		j, err := New(db, clock, nil)
		if err != nil {
			t.Fatal(err)
		}
		purges, broken := 0, errors.New("broken")
		var answer error
		j.work = Work{Expire: func(context.Context) (int, error) { return 0, nil }, Sweep: func(context.Context) error { return nil },
			Purge: func(context.Context) error { purges++; return answer }}
		if err := j.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			pass   time.Duration
			answer error
			want   int
		}{{0, nil, 1}, {59 * time.Minute, nil, 1}, {time.Minute, broken, 2}, {time.Second, nil, 3}, {59 * time.Minute, nil, 3}, {time.Minute, nil, 4}} {
			clock.ahead.Add(int64(step.pass))
			answer = step.answer
			err := j.Patrol(t.Context())
			if purges != step.want || step.answer != nil && !errors.Is(err, broken) || step.answer == nil && err != nil {
				t.Errorf("step %d: %d purges, want %d; %v", i, purges, step.want, err)
			}
		}
	})
}
