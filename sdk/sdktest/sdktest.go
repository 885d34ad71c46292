// Package sdktest runs a plugin in a test against a host that keeps everything in
// memory. It checks what the real host checks: input and output schemas, what the
// manifest needs, and that write tools only compile.
package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Identifiers and time of every call, so that results repeat.
const (
	WorkspaceID = "ws_01K00000000000000000000000"
	RunID       = "run_01K00000000000000000000000"
	ReviewURL   = "http://localhost:8080/review/" + RunID
)

// Now is the time of every call unless WithNow says otherwise.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Host is a host in memory for one plugin under test and those it works with.
type Host struct {
	t       testing.TB
	plugin  sdk.Plugin
	plugins []sdk.Plugin
	state   *state
	now     time.Time
	runID   string
	log     hclog.Logger
}

// Result is the outcome of one call with what it stored on the way.
type Result struct {
	// Structured is the result of a draft or read tool.
	Structured json.RawMessage
	// Sealed is what a write tool compiled.
	Sealed *effect.Sealed
	// Failure is what the tool, or a check of the host, refused.
	Failure *sdk.Failure
	// Ask holds the questions of a tool that asked the caller.
	Ask json.RawMessage
	// Progress lists the messages of Call.Progress.
	Progress []string

	evidence  []sdk.Evidence
	assets    []Asset
	proposals []Proposal
}

// Evidence lists what the call stored, fetches included.
func (r *Result) Evidence() []sdk.Evidence { return r.evidence }

// Assets lists the drafts the call stored.
func (r *Result) Assets() []Asset { return r.assets }

// Proposals lists the actions the call staged.
func (r *Result) Proposals() []Proposal { return r.proposals }

// Decode reads the structured result into v; a call that failed is an error.
func (r *Result) Decode(v any) error {
	if r.Failure != nil {
		return r.Failure
	}
	return json.Unmarshal(r.Structured, v)
}

// Asset is a stored draft.
type Asset struct {
	sdk.Asset
	Ref sdk.AssetRef
}

// Proposal is a staged call of a write tool with what it compiled to.
type Proposal struct {
	sdk.Proposal
	Proposed sdk.Proposed
	Sealed   *effect.Sealed
}

// Option sets up a Host.
type Option func(*Host)

// WithPlugin adds plugins whose tools the plugin under test may call or propose.
func WithPlugin(plugins ...sdk.Plugin) Option {
	return func(h *Host) { h.plugins = append(h.plugins, plugins...) }
}

// WithConnections sets what the workspace has connected.
func WithConnections(list ...sdk.Connection) Option {
	return func(h *Host) { h.state.connections = append(h.state.connections, list...) }
}

// WithPage answers open-web reads of url with an HTML page; other addresses are 404.
func WithPage(url, html string) Option {
	return WithReply(url, sdk.FetchReply{Status: 200, Headers: []sdk.Pair{{Name: "Content-Type", Value: "text/html; charset=utf-8"}}, Body: []byte(html)})
}

// WithReply answers open-web reads of url.
func WithReply(url string, reply sdk.FetchReply) Option {
	return func(h *Host) { h.state.pages[url] = reply }
}

// WithFetch answers reads through an endpoint of a manifest. An error, best a
// *sdk.Failure, is what the plugin gets.
func WithFetch(endpoint string, answer func(sdk.FetchRequest) (sdk.FetchReply, error)) Option {
	return func(h *Host) { h.state.fetches[endpoint] = answer }
}

// WithTool answers calls of a tool that no plugin here has. The answer is the result, or
// an error for the caller; input is decoded JSON.
func WithTool(name string, answer func(input any) any) Option {
	return func(h *Host) { h.state.tools[name] = answer }
}

// WithMemory stores value before the first call.
func WithMemory(key string, value any) Option {
	return func(h *Host) { h.state.memory[key] = mustJSON(h.t, value) }
}

// WithModel answers completions; without it they fail with model_unavailable.
func WithModel(answer func(sdk.CompleteRequest) (string, error)) Option {
	return func(h *Host) { h.state.model = answer }
}

// WithDataset stores the rows of a dataset.
func WithDataset(id string, rows ...any) Option {
	return func(h *Host) {
		for _, row := range rows {
			h.state.datasets[id] = append(h.state.datasets[id], mustJSON(h.t, row))
		}
	}
}

// WithNow sets the time of every call.
func WithNow(now time.Time) Option { return func(h *Host) { h.now = now } }

// WithoutRun makes calls outside a run, as a reading tool may be called.
func WithoutRun() Option { return func(h *Host) { h.runID = "" } }

// New makes a host for a plugin. The plugin is configured with an empty object; what is
// wrong with its manifest fails the test.
func New(t testing.TB, p sdk.Plugin, opts ...Option) *Host {
	t.Helper()
	h := &Host{t: t, plugin: p, plugins: []sdk.Plugin{p}, state: newState(), now: Now, runID: RunID,
		log: hclog.New(&hclog.LoggerOptions{Output: testWriter{t}, Level: hclog.Warn, DisableTime: true})}
	for _, opt := range opts {
		opt(h)
	}
	for _, one := range h.plugins {
		if err := checkManifest(one); err != nil {
			t.Fatalf("sdktest: %v", err)
		}
	}
	if p.Configure != nil {
		if err := p.Configure(context.Background(), json.RawMessage(`{}`)); err != nil {
			t.Fatalf("sdktest: Configure of %s: %v", p.Manifest.Name, err)
		}
	}
	return h
}

// Call calls a tool of the plugin under test. Input is marshalled unless it is JSON
// already. What the tool or a check refuses is in Result.Failure; only a broken test
// (an unknown tool) stops it.
func (h *Host) Call(tool string, input any) *Result {
	h.t.Helper()
	return h.CallAnswering(tool, input, nil)
}

// CallAnswering is Call with answers to an earlier Ask.
func (h *Host) CallAnswering(tool string, input, answers any) *Result {
	h.t.Helper()
	if _, _, ok := h.find(tool); !ok {
		h.t.Fatalf("sdktest: no plugin here has the tool %q", tool)
	}
	var ans json.RawMessage
	if answers != nil {
		ans = mustJSON(h.t, answers)
	}
	from := h.state.mark()
	r := &Result{}
	out := h.invoke(context.Background(), tool, mustJSON(h.t, input), ans, 1, func(_, _ float64, message string) { r.Progress = append(r.Progress, message) })
	r.Structured, r.Sealed, r.Failure, r.Ask = out.Result, out.Sealed, out.Failure, out.Ask
	r.evidence, r.assets, r.proposals = h.state.since(from)
	return r
}

// Evidence lists everything stored so far.
func (h *Host) Evidence() []sdk.Evidence { e, _, _ := h.state.since(mark{}); return e }

// Assets lists every draft stored so far.
func (h *Host) Assets() []Asset { _, a, _ := h.state.since(mark{}); return a }

// Proposals lists every action staged so far.
func (h *Host) Proposals() []Proposal { _, _, p := h.state.since(mark{}); return p }

// Updates lists what the plugin told about the run.
func (h *Host) Updates() []sdk.RunUpdate {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	return append([]sdk.RunUpdate(nil), h.state.updates...)
}

// Memory is what stands under key, nil when nothing does.
func (h *Host) Memory(key string) json.RawMessage {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	return h.state.memory[key]
}

// find returns the plugin and the document of a tool.
func (h *Host) find(tool string) (sdk.Plugin, schemas.ToolDocument, bool) {
	for _, p := range h.plugins {
		for _, t := range p.Tools {
			if t.Document.Name == tool {
				return p, t.Document, true
			}
		}
	}
	return sdk.Plugin{}, schemas.ToolDocument{}, false
}

// maxDepth is how deep calls may nest.
const maxDepth = 4

// invoke runs a tool of any plugin here as the real host does: input checked, then the
// call, output checked by Invoke itself.
func (h *Host) invoke(ctx context.Context, tool string, input, answers json.RawMessage, depth int, progress func(float64, float64, string)) sdk.Outcome {
	p, doc, ok := h.find(tool)
	if !ok {
		return sdk.Outcome{Failure: sdk.Fail("unknown_tool", "No tool is called %q.", tool)}
	}
	if f := validate(doc.Name+".input", doc.InputSchema, input); f != nil {
		return sdk.Outcome{Failure: f}
	}
	call := sdk.Call{
		Tool: tool, ID: fmt.Sprintf("call-%d", h.state.nextCall()), Input: input, WorkspaceID: WorkspaceID, RunID: h.runID,
		Now: h.now, Answers: answers, Log: h.log, Host: &access{host: h, plugin: p, depth: depth, fetched: map[string][]byte{}},
	}
	if h.runID != "" {
		call.ReviewURL = ReviewURL
	}
	if p.Manifest.Connector != nil {
		call.Connection = h.state.connection(p.Manifest.Connector.Provider, input)
	}
	if doc.Effect == schemas.EffectWrite {
		call.ActionID = fmt.Sprintf("act_01K%023d", h.state.nextAction())
	}
	return sdk.Invoke(ctx, p, call, progress)
}

func validate(name string, doc schemas.Document, value json.RawMessage) *sdk.Failure {
	s, err := schemas.Compile(name, doc.MustJSON())
	if err != nil {
		return sdk.Fail("internal", "The schema %s does not compile: %v", name, err)
	}
	return failureOf(s.Validate(value))
}

func mustJSON(t testing.TB, v any) json.RawMessage {
	t.Helper()
	switch raw := v.(type) {
	case json.RawMessage:
		return raw
	case nil:
		return json.RawMessage(`{}`)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("sdktest: not JSON: %v", err)
	}
	return b
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", b)
	return len(b), nil
}
