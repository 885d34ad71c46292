package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sallyport-dev/sallyport/sdk/effect"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

const manifest = `{"name":"probe","kind":"connector","version":"1.0.0","title":"Probe","description":"For tests.","protocol":1,
	"connector":{"provider":"probe","capability":"write"},"needs":{},"tools":[
	{"name":"probe_run","title":"Run","description":"Runs.","effect":"read","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},
		"outputSchema":{"type":"object","additionalProperties":false,"required":["ok"],"properties":{"ok":{"type":"boolean"}}}},
	{"name":"probe_write","title":"Write","description":"Compiles.","effect":"write","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`

type runFunc = func(context.Context, *Call) (any, error)
type compileFunc = func(context.Context, *Call) (*effect.Sealed, error)

func probe(run runFunc, compile compileFunc) Plugin {
	if compile == nil {
		compile = func(context.Context, *Call) (*effect.Sealed, error) { return &effect.Sealed{Kind: "probe"}, nil }
	}
	return Define([]byte(manifest), Handlers{Run: map[string]runFunc{"probe_run": run}, Compile: map[string]compileFunc{"probe_write": compile}})
}

func TestHandlersEndInExactlyOneOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		run  runFunc
		code string // of the failure; empty for a result
		says string
	}{
		"result":    {func(context.Context, *Call) (any, error) { return map[string]bool{"ok": true}, nil }, "", `{"ok":true}`},
		"failure":   {func(context.Context, *Call) (any, error) { return nil, Fail("no_page", "No %s.", "page") }, "no_page", "No page."},
		"error":     {func(context.Context, *Call) (any, error) { return nil, errors.New("oops") }, "internal", "oops"},
		"panic":     {func(context.Context, *Call) (any, error) { panic("secret detail") }, "internal", "failed unexpectedly"},
		"bad shape": {func(context.Context, *Call) (any, error) { return map[string]int{"ok": 1, "more": 2}, nil }, "invalid_output", "/more"},
		"no JSON":   {func(context.Context, *Call) (any, error) { return make(chan int), nil }, "invalid_output", "not JSON"},
		"unknown field": {func(_ context.Context, c *Call) (any, error) {
			return nil, c.Bind(&struct{ M int }{})
		}, "invalid_input", "unknown field"},
		"wrong type": {func(_ context.Context, c *Call) (any, error) {
			return nil, c.Bind(&struct {
				N string `json:"n"`
			}{})
		}, "invalid_input", "/n"},
	} {
		out := Invoke(t.Context(), probe(c.run, nil), Call{Tool: "probe_run", Input: json.RawMessage(`{"n":1}`)}, nil)
		got := string(out.Result)
		if c.code != "" {
			if out.Failure == nil || out.Failure.Code != c.code || out.Result != nil {
				t.Errorf("%s: %+v", name, out)
				continue
			}
			b, err := json.Marshal(out.Failure)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		if !strings.Contains(got, c.says) || strings.Contains(got, "secret detail") {
			t.Errorf("%s: %s; want it to say %q", name, got, c.says)
		}
	}
}

func TestAWriteToolHasNoHost(t *testing.T) {
	out := Invoke(t.Context(), probe(nil2, func(_ context.Context, c *Call) (*effect.Sealed, error) {
		if c.Host != nil {
			t.Error("a write tool was given a host")
		}
		return nil, nil
	}), Call{Tool: "probe_write", Host: &remoteHost{}}, nil)
	if out.Failure == nil || !strings.Contains(out.Failure.Message, "compiled nothing") {
		t.Errorf("outcome %+v", out)
	}
}

func nil2(context.Context, *Call) (any, error) { return nil, nil }

func TestDefineRefusesWhatDoesNotGoTogether(t *testing.T) {
	for name, h := range map[string]Handlers{
		"no handler":    {},
		"wrong kind":    {Run: map[string]runFunc{"probe_run": nil2, "probe_write": nil2}},
		"unknown tool":  {Run: map[string]runFunc{"probe_run": nil2, "other": nil2}, Compile: map[string]compileFunc{"probe_write": func(context.Context, *Call) (*effect.Sealed, error) { return nil, nil }}},
		"both handlers": {Run: map[string]runFunc{"probe_run": nil2, "probe_write": nil2}, Compile: map[string]compileFunc{"probe_write": func(context.Context, *Call) (*effect.Sealed, error) { return nil, nil }}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Define([]byte(manifest), h)
		}()
	}
}

// host answers like core, for the client half of the kit.
type host struct {
	pluginpb.UnimplementedHostServer
	tickets []string
}

func (h *host) CallTool(_ context.Context, r *pluginpb.CallToolRequest) (*pluginpb.CallToolResponse, error) {
	h.tickets = append(h.tickets, r.GetTicket())
	if r.GetTool() == "bad" {
		return &pluginpb.CallToolResponse{Failure: &pluginpb.Failure{Code: "no_luck", Message: "Not today.", Retryable: true,
			Fields: []*pluginpb.FieldError{{Pointer: "/a", Message: "b"}}, WhatWouldHelp: []string{"Patience"}}}, nil
	}
	return &pluginpb.CallToolResponse{Result: r.GetInput()}, nil
}

func (h *host) ReadDataset(_ *pluginpb.ReadDatasetRequest, s grpc.ServerStreamingServer[pluginpb.ReadDatasetResponse]) error {
	for _, rows := range []string{`[1,2]`, `[3]`} {
		if err := s.Send(&pluginpb.ReadDatasetResponse{Rows: []byte(rows)}); err != nil {
			return err
		}
	}
	return nil
}

// serveBoth runs a plugin's server and a host, and returns a client of the plugin.
func serveBoth(t *testing.T, p Plugin, h *host) pluginpb.PluginClient {
	t.Helper()
	hostSide := bufconn.Listen(1 << 16)
	hs := grpc.NewServer()
	pluginpb.RegisterHostServer(hs, h)
	go func() { _ = hs.Serve(hostSide) }()
	conn, err := hostSide.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(p, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	client, err := newHostClient(conn)
	s.dial = func() (pluginpb.HostClient, error) { return client, err }
	side := bufconn.Listen(1 << 16)
	ps := grpc.NewServer()
	pluginpb.RegisterPluginServer(ps, s)
	go func() { _ = ps.Serve(side) }()
	t.Cleanup(func() { ps.Stop(); _ = conn.Close(); hs.Stop() })
	cc, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return side.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return pluginpb.NewPluginClient(cc)
}

func call(t *testing.T, client pluginpb.PluginClient, r *pluginpb.CallRequest) (events []*pluginpb.CallEvent) {
	t.Helper()
	stream, err := client.Call(t.Context(), r)
	for err == nil {
		var e *pluginpb.CallEvent
		if e, err = stream.Recv(); err == nil {
			events = append(events, e)
		}
	}
	return events
}

func TestTheHostIsReachedWithTheTicketOfTheCall(t *testing.T) {
	h := &host{}
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	client := serveBoth(t, probe(func(ctx context.Context, c *Call) (any, error) {
		c.Progress(1, 2, "half")
		var echo struct{ A int }
		if err := c.Host.CallTool(ctx, "echo", map[string]int{"a": 7}, &echo); err != nil || echo.A != 7 {
			t.Errorf("echo %+v, %v", echo, err)
		}
		err := c.Host.CallTool(ctx, "bad", nil, nil)
		f, ok := errors.AsType[*Failure](err)
		if !ok || f.Code != "no_luck" || !f.Retryable || len(f.Fields) != 1 || len(f.WhatWouldHelp) != 1 {
			t.Errorf("failure %+v", err)
		}
		var rows []string
		if err := c.Host.ReadDataset(ctx, "d", func(r json.RawMessage) error { rows = append(rows, string(r)); return nil }); err != nil || len(rows) != 3 {
			t.Errorf("rows %v, %v", rows, err)
		}
		if _, err := c.Host.Connections(ctx); err == nil || !strings.Contains(err.Error(), "host_unreachable") {
			t.Errorf("an answer that does not come: %v", err)
		}
		if !c.Now.Equal(now) || c.Connection.Account != "acme" || c.RunID != "run_1" {
			t.Errorf("call %+v", c)
		}
		return map[string]bool{"ok": true}, nil
	}, nil), h)
	events := call(t, client, &pluginpb.CallRequest{Tool: "probe_run", Input: []byte(`{}`), Ticket: "t-1", RunId: "run_1", NowUnixMs: now.UnixMilli(), Connection: []byte(`{"account":"acme"}`)})
	if len(events) != 2 || events[0].GetProgress().GetMessage() != "half" || string(events[1].GetResult()) != `{"ok":true}` {
		t.Fatalf("events %v", events)
	}
	if len(h.tickets) != 2 || h.tickets[0] != "t-1" {
		t.Errorf("tickets %v", h.tickets)
	}
}

func TestAskEndsTheCallWithQuestions(t *testing.T) {
	client := serveBoth(t, probe(func(_ context.Context, c *Call) (any, error) {
		if c.Answers == nil {
			return nil, Ask(map[string]string{"q": "which?"})
		}
		return map[string]bool{"ok": string(c.Answers) == `{"q":"this"}`}, nil
	}, nil), &host{})
	if events := call(t, client, &pluginpb.CallRequest{Tool: "probe_run", Input: []byte(`{}`)}); string(events[0].GetAsk()) != `{"q":"which?"}` {
		t.Errorf("events %v", events)
	}
	if events := call(t, client, &pluginpb.CallRequest{Tool: "probe_run", Input: []byte(`{}`), Answers: []byte(`{"q":"this"}`)}); string(events[0].GetResult()) != `{"ok":true}` {
		t.Errorf("events %v", events)
	}
	if events := call(t, client, &pluginpb.CallRequest{Tool: "other"}); events[0].GetFailure().GetCode() != "unknown_tool" {
		t.Errorf("events %v", events)
	}
	if events := call(t, client, &pluginpb.CallRequest{Tool: "probe_write", Input: []byte(`{}`)}); !strings.Contains(string(events[0].GetSealed()), `"kind":"probe"`) {
		t.Errorf("events %v", events)
	}
}

func TestPickAndManifest(t *testing.T) {
	p := probe(nil2, nil)
	if _, err := pick([]string{"other"}, []Plugin{p}); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Errorf("err = %v", err)
	}
	if got, err := pick(nil, []Plugin{p}); err != nil || got.Manifest.Name != "probe" {
		t.Errorf("got %v, %v", got.Manifest.Name, err)
	}
	if _, err := pick(nil, []Plugin{p, p}); err == nil {
		t.Error("one of two was picked without a name")
	}
	if m := ManifestOf(p); m.Protocol != 1 || len(m.Tools) != 2 {
		t.Errorf("manifest %+v", m)
	}
}
