package router

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestChoose(t *testing.T) {
	const (
		list     = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		initial  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`
		progress = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":0}}}`
		nullTok  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":null}}}`
		inArgs   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"progressToken":1}}}`
		batch    = `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`
		note     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	)
	post := http.MethodPost
	for _, c := range []struct {
		name string
		req  Request
		body string
		want Lane
	}{
		{"bare call", Request{HTTPMethod: post}, list, Stateless},
		{"bare batch", Request{HTTPMethod: post}, batch, Stateless},
		{"bare notification", Request{HTTPMethod: post}, note, Stateless},
		{"bare call of 2025-03-26", Request{HTTPMethod: post, Revision: "2025-03-26"}, list, Stateless},
		{"bare call of 2025-11-25", Request{HTTPMethod: post, Revision: "2025-11-25"}, list, Stateless},
		{"initialize", Request{HTTPMethod: post}, initial, Stateful},
		{"initialize with a header", Request{HTTPMethod: post, Revision: "2025-06-18"}, initial, Stateful},
		{"in a session", Request{HTTPMethod: post, Session: "s", Revision: "2025-11-25"}, list, Stateful},
		{"in a session, progress", Request{HTTPMethod: post, Session: "s", Streams: true}, progress, Stateful},
		{"stream of a session", Request{HTTPMethod: http.MethodGet, Session: "s"}, "", Stateful},
		{"end of a session", Request{HTTPMethod: http.MethodDelete, Session: "s"}, "", Stateful},
		{"stream of nothing", Request{HTTPMethod: http.MethodGet}, "", NoStream},
		{"end of nothing", Request{HTTPMethod: http.MethodDelete}, "", NoStream},
		{"modern call", Request{HTTPMethod: post, Revision: "2026-07-28"}, list, Stateless},
		{"modern call with a stray session", Request{HTTPMethod: post, Revision: "2026-07-28", Session: "s"}, list, Stateless},
		{"modern GET", Request{HTTPMethod: http.MethodGet, Revision: "2026-07-28", Session: "s"}, "", Stateless},
		{"later revision", Request{HTTPMethod: post, Revision: "2027-01-01"}, list, Stateless},
		{"modern initialize is refused by the stateless handler", Request{HTTPMethod: post, Revision: "2026-07-28"}, initial, Stateless},
		{"progress", Request{HTTPMethod: post, Streams: true}, progress, StatelessStream},
		{"progress, modern", Request{HTTPMethod: post, Streams: true, Revision: "2026-07-28"}, progress, StatelessStream},
		{"progress, client cannot stream", Request{HTTPMethod: post}, progress, Stateless},
		{"null token", Request{HTTPMethod: post, Streams: true}, nullTok, Stateless},
		{"token among the arguments", Request{HTTPMethod: post, Streams: true}, inArgs, Stateless},
		{"progress within a batch", Request{HTTPMethod: post, Streams: true}, "[" + progress + "]", Stateless},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Body
			if c.body != "" {
				var err error
				if b, err = Peek([]byte(c.body)); err != nil {
					t.Fatal(err)
				}
			}
			if got := Choose(c.req, b); got != c.want {
				t.Errorf("lane %v, want %v", got, c.want)
			}
		})
	}
}

func TestPeekReadsWhatTheSDKReads(t *testing.T) {
	for _, c := range []struct{ name, body, method string }{
		{"repeated key, last wins", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"x"}}`, "tools/call"},
		{"repeated key the other way", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}`, "tools/list"},
		{"escaped key", `{"jsonrpc":"2.0","id":1,"\u006dethod":"tools/call","params":{}}`, "tools/call"},
		{"escaped value", `{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall","params":{}}`, "tools/call"},
		{"leading space", " \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "ping"},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := Peek([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			m, ok := b.Only()
			if !ok || m.Method != c.method {
				t.Errorf("method %q, want %q", m.Method, c.method)
			}
		})
	}
}

func TestPeekRefuses(t *testing.T) {
	one := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		name, body string
		code       int
	}{
		{"nothing", "", jsonrpc.CodeInvalidRequest},
		{"blank", " \n", jsonrpc.CodeInvalidRequest},
		{"text", "hello", jsonrpc.CodeParseError},
		{"cut off", one[:20], jsonrpc.CodeParseError},
		{"cut off batch", "[" + one, jsonrpc.CodeParseError},
		{"empty batch", "[]", jsonrpc.CodeInvalidRequest},
		{"no version", `{"id":1,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"no method", `{"jsonrpc":"2.0"}`, jsonrpc.CodeInvalidRequest},
		{"two messages", one + one, jsonrpc.CodeParseError},
		{"17 in a batch", "[" + strings.Repeat(one+",", 16) + one + "]", jsonrpc.CodeInvalidRequest},
		{"initialize in a batch", `[` + one + `,{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}]`, jsonrpc.CodeInvalidRequest},
		{"a bad one in a batch", `[` + one + `,{"id":2}]`, jsonrpc.CodeInvalidRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Peek([]byte(c.body))
			refused, ok := errors.AsType[*BodyError](err)
			if !ok || refused.Code != c.code {
				t.Errorf("got %v, want code %d", err, c.code)
			}
		})
	}
	if _, err := Peek([]byte("[" + strings.Repeat(one+",", 15) + one + "]")); err != nil {
		t.Errorf("16 in a batch: %v", err)
	}
}

func FuzzPeek(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":{"progressToken":"p"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := Peek(body)
		if err == nil && (len(b.Messages) == 0 || len(b.Messages) > MaxBatch) {
			t.Errorf("%d messages from %q", len(b.Messages), body)
		}
	})
}
