package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// clock can be turned. On Postgres only what the machine's clock says counts for
// deadlines, so tests that turn it run on SQLite.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// queue records what was enqueued.
type queue struct {
	mu   sync.Mutex
	jobs map[string][]time.Time
}

func (q *queue) EnqueueExecute(_ context.Context, tx *store.Tx, actionID string, at time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs[actionID] = append(q.jobs[actionID], at)
	return nil
}

func (q *queue) of(id string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs[id])
}

// plugins is what the registry would say.
type plugins struct{ manifest, tool string }

func (p *plugins) CurrentDigests(string, string) (string, string, bool) {
	return p.manifest, p.tool, p.manifest != ""
}

const ws = "ws_01ARZ3NDEKTSV4RRFFQ69G5FAV"

type fixture struct {
	*testing.T
	db      *store.DB
	clock   *clock
	queue   *queue
	plugins *plugins
	runs    *run.Service
	s       *Service
	run     string
	logged  int64 // entries before this one are of no interest

	owner, agent, member, viewer core.Principal
}

func newFixture(t *testing.T, db *store.DB, c *clock) *fixture {
	t.Helper()
	f := &fixture{T: t, db: db, clock: c, queue: &queue{jobs: map[string][]time.Time{}}, plugins: &plugins{"manifest", "tool"}}
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	f.ok(err)
	log, bus := audit.New(db, keys, c, nil), event.NewBus(db, c, nil)
	f.runs = run.New(run.Deps{DB: db, Audit: log, Events: bus, Clock: c, BaseURL: "http://localhost:8080/"})
	f.s = New(Deps{DB: db, Audit: log, Events: bus, Clock: c, Runs: f.runs, Keys: keys, Enqueue: f.queue, Plugins: f.plugins})
	f.owner = f.person("owner", core.UserRoleOwner)
	f.member, f.viewer = f.person("member", core.UserRoleMember), f.person("viewer", core.UserRoleViewer)
	f.agent = core.Principal{Kind: core.ActorKindKey, ID: "key_agent", Label: "agent", WorkspaceID: ws, KeyKind: core.APIKeyKindAgent, OnBehalfOf: f.owner.ID, Scopes: core.Scopes()}
	f.ok(db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(c.Now())
		if err := tx.InsertWorkspace(ctx, &store.Workspace{ID: ws, Name: "Acme", Plan: "free", CreatedAt: now, UpdatedAt: now, Version: 1}); err != nil {
			return err
		}
		return tx.InsertConnection(ctx, &store.Connection{ID: "con_1", WorkspaceID: ws, Provider: "webhook", Name: "hook", Account: "Hook", Address: "https://hook.example/in",
			Fields: map[string]string{}, Scopes: []string{}, Status: core.ConnectorStatusConnected, BindingDigest: "bound", CreatedBy: f.owner.Actor(), CreatedAt: now, UpdatedAt: now, Version: 1})
	}))
	f.addApprover(f.owner, core.UserRoleOwner)
	f.run = f.newRun()
	return f
}

func onSQLite(t *testing.T) *fixture {
	c := &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	return newFixture(t, testdb.Open(t, testdb.SQLiteURL(t), c), c)
}

// onBoth runs fn on both databases, at the present.
func onBoth(t *testing.T, fn func(f *fixture)) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		fn(newFixture(t, db, &clock{now: time.Now().UTC()}))
	})
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// refused checks the code and kind of an error.
func (f *fixture) refused(err error, kind core.ErrorKind, code string) *core.Error {
	f.Helper()
	if err == nil {
		f.Fatalf("no error; want %s", code)
	}
	e := core.AsError(err)
	if e.Code != code || e.Kind != kind {
		f.Fatalf("got %s (%s): %v; want %s (%s)", e.Code, e.Kind, err, code, kind)
	}
	return e
}

func (f *fixture) person(name string, role core.UserRole) core.Principal {
	return core.Principal{Kind: core.ActorKindPerson, ID: "usr_" + name, Label: name + "@example.org", WorkspaceID: ws, Role: role, Scopes: core.ScopesOfRole(role), AuthTime: f.clock.Now()}
}

// addApprover makes the person known to the workspace, so that approvers are counted.
func (f *fixture) addApprover(p core.Principal, role core.UserRole) {
	f.Helper()
	f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(f.clock.Now())
		if err := tx.InsertUser(ctx, &store.User{ID: p.ID, Email: p.Label, Name: p.Label, CreatedAt: now, UpdatedAt: now, Version: 1}); err != nil {
			return err
		}
		return tx.PutMembership(ctx, &store.Membership{UserID: p.ID, WorkspaceID: ws, Role: role, CreatedAt: now})
	}))
}

func (f *fixture) newRun() string {
	f.Helper()
	r, err := f.runs.Create(f.Context(), f.agent, run.Create{Goal: "Tell the world", WorkspaceID: ws, Operator: "marketing"})
	f.ok(err)
	f.ok(f.runs.SetPhase(f.Context(), ws, r.ID, core.PhaseDrafting, ""))
	return r.ID
}

func some[T any](v T) *T { return &v }

func endpoints() []schemas.Endpoint {
	return []schemas.Endpoint{{ID: "post", Class: schemas.ManifestNeedsEndpointsElemClassWrite, Host: "$connection",
		Method: some(schemas.ManifestNeedsEndpointsElemMethodPOST), Path: some("$connection"), Signers: []schemas.ManifestNeedsEndpointsElemSignersElem{"standard_webhooks"}}}
}

// proposal is a webhook post with the given text as its body.
func (f *fixture) proposal(id, text string) Proposal {
	body, err := json.Marshal(map[string]string{"text": text})
	f.ok(err)
	input, err := json.Marshal(map[string]string{"text": text})
	f.ok(err)
	return Proposal{WorkspaceID: ws, RunID: f.run, ActionID: id, Tool: "webhook_post", Plugin: "webhook", Connector: "webhook", Channel: "webhook",
		PluginDigest: "binary", ManifestDigest: "manifest", ToolDigest: "tool", Input: input, Reversibility: "irreversible", Endpoints: endpoints(),
		Connection: effect.Connection{ID: "con_1", Provider: "webhook", Name: "hook", AccountID: "hook", Account: "Hook", BaseURL: "https://hook.example/in", Binding: "bound"},
		Sealed: effect.Sealed{Kind: "webhook.post", Target: effect.Target{AccountID: "hook", Label: "Hook"}, Explanation: "Harmless.",
			Steps: []effect.Step{{Endpoint: "post", HTTP: &effect.HTTPStep{Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}}, Body: body}}}}}
}

func (f *fixture) manual(id string) Proposal {
	in := f.proposal(id, "by hand")
	in.Connection, in.Connector = effect.Connection{}, ""
	in.Sealed = effect.Sealed{Kind: "manual.task", Target: effect.Target{Label: "Product Hunt"}, Manual: &effect.Manual{Title: "Post it", Text: "We launched."}}
	return in
}

func (f *fixture) newID() string { return core.NewID(core.PrefixAction, f.clock.Now()) }

// pending proposes actions and ends drafting.
func (f *fixture) pending(texts ...string) []*core.Action {
	f.Helper()
	out := []*core.Action{}
	for _, t := range texts {
		a, err := f.s.Propose(f.Context(), f.agent, f.proposal(f.newID(), t))
		f.ok(err)
		out = append(out, a)
	}
	f.ok(f.s.Ready(f.Context(), ws, f.run))
	return out
}

func (f *fixture) approve(id string) *core.Action {
	f.Helper()
	a := f.get(id)
	f.owner.AuthTime = f.clock.Now()
	out, err := f.s.Approve(f.Context(), f.owner, Decide{ActionID: id, ExpectedDigest: a.Digest, Channel: "rest"})
	f.ok(err)
	return &out.Actions[0]
}

func (f *fixture) get(id string) *core.Action {
	f.Helper()
	a, err := f.s.Get(f.Context(), f.viewer, id)
	f.ok(err)
	return a
}

func (f *fixture) is(id string, want core.ActionStatus) {
	f.Helper()
	if a := f.get(id); a.Status != want {
		f.Fatalf("action is %s (%s), want %s", a.Status, a.StatusReason, want)
	}
}

// row changes a stored action behind the service's back.
func (f *fixture) row(id string, change func(a *store.Action)) {
	f.Helper()
	f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.LockAction(ctx, ws, id)
		if err != nil {
			return err
		}
		change(a)
		return tx.UpdateAction(ctx, a)
	}))
}

// audited counts entries of a kind and outcome about a target.
func (f *fixture) audited(action, target, outcome string) int {
	f.Helper()
	entries, err := f.db.AllAuditEntries(f.Context(), f.logged, 10000)
	f.ok(err)
	n := 0
	for _, e := range entries {
		if e.Action == action && e.Target == target && fmt.Sprint(e.Outcome) == outcome {
			n++
		}
	}
	return n
}
