package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

const ws = "ws_01K00000000000000000000000"

// stub is a plugin process that answers as told.
type stub struct {
	answer func(ctx context.Context, in tool.CallIn) (tool.CallOut, error)
	down   bool
}

func (s *stub) Call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	return s.answer(ctx, in)
}
func (s *stub) Available() bool { return !s.down }

// connections has one connection, to the provider shop.
type connections struct{}

func (connections) Bind(_ context.Context, _, provider, _ string) (effect.Connection, error) {
	if provider != "shop" {
		return effect.Connection{}, core.Errf(core.KindConflict, "connector_not_connected", "%s is not connected.", provider)
	}
	return effect.Connection{ID: "con_1", Provider: "shop", AccountID: "acme", Account: "acme", BaseURL: "https://shop.example.com", Binding: "bound"}, nil
}

func (connections) Describe(context.Context, string, string, string) (json.RawMessage, error) {
	return json.RawMessage(`{"provider":"shop","status":"connected","account":"acme"}`), nil
}

type house struct {
	*testing.T
	*tool.Dispatcher
	registry *tool.Registry
	runs     *run.Service
	approval *approval.Service
	audit    *audit.Log
	usage    *usage.Meter
	stub     *stub
	agent    core.Principal
}

const manifest = `{"name":"shop","kind":"connector","version":"1.0.0","title":"Shop","description":"Sells.","protocol":1,
	"connector":{"provider":"shop","capability":"write"},
	"needs":{"endpoints":[{"id":"shop.post","class":"write","method":"POST","host":"$connection","path":"/news","headers":["Content-Type"]}]},
	"tools":[
		{"name":"shop_read","title":"Read","description":"Reads.","effect":"read","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
		{"name":"shop_post","title":"Post","description":"Compiles.","effect":"write","kind":"shop.post","inputSchema":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}},"outputSchema":{"type":"object"}}]}`

const operator = `{"name":"ops","kind":"operator","version":"1.0.0","title":"Ops","description":"Operates.","protocol":1,
	"operator":{"primaryTool":"ops_diagnose","title":"Operations"},"needs":{},
	"tools":[
		{"name":"ops_diagnose","title":"Diagnose","description":"Drafts.","effect":"draft","skill":true,
			"inputSchema":{"type":"object","additionalProperties":false,"required":["goal"],"properties":{"goal":{"type":"string"},"workspaceId":{"type":"string"},"deep":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}},
			"outputSchema":{"type":"object","required":["runId"],"properties":{"runId":{"type":"string"}}}},
		{"name":"ops_status","title":"Status","description":"Reads.","effect":"read","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`

func parse(t *testing.T, raw string) schemas.Manifest {
	t.Helper()
	var m schemas.Manifest
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func newHouse(t *testing.T) *house {
	t.Helper()
	clock, db := core.SystemClock{}, testdb.SQLite(t)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	keys, err := secret.Open(filepath.Join(t.TempDir(), "keys"), func(string) string { return "" })
	h := &house{T: t, registry: tool.NewRegistry(), stub: &stub{}}
	h.ok(err)
	h.stub.answer = func(_ context.Context, in tool.CallIn) (tool.CallOut, error) {
		b, err := json.Marshal(map[string]string{"runId": in.Scope.RunID})
		return tool.CallOut{Result: b}, err
	}
	h.audit, h.usage = audit.New(db, keys, clock, log), usage.New(db, clock)
	bus := event.NewBus(db, clock, log)
	h.runs = run.New(run.Deps{DB: db, Audit: h.audit, Events: bus, Clock: clock, BaseURL: "http://localhost:8080"})
	h.approval = approval.New(approval.Deps{DB: db, Audit: h.audit, Events: bus, Runs: h.runs, Keys: keys, Plugins: h.registry, Clock: clock})
	h.Dispatcher = tool.New(tool.Deps{Registry: h.registry, DB: db, Runs: h.runs, Approval: h.approval, Audit: h.audit, Meter: h.usage,
		Connections: connections{}, Clock: clock, Log: log, CallTimeout: 5 * time.Second})
	h.agent = core.Principal{Kind: core.ActorKindKey, ID: "key_1", Label: "agent", WorkspaceID: ws, KeyKind: core.APIKeyKindAgent, Scopes: core.Scopes()}
	h.ok(db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(clock.Now())
		return tx.InsertWorkspace(ctx, &store.Workspace{ID: ws, Name: "Acme", Plan: "free", CreatedAt: now, UpdatedAt: now, Version: 1})
	}))
	h.load(manifest, operator)
	return h
}

func (h *house) load(manifests ...string) {
	h.Helper()
	var plugins []*tool.Plugin
	for _, raw := range manifests {
		plugins = append(plugins, &tool.Plugin{Manifest: parse(h.T, raw), Caller: h.stub, Digest: "binary", ManifestDigest: "manifest", List: true})
	}
	s, err := tool.NewSnapshot(plugins)
	h.ok(err)
	h.registry.Swap(s)
}

func (h *house) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) call(p core.Principal, name, args string) (*tool.Result, *core.Error) {
	h.Helper()
	out, err := h.Call(h.Context(), p, tool.Request{Tool: name, Args: json.RawMessage(args)})
	if err == nil {
		return out, nil
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		h.Fatalf("%s: %T is not what surfaces understand: %v", name, err, err)
	}
	return nil, e
}

func (h *house) refused(p core.Principal, name, args string, kind core.ErrorKind, code string) *core.Error {
	h.Helper()
	_, err := h.call(p, name, args)
	if err == nil || err.Kind != kind || err.Code != code {
		h.Fatalf("%s %s: %v; want %s %s", name, args, err, kind, code)
	}
	return err
}

func TestWhatMayNotBeCalled(t *testing.T) {
	h := newHouse(t)
	viewer := h.agent
	viewer.Scopes = []string{core.ScopeRunsRead}
	h.refused(h.agent, "nobody", `{}`, core.KindNotFound, tool.CodeUnknownTool)
	h.refused(h.agent, "shop_post", `{"text":"x"}`, core.KindForbidden, tool.CodeWriteTool)
	h.refused(core.Anonymous(), "mkt_list_runs", `{}`, core.KindUnauthenticated, "unauthenticated")
	h.refused(viewer, "ops_diagnose", `{"goal":"x"}`, core.KindForbidden, "missing_scope")
	h.refused(viewer, "shop_read", `{}`, core.KindForbidden, "missing_scope") // it reaches outside
	h.refused(h.agent, "ops_diagnose", `{"goal":"x","workspaceId":"ws_other"}`, core.KindNotFound, "not_found")
	h.refused(h.agent, "mkt_get_run", `{"runId":"run_01K00000000000000000000000"}`, core.KindNotFound, "not_found")
	if _, err := h.call(viewer, "ops_status", `{}`); err != nil {
		t.Errorf("a reader may not read: %v", err)
	}
	e := h.refused(h.agent, "ops_diagnose", `{"deep":{"n":"x"},"odd":1}`, core.KindInvalid, tool.CodeInvalidInput)
	var pointers []string
	for _, f := range e.Fields {
		pointers = append(pointers, f.Pointer)
	}
	if !slices.Equal(pointers, []string{"/deep/n", "/goal", "/odd"}) {
		t.Errorf("pointers = %v", pointers)
	}
	page, err := h.audit.List(t.Context(), ws, core.Query{})
	h.ok(err)
	if n := len(page.Items); n < 3 || page.Items[n-1].Action != "tool.refused" {
		t.Errorf("refusals are not audited: %+v", page.Items)
	}
}

func TestADraftOpensARunAndClosesIt(t *testing.T) {
	h := newHouse(t)
	out, failed := h.call(h.agent, "ops_diagnose", `{"goal":"Fewer late parcels"}`)
	if failed != nil {
		t.Fatal(failed)
	}
	r, err := h.runs.Get(t.Context(), h.agent, out.RunID)
	h.ok(err)
	if r.Goal != "Fewer late parcels" || r.Operator != "ops" || r.Status != core.RunStatusCompleted {
		t.Errorf("run = %+v", r)
	}
	h.stub.answer = func(context.Context, tool.CallIn) (tool.CallOut, error) {
		return tool.CallOut{}, &tool.Failure{Code: "insufficient_evidence", Message: "Nothing to go by."}
	}
	e := h.refused(h.agent, "ops_diagnose", `{"goal":"x"}`, core.KindInvalid, "insufficient_evidence")
	id := e.ReviewURL[strings.LastIndex(e.ReviewURL, "/")+1:]
	if r, err = h.runs.Get(t.Context(), h.agent, id); err != nil || r.Status != core.RunStatusFailed || r.StatusReason != "Nothing to go by." {
		t.Errorf("run = %+v, %v", r, err)
	}
	u, err := h.usage.Usage(t.Context(), ws)
	h.ok(err)
	if u.Calls != 2 || u.Credits.Used != 1 || len(u.ByTool) != 1 || u.ByTool[0].Errors != 1 {
		t.Errorf("usage = %+v", u)
	}
}

func TestAPluginThatBreaksItsWordIsUnavailable(t *testing.T) {
	h := newHouse(t)
	for why, answer := range map[string]func(context.Context, tool.CallIn) (tool.CallOut, error){
		"output schema": func(context.Context, tool.CallIn) (tool.CallOut, error) {
			return tool.CallOut{Result: json.RawMessage(`{"runId":7}`)}, nil
		},
		"cannot answer": func(context.Context, tool.CallIn) (tool.CallOut, error) {
			return tool.CallOut{Sealed: json.RawMessage(`{}`)}, nil
		},
		"failed (internal)": func(context.Context, tool.CallIn) (tool.CallOut, error) {
			return tool.CallOut{}, &tool.Failure{Code: "internal", Message: "nil map in /home/somebody"}
		},
		"in time": func(ctx context.Context, _ tool.CallIn) (tool.CallOut, error) {
			<-ctx.Done()
			return tool.CallOut{}, ctx.Err()
		},
	} {
		h.stub.answer = answer
		_, err := h.call(h.agent, "ops_diagnose", `{"goal":"x"}`)
		if err == nil || err.Kind != core.KindUnavailable || !strings.Contains(err.Detail, why) || strings.Contains(err.Detail, "/home") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestAnAgentCannotDecide(t *testing.T) {
	h := newHouse(t)
	made, err := h.runs.Create(t.Context(), h.agent, run.Create{Goal: "x"})
	h.ok(err)
	h.ok(h.approval.Ready(t.Context(), ws, made.ID))
	args := `{"runId":"` + made.ID + `"}`
	if e := h.refused(h.agent, "mkt_approve_run", args, core.KindForbidden, "approval_required"); e.ReviewURL != made.ReviewURL {
		t.Errorf("review address %q, want %q", e.ReviewURL, made.ReviewURL)
	}
}

func TestHostToolsAnswerWhatTheyPromise(t *testing.T) {
	h := newHouse(t)
	out, failed := h.call(h.agent, "mkt_create_run", `{"goal":"Fewer late parcels"}`)
	if failed != nil {
		t.Fatal(failed)
	}
	if last := out.Lead[len(out.Lead)-1]; !strings.HasPrefix(last, "Wait for the human.") || out.ReviewURL == "" {
		t.Errorf("lead = %q", out.Lead)
	}
	var made struct{ Run core.Run }
	h.ok(json.Unmarshal(out.Structured, &made))
	h.ok(h.Advance(t.Context(), ws, made.Run.ID))
	for name, args := range map[string]string{
		"mkt_get_run": `{"runId":"` + made.Run.ID + `"}`, "mkt_list_runs": `{"limit":1}`, "mkt_list_assets": `{}`, "mkt_list_actions": `{"runId":"` + made.Run.ID + `"}`,
		"mkt_list_skills": `{}`, "platform_list_operators": `{}`,
	} {
		if _, err := h.call(h.agent, name, args); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.stub.down = true
	out, failed = h.call(h.agent, "platform_list_operators", `{}`)
	if failed != nil || !strings.Contains(string(out.Structured), `"status":"unavailable"`) {
		t.Errorf("operators while the process is down: %v %s", failed, out.Structured)
	}
}

func TestProposalsAreCheckedBeforeAnybodySeesThem(t *testing.T) {
	h := newHouse(t)
	var propose tool.Proposal
	var proposed *core.Action
	var refused error
	sealed := `{"kind":"shop.post","target":{"accountId":"acme","label":"Acme"},"steps":[{"endpoint":"shop.post","http":{"body":"eA=="},"success":{},"result":{}}]}`
	h.stub.answer = func(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
		if in.Tool == "shop_post" {
			return tool.CallOut{Sealed: json.RawMessage(sealed)}, nil
		}
		proposed, refused = h.Propose(ctx, in.Scope, propose)
		b, err := json.Marshal(map[string]string{"runId": in.Scope.RunID})
		return tool.CallOut{Result: b}, err
	}
	try := func(name, input string) error {
		propose = tool.Proposal{Tool: name, Input: json.RawMessage(input), Channel: "shop"}
		if _, err := h.call(h.agent, "ops_diagnose", `{"goal":"x"}`); err != nil {
			t.Fatal(err)
		}
		return refused
	}
	h.ok(try("shop_post", `{"text":"x"}`))
	if a, err := h.approval.Get(t.Context(), h.agent, proposed.ID); err != nil || a.Status != core.ActionStatusPending {
		t.Errorf("action = %+v, %v", a, err)
	}
	if err := try("ops_status", `{}`); core.AsError(err).Code != "not_a_write_tool" {
		t.Errorf("a reading tool: %v", err)
	}
	if err := try("shop_post", `{}`); core.AsError(err).Code != tool.CodeInvalidInput {
		t.Errorf("bad input: %v", err)
	}
	for _, bad := range []string{
		`{"kind":"shop.post"}`, strings.Replace(sealed, `"shop.post","http"`, `"other","http"`, 1), strings.Replace(sealed, `"success":{}`, `"success":{},"also":1`, 1),
	} {
		sealed, bad = bad, sealed
		if err := try("shop_post", `{"text":"x"}`); !core.IsKind(err, core.KindInvalid) {
			t.Errorf("%s was taken: %v", sealed, err)
		}
		sealed = bad
	}
	if m, d, ok := h.registry.CurrentDigests("shop", "shop_post"); !ok || m != "manifest" || len(d) != 64 {
		t.Errorf("digests %s %s %v", m, d, ok)
	}
	if _, _, ok := h.registry.CurrentDigests("ops", "shop_post"); ok {
		t.Error("another plugin's tool has digests")
	}
}

func TestSnapshotsShowWhatTheyMust(t *testing.T) {
	h := newHouse(t)
	s := h.registry.Snapshot()
	var names []string
	for _, e := range s.Visible() {
		names = append(names, e.Doc.Name)
	}
	if !slices.IsSorted(names) || slices.Contains(names, "shop_post") || !slices.Contains(names, "shop_read") || !slices.Contains(names, "mkt_get_run") {
		t.Errorf("visible: %v", names)
	}
	if _, err := tool.NewSnapshot([]*tool.Plugin{{Manifest: parse(t, operator), Caller: h.stub}, {Manifest: parse(t, strings.Replace(operator, `"name":"ops"`, `"name":"twin"`, 1)), Caller: h.stub}}); err == nil || !strings.Contains(err.Error(), "owned twice") {
		t.Errorf("a clash: %v", err)
	}
	var swaps []string
	h.registry.Subscribe(func(old, next *tool.Snapshot) { swaps = append(swaps, old.Digest()+next.Digest()) })
	h.load(operator)
	h.load(operator)
	if len(swaps) != 2 || swaps[0][:64] != s.Digest() || swaps[1][:64] != swaps[1][64:] {
		t.Errorf("swaps = %v", swaps)
	}
}
