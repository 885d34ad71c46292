package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// drain is how long requests in flight and sends may take after the signal to end.
const drain = 25 * time.Second

// route sends each request to its surface. REST and MCP answer for their own Host rule;
// pages and files get the same one here: a name that an attacker points at this machine
// must not be served.
func route(hosts map[string]bool, api, agents, files, pages http.Handler) http.Handler {
	files, pages = onlyHosts(hosts, files), onlyHosts(hosts, pages)
	known := map[string]bool{"/openapi.json": true, "/llms.txt": true, "/agents.txt": true, "/discovery-status.json": true, "/repo-context.mjs": true, "/install-agent-hook.mjs": true, "/mcp/server-card": true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/mcp":
			agents.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/"), path == "/livez", path == "/readyz", path == "/metrics", strings.HasPrefix(path, "/problems/"):
			api.ServeHTTP(w, r)
		case known[path], strings.HasPrefix(path, "/.well-known/"), strings.HasPrefix(path, "/agent-hook/"), strings.HasPrefix(path, "/status/"):
			files.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

func onlyHosts(hosts map[string]bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts[r.Host] {
			http.Error(w, "This host does not answer to that name. Its owner can allow it with allowedHosts.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve runs a host until ctx ends, then drains it.
func Serve(ctx context.Context, cfg Config, o Options) error {
	if os.Getenv("GOGC") == "" {
		// Requests are short-lived and small: fewer, larger collections halve the cost of a call.
		debug.SetGCPercent(400)
	}
	c, err := Open(ctx, cfg, o.Log, o.Getenv)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	release, err := c.DB.LockHost(ctx)
	if err != nil {
		return err
	}
	defer release()
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	s, err := New(ctx, c, o)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.greet(ctx); err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	return s.listen(ctx, ln)
}

func (s *Server) listen(ctx context.Context, ln net.Listener) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	web := &http.Server{Handler: s.Handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ln) }()
	go s.checkpoints(ctx)
	select {
	case err := <-ended:
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	s.Log.Info("ending: no new requests, letting the rest finish")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	// Calls may finish; event streams never do, so that they are cut after a while.
	grace := time.AfterFunc(5*time.Second, cut)
	defer grace.Stop()
	err := web.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = web.Close()
	}
	return errors.Join(err, s.Stop(end))
}

// checkpoints signs the head of the audit log from time to time.
func (s *Server) checkpoints(ctx context.Context) {
	tick := time.NewTicker(max(s.Config.Checkpoint, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := s.Audit.Checkpoint(ctx); err != nil && ctx.Err() == nil {
				s.Log.Error("audit checkpoint not signed", "error", err)
			}
		}
	}
}

// greet tells the person at the terminal what there is and what to do first.
func (s *Server) greet(ctx context.Context) error {
	base := s.Config.BaseURL
	s.opts.Say("Sallyport %s listens on %s and is reached at %s", Version, s.Config.Addr, base)
	s.opts.Say("Plugins run unjailed: they get no credential and cannot send through the host, but nothing confines a hostile program. Only the plugins of this repository are loaded.")
	ready, err := s.Auth.Initialised(ctx)
	if err != nil {
		return err
	}
	if !ready {
		token, expires, err := s.Auth.NewSetupToken(ctx)
		if err != nil {
			return err
		}
		url := s.Auth.SetupURL(token)
		file := filepath.Join(s.Config.Data, "setup-url")
		if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
			return err
		}
		s.opts.Say("\nSet up the owner (once, until %s): %s", expires.Local().Format("15:04"), url)
	}
	data := ""
	if s.Config.Data != "./var" {
		data = " --data " + s.Config.Data
	}
	s.opts.Say("\nThen, in another terminal:\n  a key for an agent   bin/sallyport key create%s --name my-agent --kind agent\n  a token for you      TOKEN=$(bin/sallyport token create%s)", data, data)
	s.opts.Say("  bring a goal         curl -s %s/api/runs -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' -H 'Prefer: wait=30' -d '{\"goal\": \"Get users for what I just built\"}'", base)
	s.opts.Say("  an MCP client        claude mcp add --transport http sallyport %s/mcp --header \"X-Api-Key: KEY\"\n", base)
	return nil
}
