package jobs

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// told is one request that reached the receiver, verified.
type told struct {
	id, kind string
	data     map[string]any
	at       time.Time
}

// receiver is a webhook's other end. Its verifier is the reference library.
type receiver struct {
	*httptest.Server
	t    *testing.T
	news chan told

	mu      sync.Mutex
	verify  *standardwebhooks.Webhook
	answers []int // of the next requests; 200 after them
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, news: make(chan told, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.verify.Verify(body, q.Header); err != nil {
		r.t.Errorf("signature: %v", err)
	}
	if q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" || q.Header.Get("Authorization") != "" || q.Header.Get("Cookie") != "" {
		r.t.Errorf("%s with %v", q.Method, q.Header)
	}
	var m struct {
		Type string
		Data map[string]any
	}
	if err := json.Unmarshal(body, &m); err != nil {
		r.t.Error(err)
	}
	status := 200
	if len(r.answers) > 0 {
		status, r.answers = r.answers[0], r.answers[1:]
	}
	r.news <- told{q.Header.Get("webhook-id"), m.Type, m.Data, time.Now()}
	if status == http.StatusFound {
		w.Header().Set("Location", r.URL+"/elsewhere")
	}
	w.WriteHeader(status)
}

func (r *receiver) next(t *testing.T) told {
	t.Helper()
	select {
	case m := <-r.news:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("nothing arrived")
	}
	panic("unreachable")
}

// hookRig is a host that delivers.
type hookRig struct {
	t     *testing.T
	db    *store.DB
	bus   *event.Bus
	hooks *event.Hooks
	owner core.Principal
}

func deliverTo(t *testing.T, db *store.DB, allowed ...string) *hookRig {
	t.Helper()
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	clock := core.SystemClock{}
	out, err := egress.New(egress.Config{AllowPrivate: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	r := &hookRig{t: t, db: db, bus: event.NewBus(db, clock, nil), owner: core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", WorkspaceID: "ws_a", Scopes: core.Scopes(), AuthTime: time.Now()}}
	r.hooks = event.NewHooks(event.HookDeps{DB: db, Bus: r.bus, Audit: audit.New(db, keys, clock, nil), Keys: keys, Clock: clock, Check: out.Check})
	j, err := New(db, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := j.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	work := Work{Execute: func(context.Context, string) error { return nil }, Advance: func(context.Context, string, string) error { return nil },
		Expire: func(context.Context) (int, error) { return 0, nil }, Sweep: func(context.Context) error { return nil }, Webhooks: &Webhooks{Hooks: r.hooks, Egress: out}}
	if err := j.Start(ctx, work); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *hookRig) subscribe(to *receiver, address string, types ...string) *core.WebhookSubscription {
	r.t.Helper()
	w, err := r.hooks.Create(r.t.Context(), r.owner, address, types)
	if err != nil {
		r.t.Fatal(err)
	}
	verify, err := standardwebhooks.NewWebhook(*w.Secret)
	if err != nil {
		r.t.Fatal(err)
	}
	if to != nil {
		to.mu.Lock()
		to.verify = verify
		to.mu.Unlock()
	}
	return w
}

func (r *hookRig) emit(ws, kind, action string) {
	r.t.Helper()
	run := "run_1"
	err := r.db.InTx(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return r.bus.Emit(ctx, tx, core.Event{WorkspaceID: ws, RunID: &run, ActionID: &action, Type: kind, Data: core.EventData{"status": "approved"}})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func hostPort(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestEventsReachTheirWebhook(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		to := newReceiver(t)
		r := deliverTo(t, db, hostPort(t, to.URL))
		r.subscribe(to, to.URL+"/hook?token=abc", event.ActionApproved, event.ActionSucceeded)
		r.emit("ws_a", event.ActionApproved, "act_1")
		r.emit("ws_b", event.ActionApproved, "act_of_others")
		r.emit("ws_a", event.ActionFailed, "act_unasked")
		r.emit("ws_a", event.ActionSucceeded, "act_1")
		var ids []string
		for _, kind := range []string{event.ActionApproved, event.ActionSucceeded} { // in their order
			m := to.next(t)
			if m.kind != kind || m.data["actionId"] != "act_1" || m.data["runId"] != "run_1" || m.data["workspaceId"] != "ws_a" || m.data["status"] != "approved" || len(m.data) != 4 {
				t.Errorf("%+v", m)
			}
			ids = append(ids, m.id)
		}
		if ids[0] == ids[1] || !core.HasPrefix(ids[0], core.PrefixEvent) {
			t.Errorf("ids %v", ids)
		}
	})
}

// TestDeliveryIsRetried has the receiver fail at first: the same message comes again
// after the pause, under the same id, and what waited with it follows.
func TestDeliveryIsRetried(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		to := newReceiver(t)
		to.answers = []int{http.StatusFound} // a redirect is not followed, and is no success
		r := deliverTo(t, db, hostPort(t, to.URL))
		r.subscribe(to, to.URL, event.ActionApproved)
		r.emit("ws_a", event.ActionApproved, "act_1")
		first := to.next(t)
		r.emit("ws_a", event.ActionApproved, "act_2")
		var again []told
		for len(again) < 2 {
			again = append(again, to.next(t))
		}
		slices.SortFunc(again, func(a, b told) int { // the second may overtake: it was due at once
			if a.data["actionId"] == "act_1" {
				return -1
			}
			return 1
		})
		pause := again[0].at.Sub(first.at)
		t.Logf("repeated after %s", pause)
		if again[0].id != first.id || again[0].data["actionId"] != "act_1" || pause < 4900*time.Millisecond || pause > 5*time.Second+tolerance {
			t.Errorf("%+v came again as %+v", first, again[0])
		}
		if again[1].data["actionId"] != "act_2" {
			t.Errorf("%+v", again[1])
		}
	})
}

func TestGoneEndsDeliveries(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		to := newReceiver(t)
		to.answers = []int{http.StatusGone}
		r := deliverTo(t, db, hostPort(t, to.URL))
		w := r.subscribe(to, to.URL, event.ActionApproved)
		r.emit("ws_a", event.ActionApproved, "act_1")
		to.next(t)
		waitFor(t, func() bool {
			row, err := db.Webhook(t.Context(), "ws_a", w.ID)
			return err == nil && row.Disabled
		})
	})
}

// TestPrivateAddressesAreNotTold has a name that leads into a private network: nothing
// is sent, and the delivery is not given up, since the owner may list the address.
func TestPrivateAddressesAreNotTold(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		reached := make(chan struct{})
		go func() {
			if conn, err := listener.Accept(); err == nil {
				conn.Close()
				close(reached)
			}
		}()
		r := deliverTo(t, db)
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r.subscribe(nil, "https://localhost:"+port, event.ActionApproved)
		r.emit("ws_a", event.ActionApproved, "act_1")
		waitFor(t, func() bool {
			rows, err := db.SystemDueDeliveries(t.Context(), time.Now().Add(time.Hour), 10)
			return err == nil && len(rows) == 1 && rows[0].Error == "address_refused" && rows[0].Attempt == 1
		})
		select {
		case <-reached:
			t.Error("the private address was reached")
		default:
		}
	})
}

// waitFor asks until a condition that nothing announces holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("it does not come to hold")
		case <-tick.C:
		}
	}
}

func TestBusyLooksOnceMore(t *testing.T) {
	var b busy
	hook := deliverArgs{"ws_a", "whk_1"}
	if !b.enter(hook) || b.enter(hook) || !b.enter(deliverArgs{"ws_a", "whk_2"}) {
		t.Fatal("one at a time for each webhook")
	}
	if !b.leave(hook, false) { // somebody asked meanwhile
		t.Error("what was asked for is forgotten")
	}
	if b.leave(hook, false) || !b.enter(hook) {
		t.Error("nobody asked")
	}
	b.enter(hook)
	if b.leave(hook, true) || !b.enter(hook) {
		t.Error("giving up goes round again, or holds on")
	}
}
