// Package plugin runs plugins as processes of their own: it starts them as the catalog
// says, admits what they describe, restarts them, and serves them the one interface over
// which they reach anything.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// Defaults of Deps.
const (
	DefaultConcurrent = 32
	DefaultDrain      = time.Minute
	startAtOnce       = 4
)

// Deps is what the supervisor works with.
type Deps struct {
	Registry *tool.Registry
	// Services answer what plugins ask of the host.
	Services Services
	Launcher Launcher // Unjailed when nil
	// MayRun refuses entries that must not be started at all; nil lets every entry run.
	MayRun func(schemas.CatalogEntry) error
	Clock  core.Clock
	Log    *slog.Logger
	// Sleep waits for d or until ctx ends; real time when nil.
	Sleep func(ctx context.Context, d time.Duration) error
	// Record notes what happened to a plugin in the audit log; may be nil.
	Record func(action, plugin string, ok bool, details map[string]any)
	// Concurrent is the number of calls a plugin serves at once on each depth.
	Concurrent int
	// Drain is how long a replaced process may finish its calls.
	Drain time.Duration
}

// Supervisor starts, watches and replaces plugin processes.
type Supervisor struct {
	d       Deps
	catalog string // path of the catalog file
	sockets string // private folder for sockets

	changing sync.Mutex // orders changes of the set of plugins

	mu      sync.Mutex
	plugins map[string]*managed
	ctx     context.Context
	stop    context.CancelFunc
	retired sync.WaitGroup
	watcher func() // ends the watch of the catalog file
}

// New makes a supervisor for the catalog file at path, which need not be there yet.
func New(catalogPath string, d Deps) (*Supervisor, error) {
	path, err := filepath.Abs(catalogPath)
	if err != nil {
		return nil, err
	}
	if d.Launcher == nil {
		d.Launcher = Unjailed{}
	}
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	d.Concurrent, d.Drain = cmp.Or(d.Concurrent, DefaultConcurrent), cmp.Or(d.Drain, DefaultDrain)
	return &Supervisor{d: d, catalog: path, plugins: map[string]*managed{}}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start starts every plugin of the catalog and puts their tools in force. A plugin that
// does not start is no error: it shows in List and is tried again. A catalog that cannot
// be read is one. Plugins live until Stop or until ctx ends.
func (s *Supervisor) Start(ctx context.Context) error {
	sockets, err := os.MkdirTemp("", "sallyport-")
	if err != nil {
		return fmt.Errorf("no private folder for plugin sockets: %w", err)
	}
	s.sockets = sockets
	s.mu.Lock()
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Unlock()
	refused, err := s.reload(ctx, "")
	if err != nil {
		s.Stop()
		return err
	}
	for _, err := range refused {
		s.d.Log.Error("plugin not loaded", "error", err)
	}
	if s.watcher, err = s.watchCatalog(); err != nil {
		s.d.Log.Warn("the catalog file is not watched: reload by hand", "error", err)
	}
	return nil
}

// Stop ends every plugin and waits until they are gone.
func (s *Supervisor) Stop() {
	if s.watcher != nil {
		s.watcher()
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	all := s.plugins
	s.plugins = map[string]*managed{}
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { m.retire(nil) })
	}
	wg.Wait()
	s.retired.Wait()
	if s.sockets != "" {
		if err := os.RemoveAll(s.sockets); err != nil {
			s.d.Log.Warn("socket folder not removed", "error", err)
		}
	}
}

// List lists the plugins of the catalog, sorted by name.
func (s *Supervisor) List() []core.Plugin {
	s.mu.Lock()
	all := make([]*managed, 0, len(s.plugins))
	for _, m := range s.plugins {
		all = append(all, m)
	}
	s.mu.Unlock()
	out := make([]core.Plugin, 0, len(all))
	for _, m := range all {
		out = append(out, m.describe())
	}
	slices.SortFunc(out, func(a, b core.Plugin) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Reload reads the catalog again and brings the plugins in line with it: entries that
// changed are started anew beside the old process and take over once they are admitted;
// where that fails the old one goes on and the error says why. With a name that plugin is
// started anew even where its entry is the same.
func (s *Supervisor) Reload(ctx context.Context, name string) error {
	refused, err := s.reload(ctx, name)
	if err != nil || len(refused) == 0 {
		return err
	}
	why := errors.Join(refused...)
	return &core.Error{Kind: core.KindInvalid, Code: "plugin_refused", Detail: "Not everything in the catalog is in force. " + strings.ReplaceAll(why.Error(), "\n", " "), Err: why}
}

// reload does what Reload says. refused lists the plugins that were not taken, err says
// that nothing was done.
func (s *Supervisor) reload(ctx context.Context, name string) (refused []error, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	catalog, err := ReadCatalog(s.catalog)
	if err != nil {
		return nil, err
	}
	wanted := map[string]schemas.CatalogEntry{}
	for _, e := range catalog {
		if e.Enabled == nil || *e.Enabled {
			wanted[e.Name] = e
		}
	}
	if name != "" {
		if _, ok := wanted[name]; !ok {
			return nil, core.Errf(core.KindNotFound, "not_found", "The catalog has no enabled plugin %q.", name)
		}
	}
	s.mu.Lock()
	old := s.plugins
	s.mu.Unlock()
	var fresh []*managed
	for _, e := range wanted {
		if was, ok := old[e.Name]; !ok || e.Name == name || !sameEntry(was.entry, e) {
			fresh = append(fresh, s.manage(e))
		}
	}
	return s.take(old, wanted, s.startAll(ctx, fresh))
}

// candidate is a plugin that was tried.
type candidate struct {
	m        *managed
	proc     *process
	admitted *described
	err      error
}

// startAll starts plugins, a few at a time.
func (s *Supervisor) startAll(ctx context.Context, fresh []*managed) []*candidate {
	slices.SortFunc(fresh, func(a, b *managed) int { return cmp.Compare(a.entry.Name, b.entry.Name) })
	out := make([]*candidate, len(fresh))
	room := make(chan struct{}, startAtOnce)
	var wg sync.WaitGroup
	for i, m := range fresh {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			c := &candidate{m: m}
			c.proc, c.admitted, c.err = m.start(ctx)
			out[i] = c
		})
	}
	wg.Wait()
	return out
}

// take puts the candidates that started in the place of their predecessors, in one swap.
func (s *Supervisor) take(old map[string]*managed, wanted map[string]schemas.CatalogEntry, tried []*candidate) (refused []error, err error) {
	next := map[string]*managed{}
	for name, m := range old {
		if _, ok := wanted[name]; ok {
			next[name] = m
		}
	}
	for _, c := range tried {
		name := c.m.entry.Name
		if c.err == nil {
			c.err = s.fits(next, c)
		}
		if c.err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", name, c.err))
			s.record("plugin.refused", name, false, map[string]any{"sha256": c.m.entry.Sha256, "reason": clip(c.err.Error(), 500)})
			if _, serving := next[name]; serving { // the old one goes on
				continue
			}
		} else {
			c.m.up(c.proc, c.admitted)
			s.record("plugin.started", name, true, map[string]any{"sha256": c.m.entry.Sha256, "manifestDigest": c.admitted.digest, "launcher": s.d.Launcher.Name()})
		}
		next[name] = c.m
	}
	if err := s.swap(next); err != nil {
		return nil, err
	}
	for _, c := range tried {
		if next[c.m.entry.Name] == c.m {
			s.follow(c)
		}
	}
	for name, m := range old {
		if next[name] != m {
			s.retired.Go(func() { m.retire(next[name]) })
		}
	}
	return refused, nil
}

// fits tries a candidate in the registry, so that one that clashes is refused alone.
func (s *Supervisor) fits(next map[string]*managed, c *candidate) error {
	plugins := []*tool.Plugin{c.m.asTool(c.admitted)}
	for name, m := range next {
		if name != c.m.entry.Name {
			if p := m.asTool(nil); p != nil {
				plugins = append(plugins, p)
			}
		}
	}
	if _, err := tool.NewSnapshot(plugins); err != nil {
		c.proc.kill()
		c.proc = nil
		return err
	}
	return nil
}

// follow watches a plugin from now on.
func (s *Supervisor) follow(c *candidate) {
	ctx, cancel := context.WithCancel(s.ctx)
	c.m.cancel = cancel
	var pause time.Duration
	if c.err != nil {
		pause = c.m.fail(c.err.Error())
	}
	go c.m.watch(ctx, c.proc, pause)
}

// swap puts a set of plugins in force.
func (s *Supervisor) swap(next map[string]*managed) error {
	var plugins []*tool.Plugin
	for _, m := range next {
		if p := m.asTool(nil); p != nil {
			plugins = append(plugins, p)
		}
	}
	snapshot, err := tool.NewSnapshot(plugins)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.plugins = next
	s.mu.Unlock()
	s.d.Registry.Swap(snapshot)
	return nil
}

// asTool is the plugin as the registry takes it; nil while nothing was admitted.
func (m *managed) asTool(d *described) *tool.Plugin {
	if d == nil {
		m.mu.Lock()
		d = m.admitted
		m.mu.Unlock()
	}
	if d == nil {
		return nil
	}
	return &tool.Plugin{Manifest: d.manifest, Caller: m, Digest: m.entry.Sha256, ManifestDigest: d.digest, List: m.entry.List != nil && *m.entry.List}
}

// restarted takes a process in that was started after a crash. Where it describes
// something else than before, or for the first time, the registry changes.
func (s *Supervisor) restarted(m *managed, p *process, d *described) error {
	m.mu.Lock()
	same := m.admitted != nil && m.admitted.digest == d.digest
	m.mu.Unlock()
	if !same {
		if !s.changing.TryLock() { // a reload is under way and decides about this plugin
			return errors.New("the catalog is being read")
		}
		defer s.changing.Unlock()
		s.mu.Lock()
		current := s.plugins
		s.mu.Unlock()
		if err := s.fits(current, &candidate{m: m, proc: p, admitted: d}); err != nil {
			return err
		}
		m.up(p, d)
		if err := s.swap(current); err != nil {
			return err
		}
	} else {
		m.up(p, d)
	}
	m.log.Info("plugin answers again")
	s.record("plugin.restarted", m.entry.Name, true, map[string]any{"manifestDigest": d.digest})
	return nil
}

func (s *Supervisor) record(action, plugin string, ok bool, details map[string]any) {
	if s.d.Record != nil {
		s.d.Record(action, plugin, ok, details)
	}
}

// serve makes the Host service of a plugin's process.
func (s *Supervisor) serve(m *managed) func(*desk) pluginpb.HostServer {
	return func(d *desk) pluginpb.HostServer { return &hostServer{plugin: m, desk: d, services: s.d.Services} }
}
