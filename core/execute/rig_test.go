package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// provider is a receiver outside the host that keeps the ledger of everything it got.
// The ledger is the oracle: no test trusts our own state.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	ledger  map[string][]string // webhook-id → hashes of bodies, in order
	arrived chan string
	answer  func(w http.ResponseWriter, r *http.Request)
}

func newProvider(t *testing.T) *provider {
	p := &provider{ledger: map[string][]string{}, arrived: make(chan string, 1000), answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }}
	verify, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := verify.Verify(body, r.Header); err != nil {
			t.Errorf("signature: %v", err)
		}
		id, sum := r.Header.Get("webhook-id"), sha256.Sum256(body)
		p.mu.Lock()
		p.ledger[id] = append(p.ledger[id], hex.EncodeToString(sum[:]))
		answer := p.answer
		p.mu.Unlock()
		p.arrived <- id
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// answers sets what the provider says from now on.
func (p *provider) answers(f func(http.ResponseWriter, *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *provider) got(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger[id]
}

// rig is one host without surfaces and plugin processes.
type rig struct {
	t          testing.TB
	db         *store.DB
	approval   *approval.Service
	runs       *run.Service
	connectors *connector.Service
	egress     *egress.Egress
	owner      core.Principal
	woken      *wakes
}

// wakes is a queue that only remembers.
type wakes struct {
	mu  sync.Mutex
	ids []string
}

func (w *wakes) EnqueueExecute(_ context.Context, _ *store.Tx, id string, _ time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids = append(w.ids, id)
	return nil
}

// digests stands for the plugin registry.
type digests struct{}

func (digests) CurrentDigests(string, string) (string, string, bool) { return "m1", "t1", true }

// newRig makes the services of a host on a database. Rigs with the same keys directory
// and database are hosts of one installation.
func newRig(t testing.TB, db *store.DB, keysDir string, allow ...string) *rig {
	t.Helper()
	keys, err := secret.Open(keysDir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	out, err := egress.New(egress.Config{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	clock := core.SystemClock{}
	log := audit.New(db, keys, clock, nil)
	bus := event.NewBus(db, clock, nil)
	r := &rig{t: t, db: db, egress: out, woken: &wakes{}}
	r.runs = run.New(run.Deps{DB: db, Audit: log, Events: bus, Clock: clock, BaseURL: "http://localhost:8080"})
	r.approval = approval.New(approval.Deps{DB: db, Audit: log, Events: bus, Runs: r.runs, Keys: keys, Enqueue: r.woken, Plugins: digests{}, Clock: clock})
	r.connectors = connector.New(connector.Deps{DB: db, Audit: log, Events: bus, Keys: keys, Egress: out, Clock: clock,
		Manifests: func() []schemas.Manifest { return []schemas.Manifest{sdk.ManifestOf(webhook.Plugin())} }, BaseURL: "http://localhost:8080"})
	return r
}

// settle adds a workspace with one owner.
func (r *rig) settle() {
	r.t.Helper()
	now := time.Now().UTC()
	ws, user := store.WorkspaceID(core.NewID(core.PrefixWorkspace, now)), core.NewID(core.PrefixUser, now)
	r.owner = core.Principal{Kind: core.ActorKindPerson, ID: user, Label: "owner@example.com", WorkspaceID: string(ws), Role: core.UserRoleOwner,
		Scopes: core.ScopesOfRole(core.UserRoleOwner), AuthTime: now}
	err := r.db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertWorkspace(ctx, &store.Workspace{ID: ws, Name: "w", CreatedAt: store.At(now)}); err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, &store.User{ID: user, Email: "owner@example.com", CreatedAt: store.At(now)}); err != nil {
			return err
		}
		return tx.PutMembership(ctx, &store.Membership{WorkspaceID: ws, UserID: user, Role: core.UserRoleOwner, CreatedAt: store.At(now)})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) connect(url string) {
	r.t.Helper()
	_, err := r.connectors.Put(context.Background(), r.owner, "webhook", connector.Credentials{Name: "launch", Fields: map[string]string{"url": url, "secret": hookSecret}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// propose opens a run with n webhook posts that wait for a decision.
func (r *rig) propose(n int) (runID string, actions []string) {
	r.t.Helper()
	ctx := context.Background()
	opened, err := r.runs.Create(ctx, r.owner, run.Create{Goal: "announce the release", WorkspaceID: r.owner.WorkspaceID, Operator: "marketing"})
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := r.connectors.Bind(ctx, r.owner.WorkspaceID, "webhook", "launch")
	if err != nil {
		r.t.Fatal(err)
	}
	plugin := webhook.Plugin()
	for i := range n {
		id := core.NewID(core.PrefixAction, time.Now())
		input := json.RawMessage(fmt.Sprintf(`{"connection":"launch","type":"post.publish","data":{"n":%d}}`, i))
		out := sdk.Invoke(ctx, plugin, sdk.Call{Tool: "webhook_post", ActionID: id, Input: input}, nil)
		if out.Failure != nil {
			r.t.Fatal(out.Failure)
		}
		_, err := r.approval.Propose(ctx, r.owner, approval.Proposal{WorkspaceID: r.owner.WorkspaceID, RunID: opened.ID, ActionID: id, Tool: "webhook_post", Plugin: "webhook",
			Connector: "webhook", PluginDigest: "p1", ManifestDigest: "m1", ToolDigest: "t1", Channel: "webhook", Input: input, Sealed: *out.Sealed,
			Endpoints: plugin.Manifest.Needs.Endpoints, Connection: conn, Reversibility: "irreversible", Proof: "P2"})
		if err != nil {
			r.t.Fatal(err)
		}
		actions = append(actions, id)
	}
	if err := r.approval.Ready(ctx, r.owner.WorkspaceID, opened.ID); err != nil {
		r.t.Fatal(err)
	}
	return opened.ID, actions
}

func (r *rig) approve(runID string) {
	r.t.Helper()
	ctx := context.Background()
	if _, err := r.approval.Deliver(ctx, r.owner, runID); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.approval.Approve(ctx, r.owner, approval.Decide{RunID: runID, Channel: "rest"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) executor(owner string) *Executor {
	return New(Deps{DB: r.db, Approval: r.approval, Connectors: r.connectors, Egress: r.egress, Owner: owner})
}

func (r *rig) action(id string) *core.Action {
	r.t.Helper()
	a, err := r.approval.Get(context.Background(), r.owner, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}
