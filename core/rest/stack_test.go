package rest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/dataset"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	searchconsole "github.com/sallyport-dev/sallyport/plugins/connector/google_search_console"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

const (
	testBase     = "http://localhost:8080"
	testPassword = "correct horse battery"
)

// testClock is the machine's clock, moved on by tests.
type testClock struct{ ahead atomic.Int64 }

func (c *testClock) Now() time.Time       { return time.Now().UTC().Add(time.Duration(c.ahead.Load())) }
func (c *testClock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// stack is the interface on the real services and a fresh database. The operator is a
// function of the test; the webhook connector is the real one, called in process.
type stack struct {
	t        *testing.T
	handler  http.Handler
	clock    *testClock
	db       *store.DB
	auth     *auth.Service
	runs     *run.Service
	gate     *approval.Service
	dispatch *tool.Dispatcher
	events   *event.Bus
	log      *audit.Log
	plugins  *fakePlugins
	queue    *queue
	diagnose func(ctx context.Context, in tool.CallIn) (any, error)
	ownerID  string
}

// queue remembers what would be executed.
type queue struct {
	mu  sync.Mutex
	ids []string
}

func (q *queue) EnqueueExecute(_ context.Context, _ *store.Tx, actionID string, _ time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = append(q.ids, actionID)
	return nil
}

type fakePlugins struct {
	list   []core.Plugin
	reload func(name string) error
}

func (f *fakePlugins) List() []core.Plugin { return f.list }
func (f *fakePlugins) Reload(_ context.Context, name string) error {
	if f.reload != nil {
		return f.reload(name)
	}
	return nil
}

// operator answers the primary tool.
type operator struct{ s *stack }

func (operator) Available() bool { return true }
func (o operator) Call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	v, err := o.s.diagnose(ctx, in)
	if err != nil {
		return tool.CallOut{}, err
	}
	b, err := json.Marshal(v)
	return tool.CallOut{Result: b}, err
}

// inProcess calls a plugin of this repository without a process.
type inProcess struct{ plugin sdk.Plugin }

func (inProcess) Available() bool { return true }
func (p inProcess) Call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	for _, t := range p.plugin.Tools {
		if t.Document.Name != in.Tool {
			continue
		}
		sealed, err := t.Compile(ctx, &sdk.Call{Tool: in.Tool, Input: in.Input, ActionID: in.ActionID, Now: in.Scope.Now})
		if err != nil {
			return tool.CallOut{}, err
		}
		b, err := json.Marshal(sealed)
		return tool.CallOut{Sealed: b}, err
	}
	return tool.CallOut{}, core.Errf(core.KindInternal, "internal", "no such tool")
}

// bound lets the dispatcher see what is connected.
type bound struct{ *connector.Service }

func (b bound) Describe(ctx context.Context, ws, provider, name string) (json.RawMessage, error) {
	c, ok, err := b.Connection(ctx, ws, provider, name)
	if err != nil || !ok {
		return nil, err
	}
	return json.Marshal(c)
}

func diagnoseDocument() schemas.ToolDocument {
	return schemas.ToolDocument{Name: "mkt_diagnose_marketing", Title: "Diagnose", Description: "Changes nothing: drafts.", Effect: schemas.EffectDraft,
		InputSchema:  schemas.Document{"type": "object", "additionalProperties": false, "required": []any{"goal"}, "properties": map[string]any{"goal": map[string]any{"type": "string"}, "runId": map[string]any{"type": "string"}}},
		OutputSchema: schemas.Document{"type": "object"}}
}

func manifestOf(p sdk.Plugin) schemas.Manifest {
	m := p.Manifest
	for _, t := range p.Tools {
		m.Tools = append(m.Tools, t.Document)
	}
	return m
}

func newStack(t *testing.T, change ...func(*Deps)) *stack {
	t.Helper()
	store.StrictTx = true
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	s := &stack{t: t, clock: &testClock{}, queue: &queue{}, plugins: &fakePlugins{}}
	var err error
	s.db, err = store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(dir, "test.db"), Clock: s.clock})
	must(t, err)
	t.Cleanup(func() { _ = s.db.Close() })
	must(t, s.db.Migrate(t.Context()))
	keeper, err := secret.Open(filepath.Join(dir, "keys"), func(string) string { return "" })
	must(t, err)
	s.log = audit.New(s.db, keeper, s.clock, quiet)
	s.events = event.NewBus(s.db, s.clock, quiet)
	s.auth, err = auth.New(auth.Deps{DB: s.db, Audit: s.log, Keeper: keeper, Clock: s.clock, BaseURL: testBase, Hashing: auth.Hashing{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	must(t, err)
	s.runs = run.New(run.Deps{DB: s.db, Audit: s.log, Events: s.events, Clock: s.clock, BaseURL: testBase})
	registry := tool.NewRegistry()
	s.gate = approval.New(approval.Deps{DB: s.db, Audit: s.log, Events: s.events, Runs: s.runs, Keys: keeper, Enqueue: s.queue, Plugins: registry, Clock: s.clock})
	hooks, search := webhook.Plugin(), searchconsole.Plugin()
	manifests := []schemas.Manifest{manifestOf(hooks), manifestOf(search)}
	out, err := egress.New(egress.Config{Clock: s.clock, Log: quiet})
	must(t, err)
	connectors := connector.New(connector.Deps{DB: s.db, Audit: s.log, Events: s.events, Keys: keeper, Clock: s.clock, Log: quiet, BaseURL: testBase,
		Egress: out, Manifests: func() []schemas.Manifest { return manifests },
		CallTool: func(context.Context, core.Principal, string, json.RawMessage) (json.RawMessage, error) {
			return nil, core.Errf(core.KindUnavailable, "plugin_unavailable", "not in this test")
		}})
	counted := usage.New(s.db, s.clock)
	s.dispatch = tool.New(tool.Deps{Registry: registry, DB: s.db, Runs: s.runs, Approval: s.gate, Audit: s.log, Meter: counted, Connections: bound{connectors}, Clock: s.clock, Log: quiet})
	marketing := schemas.Manifest{Name: "marketing", Kind: schemas.ManifestKindOperator, Title: "Marketing", Description: "Drafts for goals of marketing.", Version: "1.0.0", Protocol: 1,
		Operator: &schemas.OperatorInfo{PrimaryTool: "mkt_diagnose_marketing", Title: "Marketing"}, Tools: []schemas.ToolDocument{diagnoseDocument()}}
	snapshot, err := tool.NewSnapshot([]*tool.Plugin{
		{Manifest: marketing, Caller: operator{s}, Digest: "d1", ManifestDigest: "m1"},
		{Manifest: manifests[0], Caller: inProcess{hooks}, Digest: "d2", ManifestDigest: "m2"},
		{Manifest: manifests[1], Caller: inProcess{search}, Digest: "d3", ManifestDigest: "m3"},
	})
	must(t, err)
	registry.Swap(snapshot)
	s.diagnose = s.proposeTwo
	s.plugins.list = []core.Plugin{{Name: "marketing", Kind: core.PluginKindOperator, Version: "1.0.0", Status: core.PluginStatusRunning, Tools: []string{"mkt_diagnose_marketing"}, Launcher: "unjailed"}}
	d := Deps{Auth: s.auth, Runs: s.runs, Approval: s.gate, Connectors: connectors, Dispatcher: s.dispatch, Registry: registry, Audit: s.log, Usage: counted, Events: s.events, Datasets: dataset.New(s.db, s.log),
		Hooks:  event.NewHooks(event.HookDeps{DB: s.db, Bus: s.events, Audit: s.log, Keys: keeper, Clock: s.clock, Check: out.Check}),
		Replay: replay.New(s.db, s.clock), Plugins: s.plugins, Clock: s.clock, Log: quiet, BaseURL: testBase, Version: "0.1.0-test", PerMinute: 100_000}
	for _, f := range change {
		f(&d)
	}
	s.handler, err = New(d)
	must(t, err)
	owner, err := s.auth.Init(t.Context(), auth.Init{Email: "ada@example.com", Name: "Ada", Password: testPassword})
	must(t, err)
	s.ownerID = owner.ID
	_, err = connectors.Put(t.Context(), s.person("ada@example.com"), "webhook", connector.Credentials{Name: "launch", Fields: map[string]string{"url": "https://hooks.example.com/launch", "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}})
	must(t, err)
	return s
}

// proposeTwo is the operator's answer: two webhook posts for approval.
func (s *stack) proposeTwo(ctx context.Context, in tool.CallIn) (any, error) {
	for _, words := range []string{"first", "second"} {
		input, err := json.Marshal(map[string]any{"connection": "launch", "type": "post.publish", "data": map[string]string{"text": words}})
		if err != nil {
			return nil, err
		}
		if _, err := s.dispatch.Propose(ctx, in.Scope, tool.Proposal{Tool: "webhook_post", Input: input, Channel: "webhook"}); err != nil {
			return nil, err
		}
	}
	return map[string]any{"userMessage": "Two posts wait for you.", "reviewUrl": in.Scope.ReviewURL}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// person is someone with the data directory in hand, just signed in.
func (s *stack) person(email string) core.Principal {
	s.t.Helper()
	p, err := s.auth.OnThisMachine(s.t.Context(), email)
	must(s.t, err)
	return p
}

// token is an access token of a person.
func (s *stack) token(email string, scopes ...string) string {
	s.t.Helper()
	tok, err := s.auth.MintToken(s.t.Context(), s.person(email), scopes...)
	must(s.t, err)
	return tok.Token
}

func (s *stack) owner() string { return s.token("ada@example.com") }

// key is an API key of the owner.
func (s *stack) key(kind core.APIKeyKind, scopes ...string) string {
	s.t.Helper()
	k, err := s.auth.CreateKey(s.t.Context(), s.person("ada@example.com"), auth.NewKey{Name: "test " + string(kind), Kind: kind, Scopes: scopes})
	must(s.t, err)
	return *k.Key
}

// add adds a person to the workspace.
func (s *stack) add(email string, role core.UserRole) {
	s.t.Helper()
	_, err := s.auth.AddUser(s.t.Context(), s.person("ada@example.com"), auth.NewUser{Email: email, Password: testPassword, Role: role})
	must(s.t, err)
}

// stranger is a person of another workspace, with a token.
func (s *stack) stranger() string {
	s.t.Helper()
	now := store.At(s.clock.Now())
	ws := store.WorkspaceID(core.NewID(core.PrefixWorkspace, s.clock.Now()))
	user := core.NewID(core.PrefixUser, s.clock.Now())
	must(s.t, s.db.InTx(s.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertWorkspace(ctx, &store.Workspace{ID: ws, Name: "Other", Plan: "free", CreatedAt: now, UpdatedAt: now}); err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, &store.User{ID: user, Email: "eve@example.com", Name: "Eve", CreatedAt: now, UpdatedAt: now}); err != nil {
			return err
		}
		return tx.PutMembership(ctx, &store.Membership{WorkspaceID: ws, UserID: user, Role: core.UserRoleOwner, CreatedAt: now})
	}))
	return s.token("eve@example.com")
}

// drafted is a run with two actions that wait.
func (s *stack) drafted() core.Run {
	s.t.Helper()
	result, err := s.dispatch.Call(s.t.Context(), s.person("ada@example.com"), tool.Request{Tool: "mkt_diagnose_marketing", Args: json.RawMessage(`{"goal":"Tell people"}`)})
	must(s.t, err)
	r, err := s.runs.Get(s.t.Context(), s.person("ada@example.com"), result.RunID)
	must(s.t, err)
	return *r
}

func workspaceOf(s *stack) store.WorkspaceID {
	return store.WorkspaceID(s.person("ada@example.com").WorkspaceID)
}
