package event_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func emit(db *store.DB, b *event.Bus, ws, run, kind string) error {
	return db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		return b.Emit(ctx, tx, core.Event{WorkspaceID: ws, RunID: &run, Type: kind, Data: core.EventData{"k": kind}})
	})
}

func next(t *testing.T, ch <-chan event.Stored) event.Stored {
	t.Helper()
	select {
	case e, ok := <-ch:
		if !ok {
			t.Fatal("the channel is closed")
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
	}
	panic("unreachable")
}

func TestReplayThenLive(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		b := event.NewBus(db, core.SystemClock{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 450 { // more than two batches
			if err := emit(db, b, "ws_a", "run_1", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		for _, other := range [][2]string{{"ws_a", "run_2"}, {"ws_b", "run_1"}} {
			if err := emit(db, b, other[0], other[1], "other"); err != nil {
				t.Fatal(err)
			}
		}
		ch := b.Subscribe(ctx, "ws_a", "run_1", 0)
		live := b.Subscribe(ctx, "ws_a", "", event.FromNow)
		var last event.Stored
		for i := range 450 {
			e := next(t, ch)
			if e.Type != fmt.Sprint(i) || e.Data["k"] != e.Type || *e.RunID != "run_1" || e.Seq <= last.Seq || e.ID == "" || e.At.IsZero() {
				t.Fatalf("event %d: %+v", i, e)
			}
			last = e
		}
		rolledBack := errors.New("rolled back")
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(b.Emit(ctx, tx, core.Event{WorkspaceID: "ws_a", Type: "ghost"}), rolledBack)
		})
		if !errors.Is(err, rolledBack) {
			t.Fatal(err)
		}
		// The live follower may have subscribed before or after; it gets this one once it follows.
		if err := emit(db, b, "ws_a", "run_1", "live"); err != nil {
			t.Fatal(err)
		}
		if e := next(t, ch); e.Type != "live" {
			t.Errorf("got %+v", e)
		}
		resumed := b.Subscribe(ctx, "ws_a", "run_1", last.Seq)
		if e := next(t, resumed); e.Type != "live" {
			t.Errorf("resumed with %+v", e)
		}
		cancel()
		for range ch {
		}
		for range live {
		}
		for range resumed {
		}
	})
}

func TestEventsOfAnotherHostArrive(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		here, there := testdb.Open(t, url, nil), testdb.Open(t, url, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ch := event.NewBus(here, core.SystemClock{}, nil).Subscribe(ctx, "ws_a", "", 0)
		for i := range 3 {
			if err := emit(there, event.NewBus(there, core.SystemClock{}, nil), "ws_a", "run_1", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if e := next(t, ch); e.Type != fmt.Sprint(i) {
				t.Fatalf("%+v", e)
			}
		}
		cancel()
		for range ch {
		}
	})
}

// A follower must see every event, although writers commit side by side: a number
// that appears after a larger one was read would be lost for good.
func TestNothingIsSkippedUnderConcurrentWriters(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		b := event.NewBus(db, core.SystemClock{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ch := b.Subscribe(ctx, "ws_a", "", 0)
		const writers, each = 8, 20
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if err := emit(db, b, "ws_a", "run_1", fmt.Sprintf("%d/%d", w, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		seen := map[string]bool{}
		last := int64(0)
		for range writers * each {
			e := next(t, ch)
			if e.Seq != last+1 {
				t.Errorf("number %d after %d", e.Seq, last)
			}
			last = e.Seq
			seen[e.Type] = true
		}
		wg.Wait()
		if len(seen) != writers*each {
			t.Errorf("%d of %d events", len(seen), writers*each)
		}
		cancel()
		for range ch {
		}
	})
}

func TestPurgeKeepsWhatCanBeReplayed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		b := event.NewBus(db, core.SystemClock{}, nil)
		now := time.Now()
		err := db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(b.Emit(ctx, tx, core.Event{WorkspaceID: "ws_a", Type: "old", At: now.Add(-event.Keep - time.Hour)}),
				b.Emit(ctx, tx, core.Event{WorkspaceID: "ws_a", Type: "kept", At: now.Add(-event.Keep + time.Hour)}))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := b.Purge(t.Context()); n != 1 || err != nil {
			t.Errorf("%d removed, %v", n, err)
		}
		rows, err := db.EventsAfter(t.Context(), "ws_a", "", 0, 10)
		if err != nil || len(rows) != 1 || rows[0].Type != "kept" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}
