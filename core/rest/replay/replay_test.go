package replay

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

type clock struct{ at time.Time }

func (c *clock) Now() time.Time { return c.at }

func slot(key string, request byte) Slot {
	return Slot{WorkspaceID: "ws_1", Principal: "key_1", Key: key, Request: [32]byte{request}}
}

func each(t *testing.T, test func(t *testing.T, s *Store, c *clock)) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		c := &clock{at: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
		test(t, New(db, c), c)
	})
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}

func TestReplay(t *testing.T) {
	each(t, func(t *testing.T, s *Store, c *clock) {
		ctx := t.Context()
		begin := func(key string, request byte) (*Reply, string) {
			r, err := s.Begin(ctx, slot(key, request))
			return r, code(err)
		}
		if r, e := begin("a", 1); r != nil || e != "" {
			t.Fatalf("first: %v %s", r, e)
		}
		if _, e := begin("a", 1); e != "still_running" {
			t.Errorf("while running: %s", e)
		}
		if _, e := begin("a", 2); e != "idempotency_key_reused" {
			t.Errorf("another request: %s", e)
		}
		if err := s.Finish(ctx, slot("a", 1), Reply{Status: 200, Header: map[string]string{"ETag": `"x"`}, Body: []byte("{\"a\":\x00}")}); err != nil {
			t.Fatal(err)
		}
		r, e := begin("a", 1)
		if e != "" || r == nil || r.Status != 200 || r.Header["ETag"] != `"x"` || string(r.Body) != "{\"a\":\x00}" {
			t.Errorf("replay: %+v %s", r, e)
		}
		if _, e := begin("a", 2); e != "idempotency_key_reused" {
			t.Errorf("another request after the end: %s", e)
		}
		for _, key := range []string{"", strings.Repeat("k", MaxKey+1), "a\n", "ä"} {
			if _, e := begin(key, 1); e != "malformed_idempotency_key" {
				t.Errorf("%q: %s", key, e)
			}
		}

		if _, e := begin("b", 1); e != "" {
			t.Fatal(e)
		}
		if err := s.Abandon(ctx, slot("b", 1)); err != nil {
			t.Fatal(err)
		}
		if r, e := begin("b", 2); r != nil || e != "" {
			t.Errorf("a key given free: %v %s", r, e)
		}
		c.at = c.at.Add(Abandoned) // the host that ran b died
		if r, e := begin("b", 2); r != nil || e != "" {
			t.Errorf("a dead request blocks its key: %v %s", r, e)
		}
		if n, err := s.Purge(ctx); n != 0 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		c.at = c.at.Add(Keep)
		if r, e := begin("a", 1); r != nil || e != "" {
			t.Errorf("remembered beyond its time: %v %s", r, e)
		}
		c.at = c.at.Add(time.Second)
		if n, err := s.Purge(ctx); n != 1 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
	})
}

func TestOnlyOneOfManyBegins(t *testing.T) {
	each(t, func(t *testing.T, s *Store, _ *clock) {
		var began, waits atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				switch r, err := s.Begin(context.Background(), slot("a", 1)); {
				case r == nil && err == nil:
					began.Add(1)
				case code(err) == "still_running":
					waits.Add(1)
				default:
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		wg.Wait()
		if began.Load() != 1 || waits.Load() != 15 {
			t.Errorf("%d began, %d wait", began.Load(), waits.Load())
		}
	})
}
