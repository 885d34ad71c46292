package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Restarts after crashes: the pause doubles from minPause to maxPause; crashLimit
// crashes within crashWindow open the circuit, after which one try is made per maxPause.
const (
	minPause    = time.Second
	maxPause    = 5 * time.Minute
	crashLimit  = 5
	crashWindow = 2 * time.Minute
)

// managed is one catalog entry with the process that serves it, through its restarts.
// It is what the registry calls.
type managed struct {
	sup   *Supervisor
	entry schemas.CatalogEntry
	path  string // binary, absolute
	log   *slog.Logger
	slots [tool.MaxDepth + 1]chan struct{} // concurrent calls per depth: nested ones never wait for their callers

	mu        sync.Mutex
	proc      *process
	admitted  *described
	status    core.PluginStatus
	reason    string
	restarts  int
	crashes   []time.Time
	successor *managed // set when another took over
	retired   bool
	inflight  int
	idle      chan struct{} // closed when retired and nothing is in flight

	cancel context.CancelFunc // ends the watch
	done   chan struct{}      // closed when it has ended
}

func (s *Supervisor) manage(entry schemas.CatalogEntry) *managed {
	m := &managed{sup: s, entry: entry, path: entry.Command, status: core.PluginStatusStarting, reason: "It is being started.",
		log: s.d.Log.With("plugin", entry.Name), done: make(chan struct{}), idle: make(chan struct{})}
	if !filepath.IsAbs(m.path) {
		m.path = filepath.Join(filepath.Dir(s.catalog), m.path)
	}
	for i := range m.slots {
		m.slots[i] = make(chan struct{}, s.d.Concurrent)
	}
	return m
}

// start starts a process and admits what it describes.
func (m *managed) start(ctx context.Context) (*process, *described, error) {
	if may := m.sup.d.MayRun; may != nil {
		if err := may(m.entry); err != nil {
			return nil, nil, err
		}
	}
	launch := Launch{Name: m.entry.Name, Path: m.path, Args: m.entry.Args, SHA256: m.entry.Sha256}
	p, err := startProcess(m.sup.d.Launcher, launch, m.sup.sockets, m.sup.serve(m), m.log, m.sup.d.Clock)
	if err != nil {
		return nil, nil, err
	}
	admitted, err := m.prepare(ctx, p)
	if err != nil {
		p.kill()
		return nil, nil, err
	}
	return p, admitted, nil
}

func (m *managed) prepare(ctx context.Context, p *process) (*described, error) {
	raw, err := p.describe(ctx)
	if err != nil {
		return nil, err
	}
	admitted, err := admit(raw, m.entry)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(m.entry.Config)
	if err != nil || m.entry.Config == nil {
		config = []byte("{}")
	}
	return admitted, p.configure(ctx, config)
}

// up records a process that serves from now on.
func (m *managed) up(p *process, d *described) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proc, m.admitted = p, d
	m.status, m.reason = core.PluginStatusRunning, "It answers."
}

// down records that there is no process, and why; crash counts for the circuit. It
// returns how long to wait before the next try.
func (m *managed) down(reason string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sup.d.Clock.Now()
	recent := []time.Time{now}
	for _, t := range m.crashes {
		if now.Sub(t) < crashWindow && len(recent) < crashLimit {
			recent = append(recent, t)
		}
	}
	m.crashes, m.proc = recent, nil
	m.status, m.reason = core.PluginStatusUnavailable, reason
	if len(recent) >= crashLimit {
		m.reason = fmt.Sprintf("%s It failed %d times within %s; the next try is in %s, or at once with a reload.", reason, crashLimit, crashWindow, maxPause)
		return maxPause
	}
	return min(minPause<<(len(recent)-1), maxPause)
}

// fail reports that there is no process, and returns how long to wait.
func (m *managed) fail(reason string) time.Duration {
	pause := m.down(reason)
	m.log.Warn("plugin does not answer", "reason", reason, "next_try_in", pause)
	m.sup.record("plugin.failed", m.entry.Name, false, map[string]any{"reason": clip(reason, 500)})
	return pause
}

// watch keeps a process serving until ctx ends. p is the one that was started first, or
// nil where the first start failed; then the next try is after pause.
func (m *managed) watch(ctx context.Context, p *process, pause time.Duration) {
	defer close(m.done)
	for {
		if p != nil {
			select {
			case <-p.running.Exited():
				p.kill()
				pause = m.fail("Its process ended.")
			case <-ctx.Done():
				return
			}
		}
		if m.sup.d.Sleep(ctx, pause) != nil {
			return
		}
		var err error
		if p, err = m.restart(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			pause = m.fail(err.Error())
		}
	}
}

// restart starts the process again and takes it in.
func (m *managed) restart(ctx context.Context) (*process, error) {
	p, admitted, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	if err = ctx.Err(); err == nil {
		err = m.sup.restarted(m, p, admitted)
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	m.mu.Lock()
	m.restarts++
	m.mu.Unlock()
	return p, nil
}

// lease takes the process for one call, or says who to ask instead.
func (m *managed) lease() (p *process, next *managed, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.successor != nil:
		return nil, m.successor, nil
	case m.proc == nil || m.retired:
		return nil, nil, tool.Unavailable(m.entry.Name, m.reason)
	}
	m.inflight++
	return m.proc, nil, nil
}

func (m *managed) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inflight--
	if m.retired && m.inflight == 0 {
		close(m.idle)
	}
}

// Call implements tool.Caller.
func (m *managed) Call(ctx context.Context, in tool.CallIn) (tool.CallOut, error) {
	slot := m.slots[min(max(in.Scope.Depth, 0), tool.MaxDepth)]
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
		return tool.CallOut{}, ctx.Err()
	}
	p, next, err := m.lease()
	if err != nil {
		return tool.CallOut{}, err
	}
	if next != nil {
		return next.Call(ctx, in)
	}
	defer m.release()
	return p.call(ctx, in)
}

// Available implements tool.Caller.
func (m *managed) Available() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.successor != nil {
		return m.successor.Available()
	}
	return m.proc != nil && !m.retired
}

// retire ends the process once nothing is in flight, at the latest after drainLimit. New
// calls go to successor, which may be nil.
func (m *managed) retire(successor *managed) {
	m.mu.Lock()
	if m.retired {
		m.mu.Unlock()
		return
	}
	m.retired, m.successor = true, successor
	if m.inflight == 0 {
		close(m.idle)
	}
	p := m.proc
	m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
	limit := time.NewTimer(m.sup.d.Drain)
	defer limit.Stop()
	select {
	case <-m.idle:
	case <-limit.C:
		m.log.Warn("plugin ended with calls in flight")
	}
	if p != nil {
		p.kill()
	}
}

// describe is the plugin as lists show it.
func (m *managed) describe() core.Plugin {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := core.Plugin{Name: m.entry.Name, Kind: core.PluginKind(schemas.ManifestKindSkill), Sha256: m.entry.Sha256, Launcher: m.sup.d.Launcher.Name(),
		Status: m.status, StatusReason: m.reason, Restarts: m.restarts, Tools: []string{}}
	if m.admitted != nil {
		out.Kind, out.Version, out.ManifestDigest = core.PluginKind(m.admitted.manifest.Kind), m.admitted.manifest.Version, m.admitted.digest
		for _, doc := range m.admitted.manifest.Tools {
			out.Tools = append(out.Tools, doc.Name)
		}
	}
	if m.proc != nil {
		pid := m.proc.running.Pid()
		out.Pid = &pid
	}
	return out
}
