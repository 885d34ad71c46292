package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/plugins/connector/smtp"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

const (
	ownerMail = "ada@example.com"
	password  = "correct horse battery"
)

// clock can be turned.
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

// inProcess calls a connector plugin without a process.
type inProcess struct{ plugin sdk.Plugin }

func (inProcess) Available() bool { return true }

func (c inProcess) Call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	sealed, err := c.compile(ctx, in.Tool, in.ActionID, in.Input, in.Connection)
	if err != nil {
		return tool.CallOut{}, core.Errf(core.KindInvalid, "invalid_input", "%s", err.Error())
	}
	raw, err := json.Marshal(sealed)
	return tool.CallOut{Sealed: raw}, err
}

func (c inProcess) compile(ctx context.Context, name, actionID string, input, connection json.RawMessage) (*effect.Sealed, error) {
	call := &sdk.Call{Tool: name, Input: input, ActionID: actionID}
	if len(connection) > 0 {
		call.Connection = &sdk.Connection{}
		if err := json.Unmarshal(connection, call.Connection); err != nil {
			return nil, err
		}
	}
	for _, t := range c.plugin.Tools {
		if t.Document.Name == name {
			return t.Compile(ctx, call)
		}
	}
	return nil, fmt.Errorf("no tool %s", name)
}

// connections are one mail server and one webhook.
type connections struct{}

func (connections) Bind(_ context.Context, _, provider, _ string) (effect.Connection, error) {
	if provider == "smtp" {
		return effect.Connection{ID: "con_smtp", Provider: "smtp", AccountID: "launch@acme.example", Account: "launch@acme.example", BaseURL: "mail.acme.example:587", Binding: "bound"}, nil
	}
	return effect.Connection{ID: "con_hook", Provider: "webhook", Name: "changelog", AccountID: "changelog", Account: "hooks.acme.example", BaseURL: "https://hooks.acme.example/launch", Binding: "bound"}, nil
}

func (connections) Describe(_ context.Context, _, provider, _ string) (json.RawMessage, error) {
	c := sdk.Connection{Provider: provider, Status: "connected", Account: "hooks.acme.example", Name: "changelog"}
	if provider == "smtp" {
		c.Name, c.Account, c.Fields = "", "launch@acme.example", map[string]string{"from": "Acme <launch@acme.example>"}
	}
	return json.Marshal(c)
}

// queue wakes nobody: what was approved stays approved.
type queue struct{}

func (queue) EnqueueExecute(context.Context, *store.Tx, string, time.Time) error { return nil }

// rig is the site on the real services and a fresh database.
type rig struct {
	*testing.T
	*httptest.Server
	clock    *clock
	db       *store.DB
	auth     *auth.Service
	runs     *run.Service
	gate     *approval.Service
	registry *tool.Registry
	plugins  map[string]inProcess
	catalog  *catalog
	owner    core.Principal
	agent    core.Principal
	ws       string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := emptyRig(t)
	_, err := r.auth.Init(t.Context(), auth.Init{Email: ownerMail, Password: password})
	r.ok(err)
	r.owner, err = r.auth.OnThisMachine(t.Context(), ownerMail)
	r.ok(err)
	r.ws = r.owner.WorkspaceID
	// The agent's key is nobody's, so that the rule against approving one's own proposals rests.
	r.agent = core.Principal{Kind: core.ActorKindKey, ID: "key_agent", Label: "coding agent", WorkspaceID: r.ws, KeyKind: core.APIKeyKindAgent, Scopes: core.ScopesOfKey(core.APIKeyKindAgent)}
	r.ok(r.db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for id, provider := range map[string]string{"con_smtp": "smtp", "con_hook": "webhook"} {
			if err := tx.InsertConnection(ctx, &store.Connection{ID: id, WorkspaceID: store.WorkspaceID(r.ws), Provider: provider, Fields: map[string]string{}, Scopes: []string{}, Status: core.ConnectorStatusConnected,
				BindingDigest: "bound", CreatedBy: r.owner.Actor(), CreatedAt: store.At(r.clock.Now()), UpdatedAt: store.At(r.clock.Now()), Version: 1}); err != nil {
				return err
			}
		}
		return nil
	}))
	return r
}

// emptyRig is an installation that nobody set up.
func emptyRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, clock: &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, plugins: map[string]inProcess{}, catalog: &catalog{}}
	r.db = testdb.Open(t, testdb.SQLiteURL(t), r.clock)
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	r.ok(err)
	quiet := slog.New(slog.DiscardHandler)
	log, bus := audit.New(r.db, keys, r.clock, quiet), event.NewBus(r.db, r.clock, quiet)
	r.Server = httptest.NewUnstartedServer(nil)
	base := "http://" + r.Listener.Addr().String()
	r.runs = run.New(run.Deps{DB: r.db, Audit: log, Events: bus, Clock: r.clock, BaseURL: base})
	r.registry = tool.NewRegistry()
	r.gate = approval.New(approval.Deps{DB: r.db, Audit: log, Events: bus, Clock: r.clock, Runs: r.runs, Keys: keys, Enqueue: queue{}, Plugins: r.registry})
	r.auth, err = auth.New(auth.Deps{DB: r.db, Audit: log, Keeper: keys, Clock: r.clock, Log: quiet, BaseURL: base, Hashing: auth.Hashing{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	r.ok(err)
	var loaded []*tool.Plugin
	for _, p := range []sdk.Plugin{smtp.Plugin(), webhook.Plugin()} {
		m := p.Manifest
		for _, t := range p.Tools {
			m.Tools = append(m.Tools, t.Document)
			r.plugins[t.Document.Name] = inProcess{p}
		}
		loaded = append(loaded, &tool.Plugin{Manifest: m, Caller: inProcess{p}, Digest: "binary", ManifestDigest: "manifest"})
	}
	snap, err := tool.NewSnapshot(loaded)
	r.ok(err)
	r.registry.Swap(snap)
	d := tool.New(tool.Deps{Registry: r.registry, DB: r.db, Runs: r.runs, Approval: r.gate, Audit: log, Meter: usage.New(r.db, r.clock), Connections: connections{}, Clock: r.clock, Log: quiet})
	r.Config.Handler, err = New(Deps{Auth: r.auth, Runs: r.runs, Approval: r.gate, Tools: d, Connectors: r.catalog, Audit: log, Clock: r.clock, Log: quiet, BaseURL: base, Banner: "A banner."})
	r.ok(err)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// catalog is two connectors; one is connected.
type catalog struct {
	put    []connector.Credentials
	refuse error
}

func (*catalog) Catalog(context.Context, core.Principal) ([]core.Connector, error) {
	return []core.Connector{
		{Provider: "google_ads", Title: "Google Ads", Status: core.ConnectorStatusSetupRequired, Effects: []core.ConnectorEffectsElem{core.ConnectorEffectsElemRead}, StatusReason: "No token yet.",
			SetupGuidance: &core.SetupGuidance{Mode: core.SetupGuidanceModeToken, Why: "To read.", Steps: []core.SetupStep{{N: 1, Title: "Register a client", Detail: "In the console.", Copy: new("echo <b>x</b>")}},
				Requires: []core.SetupField{{Key: "name", Label: "Name"}, {Key: "account", Label: "Account", Where: new("In the console.")}, {Key: "token", Label: "Developer token", Secret: true}}, WhatWeNeverDo: []string{"Spend."}}},
		{Provider: "smtp", Title: "E-mail (SMTP)", Status: core.ConnectorStatusConnected, Account: "launch@acme.example", Effects: []core.ConnectorEffectsElem{core.ConnectorEffectsElemWrite}, Description: "Sends e-mails.",
			Endpoints: []core.ConnectorEndpoint{{Name: "changelog", URL: "https://hooks.acme.example"}}},
	}, nil
}

func (c *catalog) Put(_ context.Context, _ core.Principal, provider string, in connector.Credentials) (*core.Connector, error) {
	if c.refuse != nil {
		return nil, c.refuse
	}
	c.put = append(c.put, in)
	return &core.Connector{Provider: provider, Title: "Google Ads", Status: core.ConnectorStatusConnected}, nil
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// newRun opens a run that an agent works on.
func (r *rig) newRun(goal string) string {
	r.Helper()
	run, err := r.runs.Create(r.Context(), r.agent, run.Create{Goal: goal, WorkspaceID: r.ws, Operator: "marketing"})
	r.ok(err)
	r.ok(r.runs.SetPhase(r.Context(), r.ws, run.ID, core.PhaseDrafting, ""))
	return run.ID
}

// stage compiles a call of a write tool with the real plugin and proposes it.
func (r *rig) stage(runID, name string, input any, change ...func(*approval.Proposal)) string {
	r.Helper()
	raw, err := json.Marshal(input)
	r.ok(err)
	entry, ok := r.registry.Snapshot().Lookup(name)
	if !ok {
		r.Fatalf("no tool %s", name)
	}
	p := r.plugins[name].plugin
	in := approval.Proposal{WorkspaceID: r.ws, RunID: runID, ActionID: core.NewID(core.PrefixAction, r.clock.Now()), Tool: name, Plugin: p.Manifest.Name, Connector: p.Manifest.Connector.Provider, Channel: p.Manifest.Name,
		PluginDigest: "binary", ManifestDigest: "manifest", ToolDigest: entry.Digest, Input: raw, Endpoints: p.Manifest.Needs.Endpoints, Reversibility: string(*entry.Doc.Reversibility)}
	connection, err := connections{}.Describe(r.Context(), r.ws, in.Connector, "")
	r.ok(err)
	sealed, err := r.plugins[name].compile(r.Context(), name, in.ActionID, raw, connection)
	r.ok(err)
	in.Sealed = *sealed
	in.Connection, err = connections{}.Bind(r.Context(), r.ws, in.Connector, "")
	r.ok(err)
	for _, f := range change {
		f(&in)
	}
	a, err := r.gate.Propose(r.Context(), r.agent, in)
	r.ok(err)
	return a.ID
}

func (r *rig) mail(runID, subject, text string, change ...func(*approval.Proposal)) string {
	r.Helper()
	return r.stage(runID, "smtp_send", map[string]string{"to": "Grace <grace@reader.example>", "subject": subject, "text": text}, change...)
}

func (r *rig) hook(runID, text string, change ...func(*approval.Proposal)) string {
	r.Helper()
	return r.stage(runID, "webhook_post", map[string]any{"connection": "changelog", "type": "post.publish", "data": map[string]string{"text": text}}, change...)
}

// byHand turns a proposal into one that a person carries out.
func byHand(title, text string) func(*approval.Proposal) {
	return func(p *approval.Proposal) {
		p.Connection, p.Connector = effect.Connection{}, ""
		p.Sealed = effect.Sealed{Kind: "manual.task", Target: effect.Target{Label: "Product Hunt"}, Manual: &effect.Manual{Title: title, Text: text, OpenURL: "https://www.producthunt.com/posts/new",
			Fields: []effect.Pair{{Name: "Tagline", Value: "Invoices as one file"}}, Checklist: []string{"Read it aloud once."}}}
	}
}

func (r *rig) ready(runID string) {
	r.Helper()
	r.ok(r.gate.Ready(r.Context(), r.ws, runID))
}

// action reads an action behind the page's back.
func (r *rig) action(id string) *core.Action {
	r.Helper()
	a, err := r.gate.Get(r.Context(), r.owner, id)
	r.ok(err)
	return a
}

func (r *rig) is(id string, want core.ActionStatus) {
	r.Helper()
	if a := r.action(id); a.Status != want {
		r.Fatalf("action is %s (%s), want %s", a.Status, a.StatusReason, want)
	}
}

// store changes a stored action behind the services' back.
func (r *rig) store(id string, change func(a *store.Action)) {
	r.Helper()
	r.ok(r.db.InTx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.LockAction(ctx, store.WorkspaceID(r.ws), id)
		if err != nil {
			return err
		}
		change(a)
		return tx.UpdateAction(ctx, a)
	}))
}

// plainClient does not follow redirects.
func plainClient(jar http.CookieJar) *http.Client {
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func contains(t *testing.T, where, body string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %q", where, want)
		}
	}
}

func lacks(t *testing.T, where, body string, unwanted ...string) {
	t.Helper()
	for _, bad := range unwanted {
		if strings.Contains(body, bad) {
			t.Errorf("%s holds %q", where, bad)
		}
	}
}

// stranger is the owner of another workspace of the same installation.
func (r *rig) stranger(email string) {
	r.Helper()
	u, err := r.auth.AddUser(r.Context(), r.owner, auth.NewUser{Email: email, Password: password, Role: core.UserRoleViewer})
	r.ok(err)
	r.ok(r.db.InTx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(r.clock.Now())
		if err := tx.InsertWorkspace(ctx, &store.Workspace{ID: "ws_other", Name: "Other", Plan: "free", CreatedAt: now, UpdatedAt: now, Version: 1}); err != nil {
			return err
		}
		if err := tx.DeleteMembership(ctx, store.WorkspaceID(r.ws), u.ID); err != nil {
			return err
		}
		return tx.PutMembership(ctx, &store.Membership{UserID: u.ID, WorkspaceID: "ws_other", Role: core.UserRoleOwner, CreatedAt: now})
	}))
}

func (r *rig) packDigest(runID string) string {
	r.Helper()
	run, err := r.runs.Get(r.Context(), r.owner, runID)
	r.ok(err)
	return run.PackDigest
}
