package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bridged connects the official client through a bridge.
func (r *rig) bridged(key string, opts *mcp.ClientOptions) (*mcp.ClientSession, func() error) {
	r.t.Helper()
	clientIn, bridgeOut := io.Pipe()
	bridgeIn, clientOut := io.Pipe()
	done := make(chan error, 1)
	b := &Bridge{URL: r.URL + "/mcp", Key: key, Client: &http.Client{}}
	go func() { done <- b.Serve(r.t.Context(), bridgeIn, bridgeOut) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, opts).
		Connect(r.t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return session, func() error {
		_ = clientOut.Close()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("the end of input does not end the bridge")
		}
	}
}

func TestBridgeCarriesTheOfficialClient(t *testing.T) {
	r := newRig(t)
	got := make(chan string, 8)
	session, end := r.bridged(agentKey, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { got <- req.Params.Message },
	})
	if names := listed(t, session); !slices.Equal(names, r.visible()) {
		t.Errorf("tools %v", names)
	}
	params := &mcp.CallToolParams{Name: "t_progress"}
	params.SetProgressToken("tok")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	select {
	case first := <-got:
		if first != "step 1" {
			t.Errorf("progress %q", first)
		}
	case <-time.After(patience):
		t.Error("no progress")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// An older client through the bridge: session, list changes, and the session's end.
func TestBridgeOfAnOlderClient(t *testing.T) {
	r := newRig(t)
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	done := make(chan error, 1)
	b := &Bridge{URL: r.URL + "/mcp", Key: agentKey, Client: &http.Client{}}
	go func() { done <- b.Serve(t.Context(), in, out) }()
	answers := bufio.NewScanner(clientIn)
	answers.Buffer(nil, MaxBody)
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(clientOut, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() rpc {
		t.Helper()
		if !answers.Scan() {
			t.Fatalf("no answer: %v", answers.Err())
		}
		return answer{body: answers.Text()}.rpc(t)
	}
	say(strings.Replace(initBody, "%q", `"2025-03-26"`, 1))
	if m := hear(); m.Error != nil || !strings.Contains(string(m.Result), `"2025-03-26"`) {
		t.Fatalf("initialize: %+v", m)
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(callBody("t_echo", `{"n":1}`))
	if m := hear(); !strings.Contains(string(m.Result), `"caller":"key_1"`) {
		t.Errorf("call: %+v", m)
	}
	say("nonsense")
	if m := hear(); m.Error == nil || m.Error.Code != -32700 {
		t.Errorf("nonsense: %+v", m)
	}
	_ = clientOut.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r.front.sessions.byOwner["key_1"] != 0 {
		t.Error("the session outlived its client")
	}
}

func TestBridgeTellsWhatIsWrong(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ name, url, key, code string }{
		{"bad key", r.URL + "/mcp", "wrong", "bad_credential"},
		{"nobody there", "http://127.0.0.1:1/mcp", agentKey, "host_unreachable"},
		{"another address", r.URL + "/mcp?x=\x7f", agentKey, "internal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			b := &Bridge{URL: c.url, Key: c.key, Client: &http.Client{}}
			if err := b.Serve(t.Context(), strings.NewReader(listBody+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			m := answer{body: out.String()}.rpc(t)
			var p struct{ Code string }
			if m.Error == nil || json.Unmarshal(m.Error.Data, &p) != nil || p.Code != c.code || m.ID != float64(1) {
				t.Errorf("answer %s", out.String())
			}
		})
	}
	b := &Bridge{URL: r.URL + "/mcp", Key: agentKey, Client: &http.Client{}}
	if err := b.Serve(t.Context(), strings.NewReader(listBody+"\n"), brokenPipe{}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a lost client: %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
