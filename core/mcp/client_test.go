package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// patience bounds waits for things that happen at once when they happen at all.
const patience = 10 * time.Second

// keyed adds the key to every request of a client.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (r *rig) connect(key string, opts *mcp.ClientOptions) *mcp.ClientSession {
	r.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(r.t.Context(), &mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}}}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = session.Close() })
	return session
}

func TestOfficialClient(t *testing.T) {
	r := newRig(t)
	session := r.connect(agentKey, nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range list.Tools {
		got = append(got, one.Name)
		checkHints(t, one)
	}
	if !slices.Equal(got, r.visible()) {
		t.Errorf("tools %v, want %v", got, r.visible())
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "t_echo", Arguments: map[string]any{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(result.StructuredContent); !strings.Contains(string(b), `"caller":"key_1"`) {
		t.Errorf("structured content %s", b)
	}
	refused, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "t_approve"})
	if err != nil || !refused.IsError {
		t.Errorf("approve: %+v, %v", refused, err)
	}
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "run://run_1"})
	if err != nil || !strings.Contains(read.Contents[0].Text, "Get users") {
		t.Errorf("resource: %+v, %v", read, err)
	}
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "plan", Arguments: map[string]string{"goal": "it"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Plan it." {
		t.Errorf("prompt: %+v, %v", prompt, err)
	}
}

// checkHints: what a tool does decides its hints; a plugin cannot call its own harmless,
// or a host tool's.
func checkHints(t *testing.T, one *mcp.Tool) {
	t.Helper()
	a := one.Annotations
	got := []bool{a.ReadOnlyHint, *a.DestructiveHint, *a.OpenWorldHint}
	want := []bool{false, false, false}
	switch {
	case one.Name == "t_echo":
		want = []bool{true, false, true}
	case one.Name == "mkt_approve_action", one.Name == "mkt_approve_run":
		want = []bool{false, true, false}
	case one.Name == "platform_list_operators":
		want = []bool{true, false, false}
	case !strings.HasPrefix(one.Name, "t_"):
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: read-only, destructive, open world are %v, want %v", one.Name, got, want)
	}
}

func TestOfficialClientWithoutKey(t *testing.T) {
	r := newRig(t)
	session := r.connect("", nil)
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "t_echo"}); err == nil {
		t.Error("a call without a key was answered")
	}
}

func TestProgressReachesTheClient(t *testing.T) {
	r := newRig(t)
	got := make(chan string, 8)
	session := r.connect(agentKey, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		got <- fmt.Sprintf("%v %s", req.Params.Progress, req.Params.Message)
	}})
	params := &mcp.CallToolParams{Name: "t_progress"}
	params.SetProgressToken("tok")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		select {
		case one := <-got:
			if want := fmt.Sprintf("%d step %d", i+1, i+1); one != want {
				t.Errorf("progress %q, want %q", one, want)
			}
		case <-time.After(patience):
			t.Fatal("no progress")
		}
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t_progress","arguments":{},"_meta":{"progressToken":5}}}`
	streamed := r.post(body, "X-Api-Key", agentKey, "Accept", "application/json, text/event-stream").want(t, http.StatusOK)
	if !strings.HasPrefix(streamed.header.Get("Content-Type"), "text/event-stream") || strings.Count(streamed.body, "notifications/progress") != 3 {
		t.Errorf("bare call with progress: %s", streamed.body)
	}
	r.post(body, "X-Api-Key", agentKey, "Accept", "application/json").call(t)
}

// Progress that does not rise, or comes too fast, is dropped; the last is not.
func TestProgressIsThrottled(t *testing.T) {
	frozen := &frozenClock{}
	r := newRig(t, func(d *Deps) { d.Clock = frozen })
	a := r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t_progress","arguments":{},"_meta":{"progressToken":5}}}`,
		"X-Api-Key", agentKey, "Accept", "text/event-stream, application/json").want(t, http.StatusOK)
	if n := strings.Count(a.body, "notifications/progress"); n != 2 || !strings.Contains(a.body, "step 1") || !strings.Contains(a.body, "step 3") {
		t.Errorf("%d notifications: %s", n, a.body)
	}
}

type frozenClock struct{}

func (*frozenClock) Now() time.Time { return time.Unix(1e9, 0).UTC() }

func TestCancellationReachesTheTool(t *testing.T) {
	r := newRig(t)
	session := r.connect(agentKey, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "t_wait"})
		done <- err
	}()
	wait(t, r.calls.started, "the call to start")
	cancel()
	wait(t, r.calls.cancelled, "the tool to be cancelled")
	if err := <-done; err == nil {
		t.Error("a cancelled call was answered")
	}
}

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// A swap reaches clients: one notification, new tools there, removed ones gone, and the
// kept answer follows.
func TestSwapReachesClients(t *testing.T) {
	r := newRig(t)
	changed := make(chan struct{}, 8)
	session := r.connect(agentKey, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	docs := fixtureDocs()[1:]
	docs = append(docs, doc("t_new", schemas.EffectDraft))
	r.registry.Swap(snapshotOf(t, docs))
	wait(t, changed, "tools/list_changed")
	for _, got := range [][]string{listed(t, session), names(t, r.post(listBody))} {
		if !slices.Equal(got, r.visible()) || slices.Contains(got, "t_approve") {
			t.Errorf("tools %v, want %v", got, r.visible())
		}
	}
	before := len(changed)
	r.registry.Swap(snapshotOf(t, docs)) // the same again
	r.registry.Swap(snapshotOf(t, append(docs[:len(docs):len(docs)], doc("t_later", schemas.EffectDraft))))
	wait(t, changed, "the second change")
	if got := len(changed); got != before {
		t.Errorf("%d notifications more than changes", got-before)
	}
}

// A client of the older revisions hears of changes on the stream of its session, without
// a credential when it opened the session without one.
func TestSwapReachesOlderSessions(t *testing.T) {
	r := newRig(t)
	session := r.post(fmt.Sprintf(initBody, "2025-03-26")).want(t, http.StatusOK).header.Get("Mcp-Session-Id")
	r.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session).want(t, http.StatusAccepted)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	heard := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "notifications/tools/list_changed") {
				close(heard)
				return
			}
		}
	}()
	r.registry.Swap(snapshotOf(t, fixtureDocs()[1:]))
	wait(t, heard, "tools/list_changed")
}

func listed(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	var got []string
	for one, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, one.Name)
	}
	return got
}

// No call during a swap meets a tool that is neither there before nor after.
func TestNoCallFailsDuringSwaps(t *testing.T) {
	r := newRig(t)
	stop, failed := make(chan struct{}), make(chan string, 4)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					failed <- ""
					return
				default:
				}
				a := r.post(callBody("t_echo", "{}"), withKey...)
				if a.status != http.StatusOK || !strings.Contains(a.body, `"caller":"key_1"`) {
					failed <- a.body
					return
				}
			}
		}()
	}
	docs := fixtureDocs()
	for i := range 10 {
		docs[2].Description = fmt.Sprintf("Changes nothing: version %d.", i)
		r.registry.Swap(snapshotOf(t, slices.Clone(docs)))
	}
	close(stop)
	for range 2 {
		if body := <-failed; body != "" {
			t.Errorf("a call failed: %s", body)
		}
	}
}

// The kept answers are what the SDK would say.
func TestKeptListsAreTheSDKsOwn(t *testing.T) {
	r := newRig(t)
	for _, method := range listMethods {
		for _, revision := range []string{"", "2025-03-26", "2025-06-18", "2025-11-25"} {
			var headers []string
			if revision != "" {
				headers = []string{"Mcp-Protocol-Version", revision}
			}
			kept := r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`, method), headers...)
			// An explicit empty cursor asks for the same page but is not the plain case.
			sdk := r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"cursor":""}}`, method), headers...)
			if kept.body != sdk.body {
				t.Errorf("%s %s:\nkept %s\nsdk  %s", method, revision, kept.body, sdk.body)
			}
			for _, name := range []string{"Content-Type", "Cache-Control"} {
				if kept.header.Get(name) != sdk.header.Get(name) {
					t.Errorf("%s: %s %q, the SDK says %q", method, name, kept.header.Get(name), sdk.header.Get(name))
				}
			}
		}
	}
	if m := r.post(`{"jsonrpc":"2.0","id":"word","method":"tools/list"}`).rpc(t); m.ID != "word" {
		t.Errorf("id %v", m.ID)
	}
}

func TestStdio(t *testing.T) {
	registry := registryOf(t, fixtureDocs())
	deps := Deps{Dispatcher: &calls{}, Registry: registry, Runs: runs{}, BaseURL: "http://localhost:8080"}
	person := core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", WorkspaceID: "ws_1"}
	clientIn, serverOut := io.Pipe()
	serverIn, clientOut := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- ServeStdio(t.Context(), deps, person, serverIn, serverOut) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "t_echo"})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(result.StructuredContent); !strings.Contains(string(b), `"caller":"usr_1"`) {
		t.Errorf("structured content %s", b)
	}
	_ = clientOut.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("end of input: %v", err)
		}
	case <-time.After(patience):
		t.Error("the end of input does not end serving")
	}
	if err := ServeStdio(t.Context(), deps, core.Anonymous(), strings.NewReader(""), io.Discard); !core.IsKind(err, core.KindUnauthenticated) {
		t.Errorf("anonymous: %v", err)
	}
}

func TestOwnPromptsFollowTheirTools(t *testing.T) {
	r := newRig(t)
	if got := r.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`).body; strings.Contains(got, "weekly_report") || strings.Contains(got, `"launch"`) {
		t.Errorf("prompts of missing tools: %s", got)
	}
	r.registry.Swap(snapshotOf(t, []schemas.ToolDocument{doc("platform_get_users_after_build", schemas.EffectDraft), doc("mkt_prepare_weekly_report", schemas.EffectDraft)}))
	got := r.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`).body
	for _, name := range []string{"launch", "weekly_report", "plan"} {
		if !strings.Contains(got, fmt.Sprintf(`"name":%q`, name)) {
			t.Errorf("%s is missing: %s", name, got)
		}
	}
	a := r.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"launch","arguments":{"whatChanged":"CSV export"}}}`, withKey...)
	if text := a.want(t, 200).body; !strings.Contains(text, "CSV export") || strings.Contains(text, "{{") {
		t.Errorf("prompt %s", text)
	}
}

func TestDepsAreChecked(t *testing.T) {
	full := Deps{Dispatcher: &calls{}, Registry: tool.NewRegistry(), Auth: keys{}, Runs: runs{}, BaseURL: "http://localhost:8080"}
	if _, err := New(full); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Deps){
		"no dispatcher": func(d *Deps) { d.Dispatcher = nil }, "no keys": func(d *Deps) { d.Auth = nil },
		"no registry": func(d *Deps) { d.Registry = nil }, "bad base": func(d *Deps) { d.BaseURL = "localhost:8080" },
	} {
		d := full
		change(&d)
		if _, err := New(d); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
