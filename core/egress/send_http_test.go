package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func httpPlan(url, body string, change func(*effect.ResolvedStep)) plan {
	step := effect.ResolvedStep{Endpoint: "x", HTTP: &effect.ResolvedHTTP{Method: "POST", URL: url, Body: []byte(body),
		Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}}}, Definite: []int{400, 410}}
	if change != nil {
		change(&step)
	}
	return plan{resolved: effect.Resolved{Steps: []effect.ResolvedStep{step}}, key: "act_01J"}
}

func TestWebhookIsSignedAndExact(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	const body = `{"type":"a.b","data":{"x":"é"}}`
	marked, received := false, ""
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		wh, _ := standardwebhooks.NewWebhook(secret)
		if err := wh.Verify(b, r.Header); err != nil {
			t.Errorf("signature: %v", err)
		}
		if !marked {
			t.Error("the request came before the mark")
		}
		if r.Header.Get("webhook-id") != "act_01J" || r.URL.RequestURI() != "/hook?a=1" {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
		received = string(b)
		w.WriteHeader(202)
	}))
	defer s.Close()
	p := httpPlan(s.URL+"/hook?a=1", body, func(st *effect.ResolvedStep) { st.Signers = []string{SignStandardWebhooks} })
	o := reach(t, s).send(t.Context(), p, NewCredential(nil, map[string]string{"secret": secret}), Hooks{Connected: func() error { marked = true; return nil }})
	if o.Event != core.EventReplyOK || received != body || o.Steps[0].Status != 202 {
		t.Fatalf("%+v, received %q", o, received)
	}
}

func TestNothingIsSentWithoutTheMark(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("sent") }))
	defer s.Close()
	o := reach(t, s).send(t.Context(), httpPlan(s.URL, "{}", nil), Credential{}, Hooks{Connected: func() error { return errors.New("no") }})
	if o.Event != core.EventConnectFailed || o.Code != "not_marked" {
		t.Fatalf("%+v", o)
	}
}

func TestWhatCannotBeSentIsCertain(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	closed.Close()
	e, err := New(Config{AllowPrivate: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan  plan
		event core.ActionEvent
		code  string
	}{
		{httpPlan("http://"+address, "{}", nil), core.EventConnectFailed, "unreachable"},
		{httpPlan("https://127.0.0.1:9/", "{}", nil), core.EventRecheckFailed, "address_refused"},
		{httpPlan("http://example.com/", "{}", nil), core.EventRecheckFailed, "encryption_required"},
		{httpPlan("http://"+address, "{}", func(s *effect.ResolvedStep) { s.Signers = []string{SignBearer} }), core.EventRecheckFailed, "cannot_sign"},
		{httpPlan("http://"+address, "{}", func(s *effect.ResolvedStep) {
			s.HTTP.Headers = append(s.HTTP.Headers, effect.Pair{Name: "Cookie", Value: "x"})
		}), core.EventRecheckFailed, "cannot_sign"},
		{plan{}, core.EventRecheckFailed, "manual"},
	} {
		o := e.send(t.Context(), c.plan, Credential{}, Hooks{Connected: func() error { t.Errorf("%s: marked", c.code); return nil }})
		if o.Event != c.event || o.Code != c.code {
			t.Errorf("got %+v, want %s %s", o, c.event, c.code)
		}
	}
}

// script is one way a provider may behave after it accepted the connection.
type script struct {
	name string
	want core.ActionEvent
	run  func(c net.Conn, done <-chan struct{})
}

// readRequest reads the whole request as a provider would.
func readRequest(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

func answering(reply string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, _ <-chan struct{}) { readRequest(c); _, _ = io.WriteString(c, reply) }
}

func reply(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// scripts expects success to be {"ok":true,"id":…}; 400 and 410 are declared definite.
var scripts = []script{
	{"reset before reading", core.EventUncertain, func(c net.Conn, _ <-chan struct{}) { reset(c) }},
	{"reset during body", core.EventUncertain, func(c net.Conn, _ <-chan struct{}) {
		_, _ = c.Read(make([]byte, 100))
		reset(c)
	}},
	{"reset after body", core.EventUncertain, func(c net.Conn, _ <-chan struct{}) { readRequest(c); reset(c) }},
	{"close after body", core.EventUncertain, func(c net.Conn, _ <-chan struct{}) { readRequest(c); c.Close() }},
	{"hang", core.EventUncertain, func(c net.Conn, done <-chan struct{}) { readRequest(c); <-done }},
	{"slow drip", core.EventUncertain, func(c net.Conn, done <-chan struct{}) {
		readRequest(c)
		for _, b := range []byte(reply("200 OK", `{"ok":true,"id":"1"}`)) {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
		}
	}},
	{"half a status line", core.EventUncertain, answering("HTTP/1.1 20")},
	{"garbage", core.EventUncertain, answering("\x00\xff\xfe nonsense\r\n\r\n")},
	{"only interim replies", core.EventUncertain, answering(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10))},
	{"wrong length", core.EventUncertain, answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"ok\":true,\"id\":\"1\"}")},
	{"200 with error body", core.EventUncertain, answering(reply("200 OK", `{"ok":false,"error":"nope"}`))},
	{"200 with html", core.EventUncertain, answering(reply("200 OK", `<html>login</html>`))},
	{"200 without id", core.EventUncertain, answering(reply("200 OK", `{"ok":true}`))},
	{"200 two values", core.EventUncertain, answering(reply("200 OK", `{"ok":true,"id":"1"}{"ok":true}`))},
	{"301", core.EventUncertain, answering("HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n")},
	{"404 not declared", core.EventUncertain, answering(reply("404 Not Found", `{}`))},
	{"408", core.EventUncertain, answering(reply("408 Request Timeout", `{}`))},
	{"409", core.EventUncertain, answering(reply("409 Conflict", `{}`))},
	{"429", core.EventUncertain, answering("HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")},
	{"500", core.EventUncertain, answering(reply("500 Oops", `{}`))},
	{"503", core.EventUncertain, answering(reply("503 Busy", `{"ok":true,"id":"1"}`))},
	{"400 declared", core.EventRefused, answering(reply("400 Bad Request", `{"error":"x"}`))},
	{"410 declared, broken body", core.EventRefused, answering("HTTP/1.1 410 Gone\r\nContent-Length: 99\r\n\r\nx")},
	{"200", core.EventReplyOK, answering(reply("200 OK", `{"ok":true,"id":"n-1"}`))},
	{"100 then 201", core.EventReplyOK, answering("HTTP/1.1 100 Continue\r\n\r\n" + reply("201 Created", `{"ok":true,"id":17}`))},
	{"chunked", core.EventReplyOK, answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n{\"ok\":true,\"id\":\"abc\"}\r\n0\r\n\r\n")},
	{"early answer", core.EventRefused, func(c net.Conn, _ <-chan struct{}) {
		_, _ = c.Read(make([]byte, 10))
		_, _ = io.WriteString(c, reply("400 Bad Request", "{}"))
		readRest(c)
	}},
}

// readRest drains until the sender hangs up, so that the reply is not lost in a reset.
func readRest(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestTwoHundredScriptedProviders(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var jobs []script
	for len(jobs) < 200 {
		jobs = append(jobs, scripts[len(jobs)%len(scripts)])
	}
	random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i, s := range jobs {
		size := random.IntN(200_000)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if o := playScript(t, s, size); o.Event != s.want {
				t.Errorf("%d %s with %d bytes: %+v, want %s", i, s.name, size, o, s.want)
			}
		})
	}
	wg.Wait()
}

func playScript(t *testing.T, s script, size int) Outcome {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return Outcome{}
	}
	defer l.Close()
	done, ended := make(chan struct{}), make(chan struct{})
	connections := 0
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections++
			s.run(c, done)
			c.Close()
		}
	}()
	e, err := New(Config{AllowPrivate: []string{l.Addr().String()}})
	if err != nil {
		t.Error(err)
		return Outcome{}
	}
	p := httpPlan("http://"+l.Addr().String()+"/x", strings.Repeat("b", size), func(st *effect.ResolvedStep) {
		st.TimeoutSeconds = 30
		st.Success = effect.Success{Pointer: "/ok", Value: "true"}
		st.Result = effect.Result{IDPointer: "/id"}
	})
	ctx := t.Context()
	if s.name == "hang" || s.name == "slow drip" {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		ctx = short
	}
	marks := 0
	o := e.send(ctx, p, Credential{}, Hooks{Connected: func() error { marks++; return nil }})
	close(done)
	l.Close()
	<-ended
	if s.name == "reset before reading" && o.Event == core.EventConnectFailed && marks == 0 {
		return Outcome{Event: s.want} // the reset won the race with the connection itself: certain, and unmarked
	}
	if connections != 1 || marks != 1 {
		t.Errorf("%s: %d connections, %d marks; want one of each", s.name, connections, marks)
	}
	if s.name == "429" && o.RetryAfter != 7*time.Second {
		t.Errorf("429: retry after %s", o.RetryAfter)
	}
	return o
}

func TestStepsCaptureAndStopHonestly(t *testing.T) {
	var seen []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, r.URL.Path+" "+string(b))
		switch r.URL.Path {
		case "/draft":
			fmt.Fprint(w, `{"post":{"id":"p1"}}`)
		case "/bad":
			w.WriteHeader(400)
		}
	}))
	defer s.Close()
	two := func(second string) plan {
		p := httpPlan(s.URL+"/draft", "{}", func(st *effect.ResolvedStep) {
			st.Captures = []effect.Capture{{Name: "id", Pointer: "/post/id", Pattern: "p[0-9]+", MaxLength: 5}}
			st.Result.IDPointer = "/post/id"
		})
		next := httpPlan(s.URL+second, `{"id":"{{capture:id}}"}`, nil)
		p.resolved.Steps = append(p.resolved.Steps, next.resolved.Steps...)
		return p
	}
	e := reach(t, s)
	marks := 0
	hooks := Hooks{Connected: func() error { marks++; return nil }}
	if o := e.send(t.Context(), two("/publish"), Credential{}, hooks); o.Event != core.EventReplyOK || o.ExternalID != "p1" || marks != 1 {
		t.Errorf("%+v, %d marks", o, marks)
	}
	if len(seen) != 2 || seen[1] != `/publish {"id":"p1"}` {
		t.Errorf("seen %q", seen)
	}
	o := e.send(t.Context(), two("/bad"), Credential{}, hooks)
	if o.Event != core.EventRefused || len(o.Steps) != 2 || o.Steps[0].Event != core.EventReplyOK || !strings.Contains(o.Detail, "Step 2 of 2") {
		t.Errorf("%+v", o)
	}
}

func TestNoStepWithoutItsMark(t *testing.T) {
	calls := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer s.Close()
	p := httpPlan(s.URL, "{}", nil)
	p.resolved.Steps = append(p.resolved.Steps, p.resolved.Steps[0])
	o := reach(t, s).send(t.Context(), p, Credential{}, Hooks{Stepped: func(done []StepOutcome) error {
		if len(done) != 1 || done[0].Event != core.EventReplyOK {
			t.Errorf("%+v", done)
		}
		return errors.New("lease lost")
	}})
	if calls != 1 || o.Event != core.EventRefused || len(o.Steps) != 1 {
		t.Errorf("%d calls, %+v", calls, o)
	}
}

func TestPreconditionsAreReadAgain(t *testing.T) {
	amount, posts := "100", 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			posts++
			return
		}
		fmt.Fprintf(w, `{"budget":{"amount":%q}}`, amount)
	}))
	defer s.Close()
	p := httpPlan(s.URL, "{}", nil)
	p.resolved.Preconditions = []effect.ResolvedRead{{Method: "GET", URL: s.URL + "/b", Pointer: "/budget/amount", Expected: "100"}}
	e := reach(t, s)
	if o := e.send(t.Context(), p, Credential{}, Hooks{}); o.Event != core.EventReplyOK || posts != 1 {
		t.Errorf("%+v", o)
	}
	amount = "250"
	if o := e.send(t.Context(), p, Credential{}, Hooks{}); o.Event != core.EventRecheckFailed || o.Code != "precondition_changed" || posts != 1 {
		t.Errorf("%+v, %d posts", o, posts)
	}
}
