package mcp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp/router"
)

// Whatever the spelling, a call without credential reaches no tool.
func TestNoCredentialReachesNoTool(t *testing.T) {
	r := newRig(t)
	call := callBody("t_echo", "{}")
	for name, body := range map[string]string{
		"plain":                        call,
		"batch behind a list":          "[" + listBody + "," + call + "]",
		"batch before a list":          "[" + call + "," + listBody + "]",
		"repeated key, call last":      `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"t_echo","arguments":{}}}`,
		"repeated key, call first":     `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list","params":{"name":"t_echo","arguments":{}}}`,
		"escaped key":                  `{"jsonrpc":"2.0","id":1,"\u006dethod":"tools/call","params":{"name":"t_echo","arguments":{}}}`,
		"escaped key besides a list":   `{"jsonrpc":"2.0","id":1,"method":"tools/list","\u006dethod":"tools/call","params":{"name":"t_echo","arguments":{}}}`,
		"escaped value":                `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"t_echo","arguments":{}}}`,
		"key in other case":            `{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"tools/list","params":{"name":"t_echo","arguments":{}}}`,
		"nested batch":                 "[[" + call + "]]",
		"header says list":             call,
		"call dressed as notification": `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t_echo","arguments":{}}}`,
		"resource":                     `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"guide://fixture"}}`,
		"prompt answered by a tool":    `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"by_tool","arguments":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, headers := range [][]string{nil, {"Mcp-Protocol-Version", "2025-03-26"}, {"Mcp-Method", "tools/list"}, {"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}} {
				a := r.post(body, headers...)
				if r.calls.count() != 0 {
					t.Fatalf("the tool ran: %v: %d %s", headers, a.status, a.body)
				}
				if name == "plain" && (a.status != http.StatusUnauthorized || !strings.Contains(a.header.Get("WWW-Authenticate"), `resource_metadata="http://localhost:8080/.well-known/oauth-protected-resource/mcp"`)) {
					t.Errorf("%v: %d %v", headers, a.status, a.header)
				}
			}
		})
	}
}

// The look at the body may only refuse: without it, the decision behind the SDK holds.
func TestAuthorisationHoldsWithoutTheFront(t *testing.T) {
	r := newRig(t)
	for _, lane := range []router.Lane{router.Stateless, router.StatelessStream, router.Stateful} {
		for _, body := range []string{callBody("t_echo", "{}"), "[" + listBody + "," + callBody("t_echo", "{}") + "]"} {
			w := &memory{header: http.Header{}}
			req, err := http.NewRequestWithContext(contextWithPrincipal(t.Context(), core.Anonymous()), http.MethodPost, "/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if lane == router.Stateful {
				a := r.post(fmt.Sprintf(initBody, "2025-03-26"))
				req.Header.Set("Mcp-Session-Id", a.header.Get("Mcp-Session-Id"))
			}
			r.front.lanes[lane].ServeHTTP(w, req)
			if r.calls.count() != 0 || !strings.Contains(w.String(), "unauthenticated") {
				t.Errorf("%v: %s", lane, w.String())
			}
		}
	}
}

func TestBadCredentialIsRefusedOnEveryMethod(t *testing.T) {
	r := newRig(t)
	initialize := fmt.Sprintf(initBody, "2025-03-26")
	for _, headers := range [][]string{
		{"X-Api-Key", "wrong"}, {"X-Api-Key", ""}, {"Authorization", "Bearer wrong"}, {"Authorization", "Bearer"}, {"Authorization", "Basic " + agentKey},
		{"Authorization", agentKey}, {"Authorization", "Bearer " + agentKey, "X-Api-Key", otherKey}, {"X-Api-Key", agentKey, "X-Api-Key", otherKey},
		{"Authorization", "Bearer " + agentKey, "Authorization", "Bearer " + otherKey}, {"Authorization", "Bearer a b"},
	} {
		for _, body := range []string{listBody, initialize, callBody("t_echo", "{}"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
			a := r.post(body, headers...).want(t, http.StatusUnauthorized)
			if !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%v: %q", headers, a.header.Get("WWW-Authenticate"))
			}
			a.problem(t)
		}
		r.send(http.MethodGet, "", headers...).want(t, http.StatusUnauthorized)
	}
	if r.calls.count() != 0 {
		t.Error("a tool ran")
	}
	a := r.post(listBody, "X-Api-Key", slowKey).want(t, http.StatusTooManyRequests)
	if a.header.Get("Retry-After") != "3" || a.header.Get("WWW-Authenticate") != "" {
		t.Errorf("headers %v", a.header)
	}
}

func TestForeignOriginsAndHosts(t *testing.T) {
	r := newRig(t, func(d *Deps) {
		d.AllowedOrigins = []string{"https://app.example/"}
		d.AllowedHosts = []string{"ops.internal:9443"}
	})
	host := strings.TrimPrefix(r.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Origin", "http://localhost:8080"}, 200},
		{[]string{"Origin", "http://" + host}, 200},
		{[]string{"Origin", "https://APP.example"}, 200},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Origin", "http://localhost:8080.evil.example"}, 403},
		{[]string{"Origin", "http://localhost:8080", "Origin", "https://evil.example"}, 403},
		{[]string{"Host", "localhost:" + port}, 200},
		{[]string{"Host", "[::1]:" + port}, 200},
		{[]string{"Host", "LOCALHOST"}, 200},
		{[]string{"Host", "ops.internal:9443"}, 200},
		{[]string{"Host", "ops.internal:1"}, 403},
		{[]string{"Host", "evil.example"}, 403},
		{[]string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}, 403},
	} {
		a := r.post(listBody, c.headers...)
		if a.status != c.status {
			t.Errorf("%v: status %d, want %d", c.headers, a.status, c.status)
		}
	}
	a := r.post(listBody, "Origin", "https://app.example")
	if a.header.Get("Access-Control-Allow-Origin") != "https://app.example" || !slices.Contains(a.header.Values("Vary"), "Origin") {
		t.Errorf("headers %v", a.header)
	}
	pre := r.send(http.MethodOptions, "", "Origin", "https://app.example").want(t, http.StatusNoContent)
	if !strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "X-Api-Key") {
		t.Errorf("preflight %v", pre.header)
	}
	r.send(http.MethodOptions, "", "Origin", "https://evil.example").want(t, http.StatusForbidden)
}

func TestSessionsBelongToTheirOwner(t *testing.T) {
	r := newRig(t)
	a := r.post(fmt.Sprintf(initBody, "2025-11-25"), withKey...).want(t, http.StatusOK)
	in := []string{"Mcp-Session-Id", a.header.Get("Mcp-Session-Id")}
	if p := r.post(listBody, append(in, "X-Api-Key", otherKey)...).want(t, http.StatusForbidden).problem(t); p.Code != "session_owner" {
		t.Errorf("%+v", p)
	}
	r.send(http.MethodGet, "", in...).want(t, http.StatusUnauthorized)
	r.send(http.MethodDelete, "", in...).want(t, http.StatusUnauthorized)
	r.post(callBody("t_echo", "{}"), append(in, withKey...)...).call(t)
	r.send(http.MethodDelete, "", append(in, withKey...)...).want(t, http.StatusNoContent)
}

// Beyond the bound a client is served without a session, so that a flood of anonymous
// sessions costs neither memory nor service.
func TestAnonymousSessionsAreBounded(t *testing.T) {
	r := newRig(t)
	r.front.sessions.limit = func(owner string) int {
		if owner == "" {
			return 2
		}
		return 1
	}
	initialize := fmt.Sprintf(initBody, "2025-06-18")
	var ids []string
	for range 2 {
		ids = append(ids, r.post(initialize).want(t, http.StatusOK).header.Get("Mcp-Session-Id"))
	}
	third := r.post(initialize).want(t, http.StatusOK)
	if third.header.Get("Mcp-Session-Id") != "" || third.rpc(t).Error != nil {
		t.Errorf("third session: %v %s", third.header, third.body)
	}
	if r.post(initialize, withKey...).header.Get("Mcp-Session-Id") == "" {
		t.Error("anonymous sessions keep a key from opening one")
	}
	r.send(http.MethodDelete, "", "Mcp-Session-Id", ids[0]).want(t, http.StatusNoContent)
	if r.post(initialize).header.Get("Mcp-Session-Id") == "" {
		t.Error("an ended session still counts")
	}
}

func TestSessionsAreForgottenAfterTheTimeout(t *testing.T) {
	clock := &stepClock{}
	s := newSessions(clock)
	s.limit = func(string) int { return 1 }
	s.opened("a", "")
	if s.room("") {
		t.Fatal("no bound")
	}
	clock.now = clock.now.Add(SessionTimeout)
	if !s.room("") {
		t.Error("an idle session counts for ever")
	}
}

// A plugin's schema that the SDK cannot take is left out; the others stay.
func TestBadEntriesAreLeftOut(t *testing.T) {
	r := newRig(t)
	c := r.front.surface.catalog
	bad := map[string]*mcp.Tool{
		"not_object": {Name: "not_object", InputSchema: []byte(`{"type":"string"}`)},
		"no_schema":  {Name: "no_schema"},
		"bad name":   {Name: "bad name", InputSchema: map[string]any{"type": "object"}},
		"fine":       {Name: "fine", InputSchema: map[string]any{"type": "object"}},
	}
	swap(c, "tool", bad, func(tool *mcp.Tool) { r.front.surface.server.AddTool(tool, r.front.surface.callTool) }, r.front.surface.server.RemoveTools)
	c.lists.rebuild()
	if got := names(t, r.post(listBody)); !slices.Equal(got, []string{"fine"}) {
		t.Errorf("tools %v", got)
	}
}
