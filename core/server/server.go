package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/dataset"
	"github.com/sallyport-dev/sallyport/core/discovery"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/execute"
	"github.com/sallyport-dev/sallyport/core/jobs"
	"github.com/sallyport-dev/sallyport/core/mcp"
	"github.com/sallyport-dev/sallyport/core/memory"
	"github.com/sallyport-dev/sallyport/core/plugin"
	"github.com/sallyport-dev/sallyport/core/rest"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/core/web"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Options say how a host is started.
type Options struct {
	// InTree is the program with the plugins of this repository; they are put into the
	// catalog with its digest. The catalog is left as it is when empty.
	InTree string
	Log    *slog.Logger
	Getenv func(string) string
	// Say prints what a person at the terminal should read.
	Say func(format string, args ...any)
}

// Server is a host: the services with plugins, jobs and surfaces.
type Server struct {
	*Core
	opts       Options
	Registry   *tool.Registry
	Dispatcher *tool.Dispatcher
	Runs       *run.Service
	Approval   *approval.Service
	Connectors *connector.Service
	Events     *event.Bus
	Hooks      *event.Hooks
	Usage      *usage.Meter
	Plugins    *plugin.Supervisor
	Jobs       *jobs.Jobs
	Executor   *execute.Executor
	Egress     *egress.Egress
	// Handler serves every surface.
	Handler http.Handler
}

// New wires a host on opened data. Nothing runs before Start.
func New(ctx context.Context, c *Core, o Options) (*Server, error) {
	s := &Server{Core: c, opts: o}
	if err := s.services(ctx); err != nil {
		return nil, err
	}
	if err := s.pluginHost(); err != nil {
		return nil, err
	}
	var err error
	s.Handler, err = s.surfaces()
	return s, err
}

func (s *Server) services(ctx context.Context) error {
	var err error
	if s.Jobs, err = jobs.New(s.DB, s.Clock, s.Log); err != nil {
		return err
	}
	if err := s.Jobs.Migrate(ctx); err != nil {
		return err
	}
	if s.Egress, err = egress.New(egress.Config{AllowPrivate: s.Config.AllowPrivate, Clock: s.Clock, Log: s.Log}); err != nil {
		return err
	}
	s.Events = event.NewBus(s.DB, s.Clock, s.Log)
	s.Hooks = event.NewHooks(event.HookDeps{DB: s.DB, Bus: s.Events, Audit: s.Audit, Keys: s.Keys, Clock: s.Clock, Check: s.Egress.Check})
	s.Usage = usage.New(s.DB, s.Clock)
	s.Registry = tool.NewRegistry()
	s.Runs = run.New(run.Deps{DB: s.DB, Audit: s.Audit, Events: s.Events, Clock: s.Clock, BaseURL: s.Config.BaseURL})
	s.Approval = approval.New(approval.Deps{DB: s.DB, Audit: s.Audit, Events: s.Events, Runs: s.Runs, Keys: s.Keys, Enqueue: s.Jobs, Plugins: s.Registry, Clock: s.Clock,
		UndoWindow: s.Config.UndoWindow, ActionTTL: s.Config.ActionTTL})
	clients := map[string]connector.Client{}
	for provider, client := range s.Config.OAuth {
		clients[provider] = connector.Client{ID: client.ID, Secret: client.Secret}
	}
	s.Connectors = connector.New(connector.Deps{DB: s.DB, Audit: s.Audit, Events: s.Events, Keys: s.Keys, Egress: s.Egress, Clock: s.Clock, Log: s.Log, BaseURL: s.Config.BaseURL, OAuth: clients,
		Manifests: func() []schemas.Manifest { return s.Registry.Snapshot().Manifests() },
		CallTool: func(ctx context.Context, p core.Principal, name string, args json.RawMessage) (json.RawMessage, error) {
			r, err := s.Dispatcher.Call(ctx, p, tool.Request{Tool: name, Args: args})
			if err != nil {
				return nil, err
			}
			return r.Structured, nil
		}})
	s.Executor = execute.New(execute.Deps{DB: s.DB, Approval: s.Approval, Connectors: s.Connectors, Egress: s.Egress, Log: s.Log, Lease: s.Config.Lease})
	s.Dispatcher = tool.New(tool.Deps{Registry: s.Registry, DB: s.DB, Runs: s.Runs, Approval: s.Approval, Audit: s.Audit, Meter: s.Usage, Connections: plugin.Connections{Service: s.Connectors},
		Clock: s.Clock, Log: s.Log, CallTimeout: s.Config.CallTimeout, Wake: s.wake})
	return nil
}

// wake has the jobs work on a run soon; the patrol finds it otherwise.
func (s *Server) wake(ctx context.Context, _, runID string) {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return s.Jobs.EnqueueAdvance(ctx, tx, runID) })
	if err != nil {
		s.Log.Warn("run not woken", "run", runID, "error", err)
	}
}

func (s *Server) pluginHost() error {
	var err error
	s.Plugins, err = plugin.New(s.catalog(), plugin.Deps{Registry: s.Registry, Clock: s.Clock, Log: s.Log, Concurrent: s.Config.Concurrency, Record: s.recordPlugin, MayRun: s.mayRun,
		Services: plugin.Services{Tools: s.Dispatcher, Runs: s.Runs, Connectors: s.Connectors, Memory: plugin.MemoryOf(memory.New(s.DB, s.Clock)), Datasets: dataset.New(s.DB, s.Audit), Clock: s.Clock}})
	return err
}

// mayRun keeps programs of third parties from running while nothing confines them,
// unless the owner named them.
func (s *Server) mayRun(e schemas.CatalogEntry) error {
	if e.Origin != nil && *e.Origin == schemas.CatalogEntryOriginInTree || slices.Contains(s.Config.AllowUnjailed, e.Name) {
		return nil
	}
	return fmt.Errorf("it comes from a third party and nothing would confine it; to run it all the same, start the host with --allow-unjailed %s", e.Name)
}

// recordPlugin notes in the audit log what happened to a plugin.
func (s *Server) recordPlugin(action, name string, ok bool, details map[string]any) {
	outcome := string(core.AuditEntryOutcomeOk)
	if !ok {
		outcome = string(core.AuditEntryOutcomeFailed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Audit.AppendNow(ctx, audit.Entry{Actor: core.Actor{Kind: core.ActorKindJob, ID: "supervisor", Label: "plugin supervisor"}, Action: action, Target: name, Outcome: outcome, Details: details})
	if err != nil {
		s.Log.Error("plugin event not in the audit log", "plugin", name, "event", action, "error", err)
	}
}

func (s *Server) catalog() string { return filepath.Join(s.Config.Plugins, "catalog.json") }

func (s *Server) surfaces() (http.Handler, error) {
	c := s.Config
	api, err := rest.New(rest.Deps{Auth: s.Auth, Runs: s.Runs, Approval: s.Approval, Connectors: s.Connectors, Dispatcher: s.Dispatcher, Registry: s.Registry, Audit: s.Audit,
		Usage: s.Usage, Events: s.Events, Hooks: s.Hooks, Datasets: dataset.New(s.DB, s.Audit), Replay: replay.New(s.DB, s.Clock), Plugins: s.Plugins, Clock: s.Clock, Log: s.Log, BaseURL: c.BaseURL, Version: Version,
		AllowedHosts: s.hosts(), AllowedOrigins: c.AllowedOrigins, Ready: []rest.Check{{Name: "database", Do: s.ready}}})
	if err != nil {
		return nil, err
	}
	agents, err := mcp.New(mcp.Deps{Dispatcher: s.Dispatcher, Registry: s.Registry, Auth: s.Auth, Runs: s.Runs, BaseURL: c.BaseURL, Version: Version,
		AllowedOrigins: c.AllowedOrigins, AllowedHosts: s.hosts(), Clock: s.Clock, Log: s.Log})
	if err != nil {
		return nil, err
	}
	files, err := discovery.New(discovery.Deps{Registry: s.Registry, OpenAPI: OpenAPI, BaseURL: c.BaseURL, Version: Version, Clock: s.Clock, Log: s.Log,
		Status: func(context.Context) discovery.Status {
			return discovery.Status{Sandbox: Sandbox, Plugins: s.Plugins.List()}
		}})
	if err != nil {
		return nil, err
	}
	pages, err := web.New(web.Deps{Auth: s.Auth, Runs: s.Runs, Approval: s.Approval, Tools: s.Dispatcher, Connectors: s.Connectors, Audit: s.Audit, Clock: s.Clock, Log: s.Log, BaseURL: c.BaseURL,
		Banner: "Plugins run unjailed: only those of this repository are loaded."})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, h := range s.hosts() {
		names[h] = true
	}
	return route(names, api, agents, files, pages), nil
}

// Sandbox is how plugins are confined by this build.
const Sandbox = "none (unjailed)"

func (s *Server) ready(ctx context.Context) error {
	_, err := s.DB.Now(ctx)
	return err
}

// hosts are the names this host answers to: that of its base URL, the address it listens
// on, the names of this machine's loopback at that port, and what the owner allowed.
func (s *Server) hosts() []string {
	names := append([]string{s.Config.Addr}, s.Config.AllowedHosts...)
	if base, err := url.Parse(s.Config.BaseURL); err == nil {
		names = append(names, base.Host)
	}
	if _, port, err := net.SplitHostPort(s.Config.Addr); err == nil {
		names = append(names, "localhost:"+port, "127.0.0.1:"+port, "[::1]:"+port)
	}
	return names
}

// Start brings up plugins and jobs. What fails to start is shown as unavailable; the
// host is up all the same.
func (s *Server) Start(ctx context.Context) error {
	if s.opts.InTree != "" {
		entries, err := plugin.InTreeCatalog(s.opts.InTree)
		if err != nil {
			return err
		}
		old, err := plugin.ReadCatalog(s.catalog())
		if err != nil {
			return err
		}
		if err := plugin.WriteCatalog(s.catalog(), plugin.MergeInTree(old, entries)); err != nil {
			return err
		}
	}
	if err := s.Plugins.Start(ctx); err != nil {
		return err
	}
	return s.Jobs.Start(ctx, jobs.Work{Execute: s.Executor.Run, Advance: s.Dispatcher.Advance, Expire: s.Approval.ExpireDue, Sweep: s.sweep, Webhooks: &jobs.Webhooks{Hooks: s.Hooks, Egress: s.Egress}, Purge: s.purge})
}

func (s *Server) purge(ctx context.Context) error {
	_, err := s.Auth.Purge(ctx)
	_, err2 := replay.New(s.DB, s.Clock).Purge(ctx)
	_, err3 := s.Events.Purge(ctx)
	return errors.Join(err, err2, err3)
}

func (s *Server) sweep(ctx context.Context) error {
	err := s.Executor.Sweep(ctx)
	_, err2 := s.Approval.WakeDue(ctx)
	_, err3 := s.Runs.Settle(ctx)
	return errors.Join(err, err2, err3)
}

// Stop lets what is running end, then ends plugins and jobs.
func (s *Server) Stop(ctx context.Context) error {
	err := s.Jobs.Stop(ctx)
	s.Plugins.Stop()
	s.Egress.Close()
	return err
}

// OpenAPI is the REST description for a base address.
func OpenAPI(base string) json.RawMessage {
	doc, err := rest.OpenAPI(base)
	if err != nil {
		panic(fmt.Sprintf("the REST description does not fit together: %v", err)) // a test builds it
	}
	return doc
}
