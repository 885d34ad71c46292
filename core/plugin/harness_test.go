package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/memory"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// reachable are the private addresses that reads may go to.
var reachable []string

const ws = "ws_01K00000000000000000000000"

// TestMain makes this binary a plugin when a host started it: the first argument says
// which.
func TestMain(m *testing.M) {
	if os.Getenv(pluginpb.CookieKey) != "" {
		fixture(os.Args[1])
		return
	}
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// house is a whole core around a supervisor, on a real database with real processes.
type house struct {
	*testing.T
	db       *store.DB
	runs     *run.Service
	approval *approval.Service
	conns    *connector.Service
	registry *tool.Registry
	tools    *tool.Dispatcher
	sup      *Supervisor
	catalog  string
	agent    core.Principal
	log      *slog.Logger

	mu     sync.Mutex
	pauses []time.Duration
	resume chan struct{} // one receive per pause that is to end
	events []string
}

func newHouse(t *testing.T, entries ...schemas.CatalogEntry) *house {
	t.Helper()
	h := build(t, entries...)
	h.ok(h.sup.Start(t.Context()))
	t.Cleanup(h.sup.Stop)
	return h
}

// build makes a house whose plugins are not started yet.
func build(t *testing.T, entries ...schemas.CatalogEntry) *house {
	t.Helper()
	clock := core.SystemClock{}
	dir := t.TempDir()
	h := &house{T: t, db: testdb.SQLite(t), registry: tool.NewRegistry(), catalog: filepath.Join(dir, "plugins", "catalog.json"), resume: make(chan struct{}),
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	keys, err := secret.Open(filepath.Join(dir, "keys"), func(string) string { return "" })
	h.ok(err)
	log := audit.New(h.db, keys, clock, h.log)
	bus := event.NewBus(h.db, clock, h.log)
	h.runs = run.New(run.Deps{DB: h.db, Audit: log, Events: bus, Clock: clock, BaseURL: "http://localhost:8080"})
	h.approval = approval.New(approval.Deps{DB: h.db, Audit: log, Events: bus, Runs: h.runs, Keys: keys, Plugins: h.registry, Clock: clock})
	out, err := egress.New(egress.Config{Clock: clock, Log: h.log, AllowPrivate: reachable})
	h.ok(err)
	h.conns = connector.New(connector.Deps{DB: h.db, Audit: log, Events: bus, Keys: keys, Egress: out, Clock: clock, Log: h.log,
		Manifests: func() []schemas.Manifest { return h.registry.Snapshot().Manifests() }, BaseURL: "http://localhost:8080"})
	h.tools = tool.New(tool.Deps{Registry: h.registry, DB: h.db, Runs: h.runs, Approval: h.approval, Audit: log, Meter: usage.New(h.db, clock),
		Connections: Connections{h.conns}, Clock: clock, Log: h.log, CallTimeout: 20 * time.Second})
	h.agent = core.Principal{Kind: core.ActorKindKey, ID: "key_01K00000000000000000000000", Label: "agent", WorkspaceID: ws, KeyKind: core.APIKeyKindAgent,
		Scopes: []string{core.ScopeRunsRead, core.ScopeRunsWrite}}
	h.ok(h.db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(clock.Now())
		return tx.InsertWorkspace(ctx, &store.Workspace{ID: ws, Name: "Acme", Plan: "free", CreatedAt: now, UpdatedAt: now, Version: 1})
	}))
	h.write(entries...)
	h.sup, err = New(h.catalog, Deps{Registry: h.registry, Clock: clock, Log: h.log, Sleep: h.sleep, Record: h.record, Drain: 10 * time.Second,
		Services: Services{Tools: h.tools, Runs: h.runs, Connectors: h.conns, Memory: MemoryOf(memory.New(h.db, clock)), Clock: clock}})
	h.ok(err)
	return h
}

// sleep is the supervisor's pause: it ends when the test says so.
func (h *house) sleep(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	h.pauses = append(h.pauses, d)
	h.mu.Unlock()
	select {
	case <-h.resume:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *house) record(action, plugin string, _ bool, _ map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, action+" "+plugin)
}

func (h *house) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) write(entries ...schemas.CatalogEntry) {
	h.Helper()
	h.ok(WriteCatalog(h.catalog, entries))
}

// call calls a tool as the agent.
func (h *house) call(name string, args any) (*tool.Result, *core.Error) {
	h.Helper()
	raw, err := json.Marshal(args)
	h.ok(err)
	out, err := h.tools.Call(h.Context(), h.agent, tool.Request{Tool: name, Args: raw})
	if err != nil {
		return nil, core.AsError(err)
	}
	return out, nil
}

// works calls a tool that must answer, and decodes the answer.
func (h *house) works(name string, args, into any) *tool.Result {
	h.Helper()
	out, err := h.call(name, args)
	if err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	if into != nil {
		h.ok(json.Unmarshal(out.Structured, into))
	}
	return out
}

// unavailable calls a tool whose plugin must not answer.
func (h *house) unavailable(name string, args any) *core.Error {
	h.Helper()
	_, err := h.call(name, args)
	if err == nil || err.Kind != core.KindUnavailable {
		h.Fatalf("%s: %v; want an error of kind unavailable", name, err)
	}
	return err
}

// plugin is what List says about a plugin.
func (h *house) plugin(name string) core.Plugin {
	h.Helper()
	for _, p := range h.sup.List() {
		if p.Name == name {
			return p
		}
	}
	h.Fatalf("no plugin %s in %v", name, h.sup.List())
	return core.Plugin{}
}

// eventually waits for something that another process brings about.
func (h *house) eventually(what string, ok func() bool) {
	h.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			h.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// self is a catalog entry for this very binary as the fixture of the given name.
func self(t testing.TB, name string, tools ...string) schemas.CatalogEntry {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return schemas.CatalogEntry{Name: name, Command: path, Args: []string{name}, Sha256: digestOf(t, path),
		Allow: schemas.Allow{Tools: tools, Call: []string{"fx_*", "mkt_get_run"}, Memory: []schemas.CatalogEntryAllowMemoryElem{"read", "write"}}}
}

var digests sync.Map

func digestOf(t testing.TB, path string) string {
	t.Helper()
	if d, ok := digests.Load(path); ok {
		return d.(string)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	digests.Store(path, hex.EncodeToString(sum[:]))
	return hex.EncodeToString(sum[:])
}

// hostConn opens descriptor 3 in a fixture process.
func hostConn() net.Conn {
	conn, err := net.FileConn(os.NewFile(pluginpb.HostDescriptor, "host"))
	if err != nil {
		panic(err)
	}
	return conn
}
