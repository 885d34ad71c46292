package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

const (
	agentKey = "spk_agent_test"
	otherKey = "spk_agent_other"
	slowKey  = "spk_agent_throttled"
)

// keys is a key ring in memory.
type keys struct{}

func (keys) FromKey(_ context.Context, key string) (core.Principal, error) {
	switch key {
	case agentKey:
		return core.Principal{Kind: core.ActorKindKey, KeyKind: core.APIKeyKindAgent, ID: "key_1", WorkspaceID: "ws_1", Scopes: core.ScopesOfKey(core.APIKeyKindAgent)}, nil
	case otherKey:
		return core.Principal{Kind: core.ActorKindKey, KeyKind: core.APIKeyKindAgent, ID: "key_2", WorkspaceID: "ws_2"}, nil
	case slowKey:
		e := core.Errf(core.KindRateLimited, "rate_limited", "Too many tries.")
		e.RetryAfter = 3 * time.Second
		return core.Principal{}, e
	}
	return core.Principal{}, core.Errf(core.KindUnauthenticated, "bad_credential", "The key is not known.")
}

// calls answers the fixture tools and remembers who called what.
type calls struct {
	mu   sync.Mutex
	seen []string
	// gate, when set, holds t_wait until the call is cancelled or the gate closes.
	gate      chan struct{}
	started   chan struct{}
	cancelled chan struct{}
}

func (c *calls) Call(ctx context.Context, p core.Principal, r tool.Request) (*tool.Result, error) {
	c.mu.Lock()
	c.seen = append(c.seen, p.ID+" "+r.Tool)
	c.mu.Unlock()
	switch r.Tool {
	case "t_echo":
		return &tool.Result{Structured: json.RawMessage(fmt.Sprintf(`{"echo":%s,"era":%q,"caller":%q}`, r.Args, r.Era, p.ID))}, nil
	case "t_pack":
		return &tool.Result{
			Structured: json.RawMessage(`{"reviewUrl":"http://localhost:8080/review/run_1"}`),
			Lead:       []string{"Built from 3 commits.", "Please review.", "http://localhost:8080/review/run_1", "Wait for the human."},
			RunID:      "run_1", ReviewURL: "http://localhost:8080/review/run_1",
		}, nil
	case "t_approve":
		e := core.Errf(core.KindForbidden, "approval_required", "A key of kind agent cannot approve. Ask the person to decide on the review page.")
		e.ReviewURL = "http://localhost:8080/review/run_1"
		return nil, e
	case "t_invalid":
		e := core.Errf(core.KindInvalid, "invalid_input", "The input does not fit.")
		e.Fields = []core.FieldError{{Pointer: "/goal", Message: "is required"}}
		return nil, e
	case "t_broken":
		return nil, fmt.Errorf("secret detail of the inside")
	case "t_panic":
		panic("boom")
	case "t_progress":
		for i := range 3 {
			r.Progress(float64(i+1), 3, fmt.Sprintf("step %d", i+1))
		}
		return &tool.Result{Structured: json.RawMessage(`{"ok":true}`)}, nil
	case "t_wait":
		close(c.started)
		select {
		case <-ctx.Done():
			close(c.cancelled)
			return nil, ctx.Err()
		case <-c.gate:
			return &tool.Result{Structured: json.RawMessage(`{"ok":true}`)}, nil
		}
	}
	return nil, core.Errf(core.KindNotFound, tool.CodeUnknownTool, "There is no tool %q.", r.Tool)
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// runs holds one run of workspace ws_1.
type runs struct{}

func (runs) Get(_ context.Context, p core.Principal, id string) (*core.Run, error) {
	if p.WorkspaceID != "ws_1" || id != "run_1" {
		return nil, core.Errf(core.KindNotFound, "not_found", "There is no run %s.", id)
	}
	return &core.Run{ID: id, WorkspaceID: "ws_1", Goal: "Get users"}, nil
}

func (runs) Asset(_ context.Context, _ core.Principal, id string) (*core.Asset, error) {
	return &core.Asset{ID: id}, nil
}

func (runs) Evidence(_ context.Context, _ core.Principal, id string) (*core.Evidence, error) {
	return nil, fmt.Errorf("disk on fire")
}

// stepClock moves by a second at every look, so that throttles open without waiting.
type stepClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func doc(name string, effect schemas.Effect) schemas.ToolDocument {
	object := schemas.Document{"type": "object"}
	return schemas.ToolDocument{Name: name, Title: "Title of " + name, Description: "Changes nothing: a fixture.", Effect: effect, InputSchema: object, OutputSchema: object}
}

func fixtureDocs() []schemas.ToolDocument {
	var docs []schemas.ToolDocument
	for _, name := range []string{"t_approve", "t_broken", "t_echo", "t_invalid", "t_pack", "t_panic", "t_progress", "t_wait"} {
		docs = append(docs, doc(name, schemas.EffectDraft))
	}
	docs[0].Hints = &schemas.ToolHints{ReadOnly: new(true), Destructive: new(true)} // not believed
	docs[2].Effect = schemas.EffectRead
	return docs
}

// rig is a served endpoint.
type rig struct {
	*httptest.Server
	t        *testing.T
	calls    *calls
	registry *tool.Registry
	front    *front
}

func newRig(t *testing.T, change ...func(*Deps)) *rig {
	t.Helper()
	r := &rig{t: t, calls: &calls{gate: make(chan struct{}), started: make(chan struct{}), cancelled: make(chan struct{})}, registry: registryOf(t, fixtureDocs())}
	deps := Deps{Dispatcher: r.calls, Registry: r.registry, Auth: keys{}, Runs: runs{}, BaseURL: "http://localhost:8080", Version: "1.2.3", Clock: &stepClock{now: time.Unix(1e9, 0)}}
	for _, f := range change {
		f(&deps)
	}
	h, err := New(deps)
	if err != nil {
		t.Fatal(err)
	}
	r.front = h.(*front)
	r.Server = httptest.NewServer(h)
	t.Cleanup(r.Close)
	return r
}

// answer is a finished HTTP exchange.
type answer struct {
	status int
	header http.Header
	body   string
}

// send posts a body with headers given as name, value pairs.
func (r *rig) send(method, body string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, r.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			req.Host = headers[i+1]
		case "Content-Type":
			req.Header.Set(headers[i], headers[i+1])
		default:
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

func (r *rig) post(body string, headers ...string) answer {
	return r.send(http.MethodPost, body, headers...)
}

// rpc is one decoded JSON-RPC answer.
type rpc struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      any             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (a answer) rpc(t *testing.T) rpc {
	t.Helper()
	var m rpc
	dec := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("status %d, not JSON-RPC: %v: %s", a.status, err, a.body)
	}
	return m
}

func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// callResult is the result of tools/call.
type callResult struct {
	IsError bool `json:"isError"`
	Content []struct {
		Type, Text, URI string
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
}

func (a answer) call(t *testing.T) callResult {
	t.Helper()
	m := a.want(t, http.StatusOK).rpc(t)
	if m.Error != nil {
		t.Fatalf("protocol error %d: %s", m.Error.Code, m.Error.Message)
	}
	var c callResult
	if err := json.Unmarshal(m.Result, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (a answer) problem(t *testing.T) core.Problem {
	t.Helper()
	var p core.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("status %d, not a problem document: %s", a.status, a.body)
	}
	schema, err := schemas.Resource("problem")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate([]byte(a.body)); err != nil {
		t.Errorf("problem document: %v: %s", err, a.body)
	}
	return p
}

func callBody(name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args)
}

const (
	listBody = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	initBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
)
