package usage_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/core/usage"
)

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

func TestMeterCounts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		c := &clock{at: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)}
		m := usage.New(db, c)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if err := m.Record(ctx, "ws_a", "mkt_brief", 0.1, i%4 == 0); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := m.RecordCost(ctx, "ws_a", "mkt_write", 2, 1500, false); err != nil {
			t.Fatal(err)
		}
		if err := m.Record(ctx, "ws_b", "mkt_write", 7, false); err != nil {
			t.Fatal(err)
		}
		u, err := m.Usage(ctx, "ws_a")
		if err != nil {
			t.Fatal(err)
		}
		if u.Calls != 41 || u.Credits.Used != 5 || u.CostMicros != 1500 || len(u.ByTool) != 2 || u.Plan != usage.FreePlan {
			t.Errorf("%+v", u)
		}
		if b := u.ByTool[0]; b.Tool != "mkt_brief" || b.Calls != 40 || b.Errors != 10 || b.Credits != 3 {
			t.Errorf("%+v", b)
		}
		if g := u.Guardrails[1]; g.Name != "daily_calls" || g.Used != 41 || !g.ResetsAt.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v", g)
		}
		c.set(time.Date(2026, 12, 1, 0, 0, 1, 0, time.UTC))
		if u, err = m.Usage(ctx, "ws_a"); err != nil || u.Calls != 0 || u.ByTool == nil || u.Guardrails[1].Used != 0 {
			t.Errorf("a new month: %+v, %v", u, err)
		}
	})
}

func TestBudget(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		c := &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
		m := usage.New(db, c)
		plan := usage.PlanOf("individual")
		for _, w := range []store.Workspace{{ID: "ws_paid", Plan: plan.Name}, {ID: "ws_free"}} {
			if err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertWorkspace(ctx, &w) }); err != nil {
				t.Fatal(err)
			}
			if err := m.Record(ctx, w.ID, "mkt_write", plan.Credits-1, false); err != nil {
				t.Fatal(err)
			}
			if err := m.Allow(ctx, w.ID); err != nil {
				t.Errorf("%s with one credit left: %v", w.ID, err)
			}
			if err := m.Record(ctx, w.ID, "mkt_write", 1, false); err != nil {
				t.Fatal(err)
			}
		}
		err := m.Allow(ctx, "ws_paid")
		e := core.AsError(err)
		if e.Code != "budget_exceeded" || e.Kind != core.KindRateLimited || e.RetryAfter != 9*24*time.Hour+12*time.Hour {
			t.Errorf("%v, retry after %v", err, e.RetryAfter)
		}
		if err := m.Allow(ctx, "ws_free"); err != nil {
			t.Errorf("the free mode only warns: %v", err)
		}
		c.set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		if err := m.Allow(ctx, "ws_paid"); err != nil {
			t.Errorf("a new month: %v", err)
		}
	})
}
