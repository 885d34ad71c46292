package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

const (
	startTimeout    = 5 * time.Second
	describeTimeout = 5 * time.Second
	stopTimeout     = 3 * time.Second
	window          = 1 << 20
	maxProgress     = 10_000 // progress events of one call that are passed on
	// untilPreface is how long a plugin may wait with its first request to the host: for ever.
	untilPreface = 100 * 365 * 24 * time.Hour
)

// process is one running plugin process and the Host service it is given.
type process struct {
	name    string
	running Running
	client  *plugin.Client
	service pluginpb.PluginClient
	host    *grpc.Server
	conn    net.Conn // over which the plugin reaches host
	desk    *desk
	dir     string // private, for its socket
	stop    sync.Once
}

// grpcPlugin makes the service known to go-plugin.
type grpcPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (grpcPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

func (grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pluginpb.NewPluginClient(conn), nil
}

// startProcess starts a plugin up to the point where it can be asked for its manifest.
func startProcess(l Launcher, launch Launch, baseDir string, serve func(*desk) pluginpb.HostServer, log *slog.Logger, clock core.Clock) (*process, error) {
	dir, err := os.MkdirTemp(baseDir, "p") // short: the address of a unix socket has about 100 bytes
	if err != nil {
		return nil, fmt.Errorf("no folder for its socket: %w", err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("no socket pair: %w", err), os.Remove(dir))
	}
	launch.Host = theirs
	output := newLineLog(log, clock)
	launch.Stderr = output
	p := &process{name: launch.Name, desk: newDesk(), dir: dir, conn: ours}
	p.client = plugin.NewClient(p.config(l, launch, output))
	protocol, err := p.client.Client()
	closing := theirs.Close() // the child has its own by now
	if err == nil {
		var service any
		if service, err = protocol.Dispense(pluginpb.PluginName); err == nil {
			p.service, _ = service.(pluginpb.PluginClient)
		}
	}
	if err = errors.Join(err, closing); err != nil {
		p.kill()
		return nil, fmt.Errorf("it did not start: %s", plainStart(err))
	}
	p.host = grpc.NewServer(grpc.MaxRecvMsgSize(pluginpb.MaxPluginMessage), grpc.MaxSendMsgSize(pluginpb.MaxHostMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.ConnectionTimeout(untilPreface))
	pluginpb.RegisterHostServer(p.host, serve(p.desk))
	go func() {
		if err := p.host.Serve(&oneConn{conn: ours, done: p.running.Exited()}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Debug("host service ended", "error", err)
		}
	}()
	return p, nil
}

// plainStart says in one line why a start failed.
func plainStart(err error) string {
	text := err.Error()
	if strings.Contains(text, "Failed to read any lines") {
		return "its process ended, or wrote something else, before it named its socket"
	}
	return clip(escape(text), 1000)
}

func (p *process) config(l Launcher, launch Launch, output io.Writer) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: pluginpb.ProtocolVersion, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{pluginpb.ProtocolVersion: {pluginpb.PluginName: grpcPlugin{}}},
		RunnerFunc: func(_ hclog.Logger, prepared *exec.Cmd, dir string) (runner.Runner, error) {
			launch.SocketDir = dir
			launch.Env = environment(prepared.Env, dir)
			running, err := l.Launch(launch)
			if err != nil {
				return nil, err
			}
			p.running = running
			return running, nil
		},
		SkipHostEnv: true, AutoMTLS: l.AutoMTLS(), AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.dir}, StartTimeout: startTimeout,
		Logger: hclog.NewNullLogger(), Stderr: io.Discard, SyncStdout: output, SyncStderr: output,
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginpb.MaxPluginMessage), grpc.MaxCallSendMsgSize(pluginpb.MaxHostMessage)),
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.running.Dial(ctx) }),
		},
	}
}

// socketPair makes the connection over which a plugin reaches the Host service.
func socketPair() (net.Conn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "plugin")
	conn, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

// oneConn is a listener with exactly one connection; it ends with the process.
type oneConn struct {
	conn net.Conn
	done <-chan struct{}
	once sync.Once
}

func (l *oneConn) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// describe asks for the manifest; maxManifest bounds it.
func (p *process) describe(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	r, err := p.service.Describe(ctx, &pluginpb.DescribeRequest{})
	if err != nil {
		return nil, fmt.Errorf("it did not describe itself: %s", escape(status.Convert(err).Message()))
	}
	if len(r.GetManifest()) > maxManifest {
		return nil, fmt.Errorf("its manifest has %d bytes; at most %d are read", len(r.GetManifest()), maxManifest)
	}
	return r.GetManifest(), nil
}

func (p *process) configure(ctx context.Context, config []byte) error {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	_, err := p.service.Configure(ctx, &pluginpb.ConfigureRequest{Config: config, MaxMessageBytes: pluginpb.MaxPluginMessage})
	if err != nil {
		return fmt.Errorf("it refused its configuration: %s", escape(status.Convert(err).Message()))
	}
	return nil
}

// call runs one tool under a ticket that ends with it.
func (p *process) call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ticket string
	if in.ActionID == "" { // a write tool compiles: it has no host to ask
		var release func()
		ticket, release = p.desk.issue(ctx, in.Scope)
		defer release()
	}
	stream, err := p.service.Call(ctx, &pluginpb.CallRequest{
		Tool: in.Tool, Input: in.Input, CallId: in.Scope.CallID, Ticket: ticket, WorkspaceId: in.Scope.WorkspaceID(), RunId: in.Scope.RunID,
		ReviewUrl: in.Scope.ReviewURL, ActionId: in.ActionID, NowUnixMs: in.Scope.Now.UnixMilli(), Connection: in.Connection, Answers: in.Answers, ProtocolEra: in.Era,
	})
	for progress := 0; err == nil; {
		var event *pluginpb.CallEvent
		if event, err = stream.Recv(); err != nil {
			break
		}
		switch e := event.GetEvent().(type) {
		case *pluginpb.CallEvent_Progress:
			if progress++; in.Progress != nil && progress <= maxProgress {
				in.Progress(e.Progress.GetDone(), e.Progress.GetTotal(), escape(clip(e.Progress.GetMessage(), 300)))
			}
		case *pluginpb.CallEvent_Log: // logs come on standard error; nothing is lost here
		case *pluginpb.CallEvent_Result:
			return tool.CallOut{Result: e.Result}, checkJSON(p.name, e.Result)
		case *pluginpb.CallEvent_Sealed:
			return tool.CallOut{Sealed: e.Sealed}, checkJSON(p.name, e.Sealed)
		case *pluginpb.CallEvent_Ask:
			return tool.CallOut{Ask: e.Ask}, checkJSON(p.name, e.Ask)
		case *pluginpb.CallEvent_Failure:
			return tool.CallOut{}, failureOf(e.Failure)
		}
	}
	return tool.CallOut{}, p.explain(ctx, in.Tool, err)
}

func checkJSON(name string, raw []byte) error {
	if !json.Valid(raw) {
		return tool.Unavailable(name, "it answered something that is not JSON")
	}
	return nil
}

// explain turns the end of a stream without an outcome into what callers see.
func (p *process) explain(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded:
		e := core.Errf(core.KindUnavailable, tool.CodeTimeout, "The tool %s did not answer in time.", name)
		e.Err = err
		return e
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF):
		return tool.Unavailable(p.name, "it ended the call without an answer")
	case status.Code(err) == codes.ResourceExhausted:
		return tool.Unavailable(p.name, fmt.Sprintf("its answer is larger than %d bytes", pluginpb.MaxPluginMessage))
	}
	e := tool.Unavailable(p.name, "the connection to it broke")
	e.Err = err
	return e
}

func failureOf(f *pluginpb.Failure) *tool.Failure {
	out := &tool.Failure{Code: clip(f.GetCode(), 64), Message: clip(escape(f.GetMessage()), 2000), Retryable: f.GetRetryable()}
	for _, field := range f.GetFields()[:min(len(f.GetFields()), 100)] {
		out.Fields = append(out.Fields, core.FieldError{Pointer: clip(escape(field.GetPointer()), 300), Message: clip(escape(field.GetMessage()), 500)})
	}
	for _, help := range f.GetWhatWouldHelp()[:min(len(f.GetWhatWouldHelp()), 20)] {
		out.WhatWouldHelp = append(out.WhatWouldHelp, clip(escape(help), 500))
	}
	return out
}

// clip cuts s to at most n bytes, at a rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// kill ends the process: by asking, and after stopTimeout by force. It may be called
// again and waits until the process is gone.
func (p *process) kill() {
	p.stop.Do(func() {
		p.desk.close()
		defer func() {
			_ = os.RemoveAll(p.dir) // what cannot be removed goes with the base folder
			_ = p.conn.Close()      // a grandchild may still hold the other end
			if p.host != nil {
				p.host.Stop()
			}
		}()
		if p.running == nil {
			return
		}
		force := time.AfterFunc(stopTimeout, func() { _ = p.running.Kill(context.Background()) }) // Kill cannot fail
		p.client.Kill()
		force.Stop()
		if p.running.Pid() > 0 {
			_ = p.running.Kill(context.Background())
			<-p.running.Exited()
		}
	})
}
