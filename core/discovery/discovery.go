// Package discovery serves the public files by which agents and tools find the platform
// and learn its rules. All of them are generated from the registry in force, so that
// they agree with tools/list and with each other.
package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// Addresses that this package serves.
const (
	PathOpenAPI       = "/openapi.json"
	PathLLMs          = "/llms.txt"
	PathMCP           = "/.well-known/mcp.json"
	PathAgents        = "/agents.txt"
	PathHookGuide     = "/agent-hook/AGENTS.md"
	PathStatus        = "/discovery-status.json"
	PathAgentStatus   = "/status/agent"
	PathCollector     = "/repo-context.mjs"
	PathInstaller     = "/install-agent-hook.mjs"
	PathResource      = "/.well-known/oauth-protected-resource"
	PathResourceOfMCP = "/.well-known/oauth-protected-resource/mcp"
	PathCatalog       = "/.well-known/ai-catalog.json"
	PathServerCard    = "/mcp/server-card"
)

// Paths lists every address, for mounting and for checks.
func Paths() []string {
	return []string{PathOpenAPI, PathLLMs, PathMCP, PathAgents, PathHookGuide, PathStatus, PathAgentStatus, PathCollector,
		PathInstaller, PathResource, PathResourceOfMCP, PathCatalog, PathServerCard}
}

// Status is what the host tells about its plugins.
type Status struct {
	// Sandbox is how plugins are confined, for example "none (unjailed)".
	Sandbox string
	Plugins []core.Plugin
}

// Deps is what the files are made from.
type Deps struct {
	Registry *tool.Registry
	// OpenAPI is the REST description for a base address.
	OpenAPI func(base string) json.RawMessage
	// BaseURL is the public address without a slash at the end.
	BaseURL string
	Version string
	// Status is asked at each request of /status/agent.
	Status func(ctx context.Context) Status
	Clock  core.Clock
	Log    *slog.Logger
}

// site holds the files in force.
type site struct {
	deps    Deps
	started time.Time
	current atomic.Pointer[files]
	rebuild sync.Mutex
}

// New makes the handler for Paths and keeps its files equal to the registry.
func New(deps Deps) (http.Handler, error) {
	if deps.Registry == nil || deps.OpenAPI == nil || deps.Status == nil {
		return nil, errors.New("discovery: Registry, OpenAPI and Status are required")
	}
	if !strings.HasPrefix(deps.BaseURL, "http://") && !strings.HasPrefix(deps.BaseURL, "https://") || strings.HasSuffix(deps.BaseURL, "/") {
		return nil, errors.New("discovery: BaseURL must be an http or https address without a slash at the end")
	}
	if deps.Clock == nil {
		deps.Clock = core.SystemClock{}
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	s := &site{deps: deps, started: deps.Clock.Now()}
	if err := s.build(deps.Registry.Snapshot()); err != nil {
		return nil, err
	}
	deps.Registry.Subscribe(func(_, next *tool.Snapshot) {
		if err := s.build(next); err != nil { // the files before stay
			deps.Log.Error("discovery files not rebuilt", "error", err)
		}
	})
	if err := s.build(deps.Registry.Snapshot()); err != nil { // a swap between the first look and the subscription
		return nil, err
	}
	return s, nil
}

// build generates every file for a snapshot, puts them in force and checks them.
func (s *site) build(snap *tool.Snapshot) error {
	s.rebuild.Lock()
	defer s.rebuild.Unlock()
	f, err := generate(s.deps, snap)
	if err != nil {
		return err
	}
	f.builtAt = s.deps.Clock.Now()
	s.current.Store(f)
	for _, c := range s.check(f) {
		if !c.OK {
			s.deps.Log.Error("discovery file is wrong", "path", c.Path, "detail", c.Detail)
		}
	}
	return nil
}

// ServeHTTP serves one file to anyone, pages of other origins included: nothing here is
// private.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag")
	h.Set("X-Content-Type-Options", "nosniff")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "If-None-Match")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "This file can only be read.", http.StatusMethodNotAllowed)
		return
	}
	f, ok := s.file(r.Context(), r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	h.Set("Content-Type", f.contentType)
	h.Set("ETag", f.etag())
	h.Set("Link", `</llms.txt>; rel="describedby"`)
	h.Set("Cache-Control", "public, max-age=300")
	if f.live {
		h.Set("Cache-Control", "no-cache")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}

// file finds the file of a path; the two status documents are made for each request.
func (s *site) file(ctx context.Context, path string) (*file, bool) {
	now := s.current.Load()
	switch path {
	case PathStatus:
		return s.status(now), true
	case PathAgentStatus:
		return s.agentStatus(ctx, now), true
	}
	f, ok := now.byPath[path]
	return f, ok
}
