package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

var withKey = []string{"X-Api-Key", agentKey}

func names(t *testing.T, a answer) []string {
	t.Helper()
	var list struct{ Tools []struct{ Name string } }
	m := a.want(t, http.StatusOK).rpc(t)
	if err := json.Unmarshal(m.Result, &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, one := range list.Tools {
		out = append(out, one.Name)
	}
	return out
}

func TestBareCallsOf20250326(t *testing.T) {
	r := newRig(t)
	if got := names(t, r.post(listBody)); !slices.Equal(got, r.visible()) {
		t.Errorf("tools %v", got)
	}
	for _, headers := range [][]string{withKey, {"Authorization", "Bearer " + agentKey}, {"Authorization", "bearer " + agentKey, "Accept", "application/json"}} {
		c := r.post(callBody("t_echo", `{"a":1}`), headers...).call(t)
		if want := `{"echo":{"a":1},"era":"2025-03-26","caller":"key_1"}`; string(c.StructuredContent) != want || c.Content[len(c.Content)-1].Text != want {
			t.Errorf("result %+v", c)
		}
	}
	note := r.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).want(t, http.StatusAccepted)
	if note.body != "" {
		t.Errorf("a notification was answered with %q", note.body)
	}
	for _, method := range []string{"resources/list", "resources/templates/list", "prompts/list", "ping"} {
		if m := r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q}`, method)).want(t, http.StatusOK).rpc(t); m.Error != nil || m.ID != "x" {
			t.Errorf("%s: %+v", method, m)
		}
	}
}

func TestBatchOf20250326(t *testing.T) {
	r := newRig(t)
	batch := `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t_echo","arguments":{}}}]`
	a := r.post(batch, withKey...).want(t, http.StatusOK)
	var answers []rpc
	if err := json.Unmarshal([]byte(a.body), &answers); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	if len(answers) != 2 || answers[0].Error != nil || answers[1].Error != nil {
		t.Errorf("answers %s", a.body)
	}
	r.post(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`).want(t, http.StatusAccepted)
	r.post(batch, append([]string{"Mcp-Protocol-Version", "2025-06-18"}, withKey...)...).want(t, http.StatusBadRequest)
}

func TestSessions(t *testing.T) {
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			r := newRig(t)
			for _, accept := range []string{"", "application/json", "*/*", "application/json, text/event-stream"} {
				a := r.post(fmt.Sprintf(initBody, revision), "Accept", accept).want(t, http.StatusOK)
				session := a.header.Get("Mcp-Session-Id")
				if session == "" {
					t.Fatal("no session")
				}
				streamed := strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream")
				if streamed != strings.Contains(accept, "event-stream") {
					t.Errorf("Accept %q got %s", accept, a.header.Get("Content-Type"))
				}
				if streamed {
					continue
				}
				var init struct{ ProtocolVersion, Instructions string }
				if m := a.rpc(t); json.Unmarshal(m.Result, &init) != nil || init.ProtocolVersion != revision || init.Instructions == "" {
					t.Errorf("initialize: %s", a.body)
				}
				in := []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", revision}
				r.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, in...).want(t, http.StatusAccepted)
				if got := names(t, r.post(listBody, in...)); !slices.Equal(got, r.visible()) {
					t.Errorf("tools %v", got)
				}
				r.post(callBody("t_echo", "{}"), in...).want(t, http.StatusUnauthorized)
				c := r.post(callBody("t_pack", "{}"), append(in, withKey...)...).call(t)
				checkPack(t, c, revision)
				r.send(http.MethodDelete, "", in...).want(t, http.StatusNoContent)
				if p := r.post(listBody, in...).want(t, http.StatusNotFound).problem(t); p.Code != "session_not_found" {
					t.Errorf("problem %+v", p)
				}
			}
		})
	}
}

// checkPack: people's text first, JSON second, and a link only where the revision has one.
func checkPack(t *testing.T, c callResult, revision string) {
	t.Helper()
	wantKinds := []string{"text", "text"}
	if revision >= "2025-06-18" {
		wantKinds = append(wantKinds, "resource_link")
	}
	var kinds []string
	for _, one := range c.Content {
		kinds = append(kinds, one.Type)
	}
	if !slices.Equal(kinds, wantKinds) {
		t.Fatalf("content %v, want %v", kinds, wantKinds)
	}
	if want := "Built from 3 commits.\n\nPlease review.\n\nhttp://localhost:8080/review/run_1\n\nWait for the human."; c.Content[0].Text != want {
		t.Errorf("first block %q", c.Content[0].Text)
	}
	if c.Content[1].Text != string(c.StructuredContent) {
		t.Errorf("text %q differs from structured content %s", c.Content[1].Text, c.StructuredContent)
	}
	if len(kinds) == 3 && c.Content[2].URI != "run://run_1" {
		t.Errorf("link %q", c.Content[2].URI)
	}
}

func TestStatelessOfLaterRevisions(t *testing.T) {
	r := newRig(t)
	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		h := append([]string{"Mcp-Protocol-Version", revision}, withKey...)
		checkPack(t, r.post(callBody("t_pack", "{}"), h...).call(t), revision)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	modern := []string{"Mcp-Protocol-Version", "2026-07-28"}
	list := r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, append(modern, "Mcp-Method", "tools/list")...)
	if got := names(t, list); !slices.Equal(got, r.visible()) {
		t.Errorf("tools %v", got)
	}
	discover := r.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, append(modern, "Mcp-Method", "server/discover")...).want(t, http.StatusOK)
	if !strings.Contains(discover.body, "2026-07-28") {
		t.Errorf("discover: %s", discover.body)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t_pack","arguments":{},` + meta + `}}`
	h := append(modern, "Mcp-Method", "tools/call", "Mcp-Name", "t_pack")
	r.post(call, h...).want(t, http.StatusUnauthorized)
	checkPack(t, r.post(call, append(h, withKey...)...).call(t), "2026-07-28")
	r.post(call, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "X-Api-Key", agentKey).want(t, http.StatusBadRequest)
	r.send(http.MethodGet, "", "Mcp-Protocol-Version", "2026-07-28").want(t, http.StatusMethodNotAllowed)
}

func TestFaultsOfTheTransport(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name, method, body string
		headers            []string
		status             int
		code               string
	}{
		{"GET without a session", "GET", "", nil, 405, "method_not_allowed"},
		{"DELETE without a session", "DELETE", "", nil, 405, "method_not_allowed"},
		{"PUT", "PUT", "", nil, 405, "method_not_allowed"},
		{"unknown session", "POST", listBody, []string{"Mcp-Session-Id", "nope"}, 404, "session_not_found"},
		{"too large", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", MaxBody) + `"}}`, nil, 413, "body_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.send(c.method, c.body, c.headers...).want(t, c.status).problem(t)
			if p.Code != c.code || p.Status != c.status || p.RequestID == "" {
				t.Errorf("problem %+v", p)
			}
		})
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		r.post(listBody, "Content-Type", kind).want(t, http.StatusUnsupportedMediaType).problem(t)
	}
	for body, code := range map[string]int{"": -32600, "nonsense": -32700, "[]": -32600, `{"jsonrpc":"2.0"}`: -32600, "[" + strings.Repeat(listBody+",", 16) + listBody + "]": -32600} {
		if m := r.post(body).want(t, http.StatusBadRequest).rpc(t); m.Error == nil || m.Error.Code != code || m.ID != nil {
			t.Errorf("%.40q: %+v", body, m.Error)
		}
	}
	if m := r.post(`{"jsonrpc":"2.0","id":"a","method":"no/such"}`).want(t, http.StatusOK).rpc(t); m.Error == nil || m.Error.Code != -32601 || m.ID != "a" {
		t.Errorf("unknown method: %+v", m)
	}
	r.post(`{"jsonrpc":"2.0","method":"notifications/no_such"}`).want(t, http.StatusAccepted)
}

func TestToolErrors(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		tool, code string
		status     int
	}{
		{"t_approve", "approval_required", 403}, {"t_invalid", "invalid_input", 422}, {"t_broken", "internal", 500},
	} {
		t.Run(c.tool, func(t *testing.T) {
			a := r.post(callBody(c.tool, "{}"), withKey...)
			got := a.call(t)
			p := answer{body: string(got.StructuredContent)}.problem(t)
			if !got.IsError || p.Code != c.code || p.Status != c.status || p.RequestID == "" {
				t.Errorf("result %s", a.body)
			}
			if got.Content[len(got.Content)-1].Text != string(got.StructuredContent) {
				t.Errorf("text and structured content differ: %s", a.body)
			}
			if strings.Contains(a.body, "secret detail") {
				t.Errorf("the cause leaked: %s", a.body)
			}
		})
	}
	approve := r.post(callBody("t_approve", "{}"), withKey...).call(t)
	if p := (answer{body: string(approve.StructuredContent)}).problem(t); p.ReviewURL == nil || !strings.Contains(approve.Content[0].Text, *p.ReviewURL) {
		t.Errorf("the review address is not first: %+v", approve)
	}
	for body, code := range map[string]int{
		callBody("t_missing", "{}"): -32602,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`: -32602,
		callBody("t_panic", "{}"): -32603,
	} {
		if m := r.post(body, withKey...).want(t, http.StatusOK).rpc(t); m.Error == nil || m.Error.Code != code {
			t.Errorf("%s: %+v", body, m)
		}
	}
	if r.post(callBody("t_echo", "{}"), withKey...).call(t).IsError {
		t.Error("the host did not survive the panic")
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	r := newRig(t)
	read := func(uri string, headers ...string) answer {
		return r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, uri), headers...)
	}
	read("run://run_1").want(t, http.StatusUnauthorized)
	var got struct {
		Contents []struct{ URI, Text, MimeType string }
	}
	m := read("run://run_1", withKey...).want(t, http.StatusOK).rpc(t)
	if err := json.Unmarshal(m.Result, &got); err != nil || len(got.Contents) != 1 {
		t.Fatalf("%+v", m)
	}
	var run core.Run
	if err := json.Unmarshal([]byte(got.Contents[0].Text), &run); err != nil || run.ID != "run_1" || got.Contents[0].MimeType != "application/json" {
		t.Errorf("contents %+v", got)
	}
	if m := read("asset://ast_1", withKey...).want(t, http.StatusOK).rpc(t); m.Error != nil {
		t.Errorf("asset: %+v", m.Error)
	}
	if m := read("guide://fixture", withKey...).want(t, http.StatusOK).rpc(t); m.Error != nil || !strings.Contains(string(m.Result), "key_1") {
		t.Errorf("resource by tool: %+v", m)
	}
	for uri, code := range map[string]int{"run://run_2": -32602, "file:///etc/passwd": -32602, "evidence://ev_1": -32603} {
		a := read(uri, withKey...)
		if m := a.want(t, http.StatusOK).rpc(t); m.Error == nil || m.Error.Code != code || strings.Contains(a.body, "disk on fire") {
			t.Errorf("%s: %s", uri, a.body)
		}
	}
	if m := read("run://run_1", "X-Api-Key", otherKey).want(t, http.StatusOK).rpc(t); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("another workspace read the run: %+v", m)
	}

	prompt := func(name, args string, headers ...string) answer {
		return r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":%q,"arguments":%s}}`, name, args), headers...)
	}
	prompt("plan", `{"goal":"x"}`).want(t, http.StatusUnauthorized)
	if a := prompt("plan", `{"goal":"the launch"}`, withKey...); !strings.Contains(a.want(t, 200).body, "Plan the launch.") {
		t.Errorf("prompt: %s", a.body)
	}
	if a := prompt("by_tool", `{}`, withKey...); !strings.Contains(a.want(t, 200).body, "key_1") {
		t.Errorf("prompt by tool: %s", a.body)
	}
	for _, bad := range []string{`{}`, `{"goal":" "}`, `{"goal":"x","more":"y"}`} {
		if m := prompt("plan", bad, withKey...).want(t, 200).rpc(t); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s: %+v", bad, m)
		}
	}
}

func TestFillLeavesOutWhatIsNotGiven(t *testing.T) {
	got := fill("Built: {{what}}\nFor: {{who}}\nLook at {{focus}}.", map[string]string{"what": "CSV {{who}}", "who": "", "focus": ""})
	if !strings.Contains(got, "Built: CSV") || strings.Contains(got, "For:") || !strings.Contains(got, "(not given)") {
		t.Errorf("%q", got)
	}
}
