package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/schemas"
)

// drafter answers its tools like a plugin would.
type drafter struct{}

func (drafter) Available() bool { return true }

func (drafter) Call(_ context.Context, in tool.CallIn) (tool.CallOut, error) {
	answer, err := json.Marshal(map[string]any{
		"agentProofLine": "Built from nothing; nothing published.",
		"userMessage":    "Please review.",
		"reviewUrl":      in.Scope.ReviewURL,
		"runId":          in.Scope.RunID,
	})
	return tool.CallOut{Result: answer}, err
}

// stack is the endpoint on the real services and a fresh database.
type stack struct {
	*rig
	key   string
	owner core.Principal
	log   *audit.Log
}

func newStack(t *testing.T) *stack {
	t.Helper()
	const base = "http://localhost:8080"
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	clock := core.SystemClock{}
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(dir, "test.db"), Clock: clock})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, db.Migrate(t.Context()))
	keeper, err := secret.Open(filepath.Join(dir, "keys"), func(string) string { return "" })
	must(t, err)
	log := audit.New(db, keeper, clock, quiet)
	events := event.NewBus(db, clock, quiet)
	runs := run.New(run.Deps{DB: db, Audit: log, Events: events, Clock: clock, BaseURL: base})
	gate := approval.New(approval.Deps{DB: db, Audit: log, Events: events, Runs: runs, Keys: keeper, Clock: clock})
	registry := tool.NewRegistry()
	m := fixtureManifest()
	m.Operator = &schemas.OperatorInfo{PrimaryTool: "t_draft", Title: "Fixture"}
	m.Tools = []schemas.ToolDocument{doc("t_draft", schemas.EffectDraft)}
	snap, err := tool.NewSnapshot([]*tool.Plugin{{Manifest: m, Caller: drafter{}}})
	must(t, err)
	registry.Swap(snap)
	people, err := auth.New(auth.Deps{DB: db, Audit: log, Keeper: keeper, Clock: clock, BaseURL: base, Hashing: auth.Hashing{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	must(t, err)
	_, err = people.Init(t.Context(), auth.Init{Email: "ada@example.com", Password: "correct horse battery"})
	must(t, err)
	owner, err := people.OnThisMachine(t.Context(), "ada@example.com")
	must(t, err)
	key, err := people.CreateKey(t.Context(), owner, auth.NewKey{Name: "agent", Kind: core.APIKeyKindAgent})
	must(t, err)
	r := newRig(t, func(d *Deps) {
		d.Dispatcher = tool.New(tool.Deps{Registry: registry, DB: db, Runs: runs, Approval: gate, Audit: log, Meter: usage.New(db, clock), Clock: clock, Log: quiet})
		d.Registry, d.Auth, d.Runs, d.Clock = registry, people, runs, clock
	})
	return &stack{rig: r, key: *key.Key, owner: owner, log: log}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAgentOnTheRealServices(t *testing.T) {
	s := newStack(t)
	h := []string{"X-Api-Key", s.key, "Mcp-Protocol-Version", "2025-06-18"}

	s.post(callBody("t_draft", `{}`)).want(t, http.StatusUnauthorized)
	s.post(callBody("t_draft", `{}`), "X-Api-Key", s.key+"x").want(t, http.StatusUnauthorized)

	drafted := s.post(callBody("t_draft", `{"goal":"Get users"}`), h...).call(t)
	var pack struct{ RunID, ReviewURL string }
	if err := json.Unmarshal(drafted.StructuredContent, &pack); err != nil || pack.RunID == "" {
		t.Fatalf("result %+v", drafted)
	}
	if first := drafted.Content[0].Text; !strings.HasPrefix(first, "Built from nothing") || !strings.HasSuffix(first, "Do not post, send, submit or spend.") || !strings.Contains(first, pack.ReviewURL) {
		t.Errorf("first block %q", first)
	}
	if link := drafted.Content[len(drafted.Content)-1]; link.Type != "resource_link" || link.URI != "run://"+pack.RunID {
		t.Errorf("link %+v", link)
	}

	read := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"run://%s"}}`, pack.RunID), h...).want(t, http.StatusOK).rpc(t)
	var contents struct{ Contents []struct{ Text string } }
	must(t, json.Unmarshal(read.Result, &contents))
	schema, err := schemas.Resource("run")
	must(t, err)
	if err := schema.Validate([]byte(contents.Contents[0].Text)); err != nil {
		t.Errorf("run resource: %v", err)
	}

	refused := s.post(callBody("mkt_approve_run", fmt.Sprintf(`{"runId":%q}`, pack.RunID)), h...).call(t)
	p := answer{body: string(refused.StructuredContent)}.problem(t)
	if !refused.IsError || p.Code != "approval_required" || p.ReviewURL == nil || *p.ReviewURL != pack.ReviewURL {
		t.Errorf("approve by an agent: %+v", p)
	}

	bad := s.post(callBody("mkt_get_run", `{"runId":5,"more":true}`), h...).call(t)
	p = answer{body: string(bad.StructuredContent)}.problem(t)
	if !bad.IsError || p.Status != 422 || len(p.Errors) != 2 {
		t.Errorf("bad input: %+v", p)
	}
	listed := s.post(callBody("mkt_list_runs", `{}`), h...).call(t)
	if listed.IsError || !strings.Contains(string(listed.StructuredContent), pack.RunID) {
		t.Errorf("list: %s", listed.StructuredContent)
	}

	page, err := s.log.List(t.Context(), store.WorkspaceID(s.owner.WorkspaceID), core.Query{})
	must(t, err)
	var calls int
	for _, e := range page.Items {
		if e.Target == "t_draft" && e.Outcome == "ok" {
			calls++
		}
	}
	if calls != 1 {
		b, _ := json.Marshal(page.Items)
		t.Errorf("%d calls of the tool in the audit log: %s", calls, b)
	}
}
