package jobs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// seen collects what workers were woken for.
type seen struct {
	mu   sync.Mutex
	ids  []string
	news chan struct{}
}

func (s *seen) add(id string) {
	s.mu.Lock()
	s.ids = append(s.ids, id)
	s.mu.Unlock()
	s.news <- struct{}{}
}

func (s *seen) wait(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		got := slices.Clone(s.ids)
		s.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-s.news:
		case <-deadline:
			t.Fatalf("woken for %v, want %d", got, n)
		}
	}
}

func start(t *testing.T, db *store.DB) (*Jobs, *seen) {
	t.Helper()
	j, err := New(db, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := j.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	s := &seen{news: make(chan struct{}, 100)}
	work := Work{
		Execute: func(_ context.Context, id string) error { s.add(id); return errors.New("tried once only") },
		Advance: func(_ context.Context, ws, id string) error { s.add(ws + " " + id); return nil },
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
	return j, s
}

func TestJobsFollowTheTransaction(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		j, s := start(t, db)
		ctx := t.Context()
		rollback := errors.New("rolled back")
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := j.EnqueueExecute(ctx, tx, "act_rolled_back", time.Now()); err != nil {
				return err
			}
			return rollback
		})
		if !errors.Is(err, rollback) {
			t.Fatal(err)
		}
		err = db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(j.EnqueueExecute(ctx, tx, "act_1", time.Now()), j.EnqueueExecute(ctx, tx, "act_later", time.Now().Add(time.Hour)),
				j.EnqueueAdvance(ctx, tx, "run_gone"), j.EnqueueExecute(ctx, tx, "act_2", time.Now()))
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.wait(t, 2)
		slices.Sort(got)
		if !slices.Equal(got, []string{"act_1", "act_2"}) {
			t.Errorf("woken for %v", got)
		}
	})
}

func TestAdvanceCarriesTheWorkspace(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		j, s := start(t, db)
		ctx := t.Context()
		run := newRun(t, db)
		if err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return j.EnqueueAdvance(ctx, tx, run.ID) }); err != nil {
			t.Fatal(err)
		}
		if got := s.wait(t, 1); got[0] != string(run.WorkspaceID)+" "+run.ID {
			t.Errorf("woken for %v", got)
		}
	})
}

// TestPatrolWakesForgottenRuns stands for a job that was lost: only the row says that
// there is work.
func TestPatrolWakesForgottenRuns(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		run := newRun(t, db)
		j, s := start(t, db)
		for range 3 { // repeats within a minute are one job
			if err := j.Patrol(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.wait(t, 1); got[0] != string(run.WorkspaceID)+" "+run.ID {
			t.Errorf("woken for %v", got)
		}
		list, err := j.client.JobList(t.Context(), river.NewJobListParams())
		if err != nil || len(list.Jobs) != 1 {
			t.Errorf("%d jobs, %v; want one", len(list.Jobs), err)
		}
	})
}

func newRun(t *testing.T, db *store.DB) *store.Run {
	t.Helper()
	long := time.Now().Add(-time.Hour)
	run := &store.Run{ID: core.NewID(core.PrefixRun, long), WorkspaceID: store.WorkspaceID(core.NewID(core.PrefixWorkspace, long)), Goal: "g", Operator: "marketing",
		Phase: core.PhaseCreated, Status: core.RunStatusCreated, Skills: []string{}, Work: store.WorkWanted, CreatedAt: store.At(long), UpdatedAt: store.At(long), Version: 1}
	err := db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		ws := &store.Workspace{ID: run.WorkspaceID, Name: "w", CreatedAt: store.At(long)}
		if err := tx.InsertWorkspace(ctx, ws); err != nil {
			return err
		}
		return tx.InsertRun(ctx, run)
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}
