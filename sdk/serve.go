package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Serve is the main function of a plugin binary. A host starts the binary and speaks to
// it; a binary that holds several plugins takes the name of the one to run as its first
// argument. With the argument "list" it prints the manifests of its plugins as JSON,
// for installing, and ends. Serve does not return: it ends the process.
func Serve(plugins ...Plugin) {
	if err := serve(os.Args[1:], plugins); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

func serve(args []string, plugins []Plugin) error {
	if len(args) > 0 && args[0] == "list" {
		manifests := make([]schemas.Manifest, 0, len(plugins))
		for _, p := range plugins {
			manifests = append(manifests, ManifestOf(p))
		}
		return json.NewEncoder(os.Stdout).Encode(manifests)
	}
	p, err := pick(args, plugins)
	if err != nil {
		return err
	}
	// The logger keeps the real standard error: go-plugin replaces os.Stderr later.
	log := hclog.New(&hclog.LoggerOptions{Name: p.Manifest.Name, Level: hclog.Debug, Output: os.Stderr, JSONFormat: true})
	server, err := newServer(p, log)
	if err != nil {
		return err
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: pluginpb.ProtocolVersion, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{pluginpb.ProtocolVersion: {pluginpb.PluginName: &grpcPlugin{server: server}}},
		Logger:           transportLog(log),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(pluginpb.MaxHostMessage), grpc.MaxSendMsgSize(pluginpb.MaxPluginMessage))...)
		},
	})
	return nil
}

func pick(args []string, plugins []Plugin) (Plugin, error) {
	if len(args) == 0 && len(plugins) == 1 {
		return plugins[0], nil
	}
	var names []string
	for _, p := range plugins {
		if len(args) > 0 && p.Manifest.Name == args[0] {
			return p, nil
		}
		names = append(names, p.Manifest.Name)
	}
	return Plugin{}, fmt.Errorf("name one plugin of this binary as the first argument, or list: %v", names)
}

// ManifestOf is the manifest of a plugin as Describe answers it: with its tool documents.
func ManifestOf(p Plugin) schemas.Manifest {
	m := p.Manifest
	m.Protocol = pluginpb.ProtocolVersion
	m.Tools = make([]schemas.ToolDocument, 0, len(p.Tools))
	for _, t := range p.Tools {
		m.Tools = append(m.Tools, t.Document)
	}
	return m
}

// grpcPlugin makes the service known to go-plugin.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (g *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginpb.RegisterPluginServer(s, g.server)
	return nil
}

func (g *grpcPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("the sdk serves plugins; it does not call them")
}

// server answers the Plugin service.
type server struct {
	pluginpb.UnimplementedPluginServer
	plugin   Plugin
	manifest []byte
	runners  map[string]*runner
	log      hclog.Logger
	dial     func() (pluginpb.HostClient, error)
}

func newServer(p Plugin, log hclog.Logger) (*server, error) {
	manifest, err := json.Marshal(ManifestOf(p))
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", p.Manifest.Name, err)
	}
	s := &server{plugin: p, manifest: manifest, runners: map[string]*runner{}, log: log, dial: sync.OnceValues(dialHost)}
	for _, t := range p.Tools {
		if err := checkTool(t); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", p.Manifest.Name, err)
		}
		s.runners[t.Document.Name] = newRunner(t)
	}
	return s, nil
}

// checkTool refuses a tool whose handler does not go with its effect.
func checkTool(t Tool) error {
	write := t.Document.Effect == schemas.EffectWrite
	if (t.Compile != nil) != write || (t.Run != nil) == write {
		return fmt.Errorf("tool %s has effect %s: set Compile for a write tool, Run for any other, and only that", t.Document.Name, t.Document.Effect)
	}
	return nil
}

func (s *server) Describe(context.Context, *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Manifest: s.manifest}, nil
}

func (s *server) Configure(ctx context.Context, r *pluginpb.ConfigureRequest) (*pluginpb.ConfigureResponse, error) {
	if s.plugin.Configure != nil {
		if err := s.plugin.Configure(ctx, r.GetConfig()); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	return &pluginpb.ConfigureResponse{}, nil
}

func (s *server) Call(r *pluginpb.CallRequest, stream grpc.ServerStreamingServer[pluginpb.CallEvent]) error {
	run, ok := s.runners[r.GetTool()]
	if !ok {
		return stream.Send(outcomeToWire(Outcome{Failure: Fail("unknown_tool", "This plugin has no tool %q.", r.GetTool())}))
	}
	c, err := s.call(r)
	if err != nil {
		return stream.Send(outcomeToWire(Outcome{Failure: Fail("internal", "The call cannot be read: %v", err)}))
	}
	var mu sync.Mutex // a handler may report progress from several goroutines
	over := false
	out := run.invoke(stream.Context(), c, func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		event := &pluginpb.CallEvent{Event: &pluginpb.CallEvent_Progress{Progress: &pluginpb.Progress{Done: done, Total: total, Message: message}}}
		if err := stream.Send(event); err != nil {
			c.Log.Debug("progress not sent", "error", err)
		}
	})
	mu.Lock()
	defer mu.Unlock()
	over = true
	return stream.Send(outcomeToWire(out))
}

func (s *server) call(r *pluginpb.CallRequest) (Call, error) {
	c := Call{
		Tool: r.GetTool(), ID: r.GetCallId(), Input: r.GetInput(), WorkspaceID: r.GetWorkspaceId(), RunID: r.GetRunId(),
		ReviewURL: r.GetReviewUrl(), ActionID: r.GetActionId(), Now: time.UnixMilli(r.GetNowUnixMs()).UTC(),
		Answers: r.GetAnswers(), Log: s.log.With("call", r.GetCallId(), "tool", r.GetTool()),
		Host: &remoteHost{dial: s.dial, ticket: r.GetTicket()},
	}
	if len(r.GetConnection()) > 0 {
		c.Connection = &Connection{}
		if err := json.Unmarshal(r.GetConnection(), c.Connection); err != nil {
			return c, err
		}
	}
	return c, nil
}

func outcomeToWire(o Outcome) *pluginpb.CallEvent {
	switch {
	case o.Failure != nil:
		return &pluginpb.CallEvent{Event: &pluginpb.CallEvent_Failure{Failure: failureToWire(o.Failure)}}
	case o.Ask != nil:
		return &pluginpb.CallEvent{Event: &pluginpb.CallEvent_Ask{Ask: o.Ask}}
	case o.Sealed != nil:
		b, err := json.Marshal(o.Sealed)
		if err != nil {
			return outcomeToWire(Outcome{Failure: Fail("internal", "The sealed effect is not JSON: %v", err)})
		}
		return &pluginpb.CallEvent{Event: &pluginpb.CallEvent_Sealed{Sealed: b}}
	}
	return &pluginpb.CallEvent{Event: &pluginpb.CallEvent_Result{Result: o.Result}}
}

// transportLog keeps go-plugin's own chatter down to warnings.
func transportLog(log hclog.Logger) hclog.Logger {
	quiet := hclog.New(&hclog.LoggerOptions{Name: log.Name() + ".transport", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true})
	return quiet
}
