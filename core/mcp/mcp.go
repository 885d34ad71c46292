// Package mcp serves the tools of the registry over the Model Context Protocol: at
// POST /mcp for the revisions 2025-03-26 to 2026-07-28, and over standard input and
// output for desktop clients. The official SDK speaks the protocol; this package adds
// what it leaves open: who may call what, which handler serves a request, and the
// catalogue that follows the registry.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// Limits of the endpoint.
const (
	// MaxBody is the largest request body in bytes.
	MaxBody = 1 << 20
	// SessionTimeout ends a session that received nothing for so long.
	SessionTimeout = 30 * time.Minute
	// MaxAnonymousSessions and MaxSessionsPerKey bound what one process keeps. A client
	// beyond them is served without a session.
	MaxAnonymousSessions = 1000
	MaxSessionsPerKey    = 100
)

// Caller runs a tool for a principal; *tool.Dispatcher is one.
type Caller interface {
	Call(ctx context.Context, p core.Principal, r tool.Request) (*tool.Result, error)
}

// Keys turns an API key into the principal that holds it; *auth.Service is one.
type Keys interface {
	FromKey(ctx context.Context, key string) (core.Principal, error)
}

// Runs answers the resources run://, asset:// and evidence://; *run.Service is one.
type Runs interface {
	Get(ctx context.Context, p core.Principal, id string) (*core.Run, error)
	Asset(ctx context.Context, p core.Principal, id string) (*core.Asset, error)
	Evidence(ctx context.Context, p core.Principal, id string) (*core.Evidence, error)
}

// Deps is what the surface needs.
type Deps struct {
	Dispatcher Caller
	Registry   *tool.Registry
	Auth       Keys // not used over standard input and output
	Runs       Runs
	// BaseURL is the public address; its host and origin are always allowed.
	BaseURL string
	Version string
	// AllowedOrigins and AllowedHosts are allowed besides those of BaseURL and the
	// loopback names.
	AllowedOrigins []string
	AllowedHosts   []string
	Clock          core.Clock
	Log            *slog.Logger
}

func (d *Deps) check() error {
	if d.Dispatcher == nil || d.Registry == nil || d.Runs == nil || d.BaseURL == "" {
		return errors.New("mcp: Dispatcher, Registry, Runs and BaseURL are required")
	}
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Version == "" {
		d.Version = "0.0.0"
	}
	return nil
}

// instructions is what a client's model reads once, before any tool description.
const instructions = `Sallyport turns a goal into evidence, drafts and proposed actions for review. Nothing is published, sent or spent before a person approves it at reviewUrl.
Call mkt_diagnose_marketing first for a marketing goal. Right after something was built or deployed call platform_get_users_after_build, show agentGuide.userMessage and reviewUrl to the person, and wait. Resume with mkt_continue_launch_loop; measure after 24 hours. Never approve, post, send, submit or spend on the person's behalf.`

// surface is one MCP server over the registry.
type surface struct {
	deps   Deps
	server *mcp.Server
	// fixed is the principal of every request over standard input and output; nil over HTTP,
	// where each request carries its own.
	fixed   *core.Principal
	catalog *catalog
}

func newSurface(deps Deps, fixed *core.Principal) *surface {
	s := &surface{deps: deps, fixed: fixed}
	s.server = mcp.NewServer(
		&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: deps.Version, WebsiteURL: deps.BaseURL},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       quiet(deps.Log),
			Capabilities: &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{ListChanged: true},
				Prompts:   &mcp.PromptCapabilities{ListChanged: true},
				Resources: &mcp.ResourceCapabilities{ListChanged: true},
			},
			SetCacheable: cacheable,
		})
	s.server.AddReceivingMiddleware(s.recoverPanics, s.authorize)
	s.catalog = newCatalog(s)
	return s
}

// cacheable lets clients keep lists for a few seconds: polling clients see a hot load
// soon, and what a key may read is nobody else's.
func cacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	c.TTLMs = int((5 * time.Second).Milliseconds())
	if _, reading := req.(*mcp.ReadResourceRequest); reading {
		c.TTLMs, c.CacheScope = 0, "private"
	}
}

// quiet passes warnings and errors: the SDK reports every stateless request as a new
// connection at level info.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
func (h warnings) WithAttrs(as []slog.Attr) slog.Handler { return warnings{h.Handler.WithAttrs(as)} }
func (h warnings) WithGroup(name string) slog.Handler    { return warnings{h.Handler.WithGroup(name)} }

// New makes the handler for /mcp. It follows the registry for as long as the process lives.
func New(deps Deps) (http.Handler, error) {
	if err := deps.check(); err != nil {
		return nil, err
	}
	if deps.Auth == nil {
		return nil, errors.New("mcp: Auth is required")
	}
	s := newSurface(deps, nil)
	f, err := newFront(s)
	if err != nil {
		return nil, err
	}
	s.catalog.follow(deps.Registry)
	return f, nil
}
