package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// rig is the webhooks of one host.
type rig struct {
	t     *testing.T
	db    *store.DB
	bus   *event.Bus
	hooks *event.Hooks
}

func newRig(t *testing.T, db *store.DB) *rig {
	t.Helper()
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	clock := core.SystemClock{}
	bus := event.NewBus(db, clock, nil)
	check := func(address string) error {
		if strings.HasPrefix(address, "https://") {
			return nil
		}
		return core.Errf(core.KindInvalid, "address_refused", "%s is not encrypted.", address)
	}
	return &rig{t, db, bus, event.NewHooks(event.HookDeps{DB: db, Bus: bus, Audit: audit.New(db, keys, clock, nil), Keys: keys, Clock: clock, Check: check})}
}

func owner(ws string) core.Principal {
	return core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", Label: "ada@example.com", WorkspaceID: ws, Role: core.UserRoleOwner, Scopes: core.Scopes(), AuthTime: time.Now()}
}

func (r *rig) hook(ws string, types ...string) *core.WebhookSubscription {
	r.t.Helper()
	w, err := r.hooks.Create(r.t.Context(), owner(ws), "https://hooks.example.com/"+ws, types)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *rig) emit(ws, kind string) {
	r.t.Helper()
	if err := emit(r.db, r.bus, ws, "run_1", kind); err != nil {
		r.t.Fatal(err)
	}
}

// fan hands out all events and returns the webhooks that were woken.
func (r *rig) fan() (woken []string) {
	r.t.Helper()
	for more := true; more; {
		var err error
		more, err = r.hooks.FanOut(r.t.Context(), func(_ context.Context, _ *store.Tx, ws, id string) error {
			woken = append(woken, ws+" "+id)
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return woken
}

func (r *rig) due(in time.Duration) []store.WebhookDelivery {
	r.t.Helper()
	rows, err := r.db.SystemDueDeliveries(r.t.Context(), time.Now().Add(in), 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

func (r *rig) begin(d *store.WebhookDelivery) *event.Message {
	r.t.Helper()
	m, err := r.hooks.Begin(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) settle(d *store.WebhookDelivery, status int, rest ...store.WebhookDelivery) time.Time {
	r.t.Helper()
	next, err := r.hooks.Settle(r.t.Context(), d, status, "", rest)
	if err != nil {
		r.t.Fatal(err)
	}
	return next
}

func TestSubscriptions(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db)
		made := r.hook("ws_a", event.RunCreated, event.ActionFailed)
		if made.Secret == nil || !strings.HasPrefix(*made.Secret, "whsec_") || made.Disabled || len(made.Events) != 2 || !core.HasPrefix(made.ID, core.PrefixHook) {
			t.Fatalf("%+v", made)
		}
		page, err := r.hooks.List(t.Context(), owner("ws_a"), core.Query{})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != made.ID || page.Items[0].Secret != nil {
			t.Errorf("%+v, %v", page, err)
		}
		if page, err := r.hooks.List(t.Context(), owner("ws_b"), core.Query{}); err != nil || len(page.Items) != 0 {
			t.Errorf("another workspace sees %+v, %v", page, err)
		}
		if err := r.hooks.Delete(t.Context(), owner("ws_b"), made.ID); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("another workspace deletes: %v", err)
		}
		stale, member := owner("ws_a"), owner("ws_a")
		stale.AuthTime = time.Now().Add(-time.Hour)
		member.Scopes = core.ScopesOfRole(core.UserRoleMember)
		for _, c := range []struct {
			who   core.Principal
			url   string
			types []string
			want  string
		}{
			{stale, "https://a.example/", []string{event.RunCreated}, "weak_proof"},
			{member, "https://a.example/", []string{event.RunCreated}, "missing_scope"},
			{owner("ws_a"), "http://a.example/", []string{event.RunCreated}, "address_refused /url"},
			{owner("ws_a"), "https://a.example/" + strings.Repeat("x", 2000), []string{event.RunCreated}, "invalid /url"},
			{owner("ws_a"), "https://a.example/", nil, "invalid /events"},
			{owner("ws_a"), "https://a.example/", []string{event.RunCreated, "run.imagined"}, "invalid /events/1"},
			{owner("ws_a"), "https://a.example/", []string{event.RunCreated, event.RunCreated}, "invalid /events/1"},
		} {
			_, err := r.hooks.Create(t.Context(), c.who, c.url, c.types)
			e, _ := errors.AsType[*core.Error](err)
			if e == nil {
				t.Errorf("%+v: %v", c, err)
				continue
			}
			got := e.Code
			for _, f := range e.Fields {
				got += " " + f.Pointer
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
		if err := r.hooks.Delete(t.Context(), owner("ws_a"), made.ID); err != nil {
			t.Fatal(err)
		}
		for range event.MaxHooks {
			r.hook("ws_a", event.RunCreated)
		}
		_, err = r.hooks.Create(t.Context(), owner("ws_a"), "https://a.example/", []string{event.RunCreated})
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Code != "too_many_webhooks" {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

func TestFanOutAndMessage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db)
		r.emit("ws_a", event.RunCreated) // before anybody wanted it
		if woken := r.fan(); len(woken) != 0 {
			t.Errorf("woken %v", woken)
		}
		hook := r.hook("ws_a", event.RunCreated, event.ActionFailed)
		r.emit("ws_a", event.RunUpdated)
		r.emit("ws_b", event.RunCreated)
		for range 250 {
			r.emit("ws_a", event.RunCreated)
		}
		if woken := r.fan(); len(woken) != 2 || woken[0] != "ws_a "+hook.ID { // once in each batch
			t.Errorf("woken %v", woken)
		}
		if woken := r.fan(); len(woken) != 0 {
			t.Errorf("woken again: %v", woken)
		}
		due := r.due(0)
		if len(due) != 250 {
			t.Fatalf("%d deliveries", len(due))
		}
		d, same := due[0], due[0]
		m := r.begin(&d)
		if m == nil || m.URL != hook.URL || m.Secret.Reveal() != *hook.Secret || !core.HasPrefix(m.ID, core.PrefixEvent) || d.Attempt != 1 {
			t.Fatalf("%+v, %+v", m, d)
		}
		var body struct {
			Type      string
			Timestamp time.Time
			Data      map[string]string
		}
		if err := json.Unmarshal(m.Body, &body); err != nil || body.Type != event.RunCreated || body.Timestamp.IsZero() || fmt.Sprint(body.Data) != "map[k:run.created runId:run_1 workspaceId:ws_a]" {
			t.Errorf("%s, %v", m.Body, err)
		}
		if again := r.begin(&same); again != nil {
			t.Error("two hosts have the same attempt")
		}
		if now, lost := len(r.due(50*time.Second)), len(r.due(2*time.Minute)); now != 249 || lost != 250 {
			t.Errorf("while one is being sent %d are due, and %d once it is taken for lost", now, lost)
		}
		if next := r.settle(&d, 204); !next.IsZero() || len(r.due(24*time.Hour)) != 249 {
			t.Errorf("next %s, %d left", next, len(r.due(24*time.Hour)))
		}
	})
}

// TestTwoHostsFanOutOnce has two hosts hand out the same events side by side.
func TestTwoHostsFanOutOnce(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		here := newRig(t, testdb.Open(t, url, nil))
		there := newRig(t, testdb.Open(t, url, nil))
		here.hook("ws_a", event.RunCreated)
		const events = 60
		var wg sync.WaitGroup
		done := make(chan struct{})
		for _, r := range []*rig{here, there} {
			wg.Go(func() {
				for ended := false; !ended; {
					select {
					case <-done:
						ended = true // and once more
					default:
					}
					r.fan()
				}
			})
		}
		for range events {
			here.emit("ws_a", event.RunCreated)
		}
		close(done)
		wg.Wait()
		seen := map[int64]int{}
		for _, d := range here.due(time.Hour) {
			seen[d.EventSeq]++
		}
		for seq, n := range seen {
			if n != 1 {
				t.Errorf("event %d goes out %d times", seq, n)
			}
		}
		if len(seen) != events {
			t.Errorf("%d of %d events", len(seen), events)
		}
	})
}

func TestAttempts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db)
		r.hook("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.fan()
		due := r.due(0)
		d, rest := due[0], due[1]
		last, attempts := time.Duration(0), 0
		for {
			if r.begin(&d) == nil {
				t.Fatal("nothing to send")
			}
			attempts++
			next := r.settle(&d, 503, rest)
			if attempts == 1 { // the other waits with it, and no attempt is counted
				if now := r.due(0); len(now) != 0 {
					t.Errorf("due at once: %+v", now)
				}
				rest = r.due(2 * time.Minute)[1]
				if rest.ID == d.ID || rest.Attempt != 0 {
					t.Errorf("%+v", rest)
				}
			}
			rows := r.due(10 * 24 * time.Hour)
			if next.IsZero() {
				break
			}
			wait := time.Until(next)
			if wait <= last {
				t.Errorf("attempt %d waits %s after %s", attempts, wait, last)
			}
			last = wait
			for _, row := range rows { // as the next attempt would read it
				if row.ID == d.ID {
					d = row
				}
			}
		}
		if attempts != 10 || last < 19*time.Hour {
			t.Errorf("%d attempts, the last after %s", attempts, last)
		}
		if left := r.due(10 * 24 * time.Hour); len(left) != 1 || left[0].ID != rest.ID {
			t.Errorf("left: %+v", left)
		}
	})
}

func TestGoneDisables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db)
		r.hook("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.fan()
		due := r.due(0)
		if r.begin(&due[0]) == nil {
			t.Fatal("nothing to send")
		}
		if next := r.settle(&due[0], 410); !next.IsZero() {
			t.Errorf("tried again at %s", next)
		}
		page, err := r.hooks.List(t.Context(), owner("ws_a"), core.Query{})
		if err != nil || !page.Items[0].Disabled {
			t.Errorf("%+v, %v", page, err)
		}
		if r.begin(&due[1]) != nil {
			t.Error("a disabled webhook is told")
		}
		r.emit("ws_a", event.RunCreated)
		r.fan()
		if left := r.due(time.Hour); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		entries, err := db.AllAuditEntries(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range entries {
			found = found || e.Action == "webhook.disabled"
		}
		if !found {
			t.Error("the log does not tell")
		}
	})
}

func TestDeletedWhileDelivering(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db)
		w := r.hook("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.emit("ws_a", event.RunCreated)
		r.fan()
		due := r.due(0)
		if r.begin(&due[0]) == nil {
			t.Fatal("nothing to send")
		}
		if err := r.hooks.Delete(t.Context(), owner("ws_a"), w.ID); err != nil {
			t.Fatal(err)
		}
		r.settle(&due[0], 200)
		if r.begin(&due[1]) != nil || len(r.due(time.Hour)) != 0 {
			t.Error("a deleted webhook is told")
		}
	})
}
