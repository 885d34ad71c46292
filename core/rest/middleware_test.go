package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
	"github.com/sallyport-dev/sallyport/core/tool"
)

func TestHeadersOfEveryReply(t *testing.T) {
	s := newStack(t)
	for _, path := range []string{"/api/health", "/api/me", "/api/nothing"} {
		a := s.call("GET", path, "", "")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Api-Version": "0.1.0",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if !core.HasPrefix(a.header.Get("X-Request-Id"), core.PrefixRequest) {
			t.Errorf("%s: request id %q", path, a.header.Get("X-Request-Id"))
		}
	}
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	s := newStack(t)
	s.call("GET", "/api/nothing", "", "").problem(404, "no_such_address")
	a := s.call("DELETE", "/api/runs", s.owner(), "")
	a.problem(405, "method_not_allowed")
	if allow := strings.Join(a.header.Values("Allow"), ","); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("Allow %q", allow)
	}
	if a := s.call("HEAD", "/api/health", "", ""); a.status != 200 {
		t.Errorf("HEAD: %d", a.status)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	s := newStack(t, func(d *Deps) {
		d.AllowedHosts, d.AllowedOrigins = []string{"sallyport.example"}, []string{"https://app.example"}
	})
	key := s.key(core.APIKeyKindAgent)
	try := func(method, host string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://"+host+"/api/runs", strings.NewReader(`{"goal":"x"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", key)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w
	}
	for _, host := range []string{"localhost:8080", "sallyport.example", "127.0.0.1:5", "[::1]:5", "localhost"} {
		if w := try("POST", host); w.Code != 200 {
			t.Errorf("%s: %d", host, w.Code)
		}
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "169.254.169.254", "sallyport.example:81"} {
		if w := try("POST", host); w.Code != 403 || !strings.Contains(w.Body.String(), "host_not_allowed") {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"own":                 {[]string{"Origin", testBase, "Sec-Fetch-Site", "same-origin"}, 200},
		"allowed":             {[]string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, 200},
		"foreign":             {[]string{"Origin", "https://evil.example"}, 403},
		"foreign and said so": {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		"opaque":              {[]string{"Origin", "null"}, 403},
		"site without origin": {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"same name, no TLS":   {[]string{"Origin", "http://app.example"}, 403},
		"not a browser":       {nil, 200},
	} {
		if w := try("POST", "localhost:8080", c.headers...); w.Code != c.status {
			t.Errorf("%s: %d, want %d", name, w.Code, c.status)
		}
	}
	pre := try("OPTIONS", "localhost:8080", "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	if pre.Code != 204 || pre.Header().Get("Access-Control-Allow-Origin") != "https://app.example" || pre.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v", pre.Code, pre.Header())
	}
	if w := try("OPTIONS", "localhost:8080", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); w.Code != 403 {
		t.Errorf("foreign preflight: %d", w.Code)
	}
}

func TestBodyLimit(t *testing.T) {
	s := newStack(t)
	key := s.key(core.APIKeyKindAgent)
	big := `{"goal":"` + strings.Repeat("x", 1<<20) + `"}`
	s.call("POST", "/api/runs", key, big).problem(413, "body_too_large")
	r := httptest.NewRequest("POST", testBase+"/api/runs", struct{ *strings.Reader }{strings.NewReader(big)}) // no length told
	r.ContentLength = -1
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("%d", w.Code)
	}
	s.call("POST", "/api/runs", key, `{"goal":"x"}`, "Content-Encoding", "gzip").problem(415, "unsupported_encoding")
}

func TestPanicBecomesAProblemAndAnEntry(t *testing.T) {
	s := newStack(t)
	s.plugins.reload = func(string) error { panic("secret detail") }
	a := s.call("POST", "/api/plugins/marketing/reload", s.owner(), "")
	p := a.problem(500, "internal")
	if strings.Contains(string(a.body), "secret detail") {
		t.Errorf("%s", a.body)
	}
	page := s.call("GET", "/api/audit-logs", s.owner(), "")
	if !strings.Contains(string(page.body), "request.panicked") || !strings.Contains(string(page.body), p.RequestID) {
		t.Errorf("%s", page.body)
	}
}

func TestRateLimit(t *testing.T) {
	s := newStack(t, func(d *Deps) { d.PerMinute = 5 })
	one, other := s.key(core.APIKeyKindAgent), s.key(core.APIKeyKindAgent)
	for i := range 5 {
		a := s.call("GET", "/api/me", one, "").want(200)
		if got := a.header.Get("RateLimit"); !strings.HasPrefix(got, fmt.Sprintf(`"principal";r=%d;`, 4-i)) {
			t.Errorf("RateLimit %q", got)
		}
	}
	a := s.call("GET", "/api/me", one, "")
	a.problem(429, "rate_limited")
	if a.header.Get("Retry-After") == "" || a.header.Get("RateLimit-Policy") != `"principal";q=5;w=60` {
		t.Errorf("%v", a.header)
	}
	s.call("GET", "/api/me", other, "").want(200)
	for range 5 {
		s.call("GET", "/api/me", one+"x", "").problem(401, "invalid_key")
	}
	s.call("GET", "/api/me", one+"x", "").problem(429, "rate_limited") // guessing is bounded by address
	s.clock.pass(time.Minute)
	s.call("GET", "/api/me", one, "").want(200)
}

func TestLimiterForgets(t *testing.T) {
	clock := &testClock{}
	l := newLimiter(clock, 10)
	for i := range maxCallers + 10 {
		must(t, l.take(httptest.NewRecorder(), fmt.Sprint(i)))
	}
	if len(l.callers) > maxCallers {
		t.Errorf("%d callers remembered", len(l.callers))
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := newStack(t)
	key, other := s.key(core.APIKeyKindAgent), s.key(core.APIKeyKindAgent)
	post := func(credential, body, idempotency string) *answered {
		return s.call("POST", "/api/runs", credential, body, "Idempotency-Key", idempotency)
	}
	first := post(key, `{"goal":"x"}`, "k1")
	run := into[core.Run](first)
	second := post(key, `{"goal":"x"}`, "k1")
	if string(second.body) != string(first.body) || second.header.Get("Idempotency-Replayed") != "true" || second.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%s\n%s", first.body, second.body)
	}
	post(key, `{"goal":"y"}`, "k1").problem(422, "idempotency_key_reused")
	s.call("POST", "/api/agent/message", key, `{"message":"x"}`, "Idempotency-Key", "k1").problem(422, "idempotency_key_reused")
	if r := into[core.Run](post(other, `{"goal":"x"}`, "k1")); r.ID == run.ID {
		t.Error("another caller got the first one's run")
	}
	post(key, `{"goal":"x"}`, strings.Repeat("k", 201)).problem(422, "invalid_parameter")
	post(key, `{"goal":"x"}`, "k\x01").problem(400, "malformed_idempotency_key")
	bad := post(key, `{"goal":"x","workspaceId":"ws_other"}`, "k2")
	bad.want(404)
	if again := post(key, `{"goal":"x","workspaceId":"ws_other"}`, "k2"); string(again.body) != string(bad.body) {
		t.Error("a refusal is not answered alike")
	}
	s.clock.pass(replay.Keep)
	if r := into[core.Run](post(key, `{"goal":"x"}`, "k1")); r.ID == run.ID {
		t.Error("the answer is remembered beyond its time")
	}
}

func TestIdempotencyKeyAtOnceAndAfterFaults(t *testing.T) {
	s := newStack(t)
	key := s.key(core.APIKeyKindAgent)
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.diagnose = func(context.Context, tool.CallIn) (any, error) {
		once.Do(func() { close(entered); <-leave })
		return map[string]any{"userMessage": "done"}, nil
	}
	message := func() *answered {
		return s.call("POST", "/api/agent/message", key, `{"message":"x"}`, "Idempotency-Key", "slow")
	}
	first := make(chan *answered)
	go func() { first <- message() }()
	<-entered
	message().problem(409, "still_running")
	close(leave)
	done := (<-first).want(200)
	if again := message(); string(again.body) != string(done.body) {
		t.Errorf("%s\n%s", done.body, again.body)
	}

	calls := 0
	s.diagnose = func(context.Context, tool.CallIn) (any, error) {
		if calls++; calls == 1 {
			return nil, tool.Unavailable("marketing", "it stopped")
		}
		return map[string]any{"userMessage": "now"}, nil
	}
	retry := func() *answered {
		return s.call("POST", "/api/agent/message", key, `{"message":"x"}`, "Idempotency-Key", "faulty")
	}
	retry().problem(503, "plugin_unavailable")
	retry().want(200) // what failed on our side may be tried again with the same key
}

func TestHangingUpDoesNotDoItTwice(t *testing.T) {
	s := newStack(t)
	key := s.key(core.APIKeyKindAgent)
	entered, leave := make(chan struct{}), make(chan struct{})
	calls := 0
	s.diagnose = func(ctx context.Context, _ tool.CallIn) (any, error) {
		calls++
		close(entered)
		<-leave
		return map[string]any{"userMessage": "done"}, ctx.Err()
	}
	ctx, hangUp := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", testBase+"/api/agent/message", strings.NewReader(`{"message":"x"}`))
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "once")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-entered
	hangUp()
	close(leave)
	<-ended
	a := s.call("POST", "/api/agent/message", key, `{"message":"x"}`, "Idempotency-Key", "once")
	if into[answer](a).Reply != "done" || calls != 1 || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d calls, %s", calls, a.body)
	}
}

func TestEventsReplayAndFollow(t *testing.T) {
	s := newStack(t)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	owner := s.owner()
	run := s.drafted()
	open := func(last string) (*bufio.Scanner, func()) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/runs/"+run.ID+"/events", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+owner)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := server.Client().Do(r)
		must(t, err)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", resp.StatusCode, resp.Header)
		}
		return bufio.NewScanner(resp.Body), func() { stop(); _ = resp.Body.Close() }
	}
	type received struct{ id, kind string }
	next := func(lines *bufio.Scanner) received {
		t.Helper()
		var e received
		for lines.Scan() {
			line := lines.Text()
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = v
			}
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				e.kind = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				var data core.Event
				if err := json.Unmarshal([]byte(v), &data); err != nil || data.Type != e.kind || data.RunID == nil || *data.RunID != run.ID {
					t.Errorf("%s: %v", v, err)
				}
			}
			if line == "" && e.kind != "" {
				return e
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
	lines, stop := open("")
	first := next(lines)
	if first.kind != "run.created" {
		t.Errorf("%+v", first)
	}
	second := next(lines)
	for e := second; e.kind != "run.awaiting_approval"; e = next(lines) {
		if e.kind == "" {
			t.Fatal("no event")
		}
	}
	s.call("POST", "/api/runs/"+run.ID+"/reject", owner, `{"expectedDigest":"`+run.PackDigest+`"}`).want(200)
	for e := next(lines); e.kind != "action.rejected"; e = next(lines) { // live
		if e.kind != "run.updated" {
			t.Errorf("live: %+v", e)
		}
	}
	stop()
	lines, stop = open(first.id)
	if e := next(lines); e != second {
		t.Errorf("replay begins with %+v, want %+v", e, second)
	}
	stop()
	s.call("GET", "/api/runs/"+run.ID+"/events", owner, "", "Last-Event-ID", "x").problem(400, "malformed_event_id")
	s.call("GET", "/api/runs/"+run.ID+"/events", s.stranger(), "").want(404)
}
