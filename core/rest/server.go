package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/dataset"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/core/usage"
)

// Plugins is the supervisor as REST needs it.
type Plugins interface {
	List() []core.Plugin
	Reload(ctx context.Context, name string) error
}

// Check is one condition of being ready.
type Check struct {
	Name string
	Do   func(ctx context.Context) error
}

// Deps is what the interface stands on. All fields but the last block are needed.
type Deps struct {
	Auth       *auth.Service
	Runs       *run.Service
	Approval   *approval.Service
	Connectors *connector.Service
	Dispatcher *tool.Dispatcher
	Registry   *tool.Registry
	Audit      *audit.Log
	Usage      *usage.Meter
	Events     *event.Bus
	Datasets   *dataset.Service
	Replay     *replay.Store
	Plugins    Plugins
	Clock      core.Clock
	Log        *slog.Logger
	BaseURL    string // public address, without a slash at the end
	Version    string

	Hooks          *event.Hooks // nil: the installation delivers no events
	Ready          []Check
	Metrics        *prometheus.Registry // its own when nil
	AllowedHosts   []string             // further Host values
	AllowedOrigins []string             // further origins that browsers may call from
	PerMinute      int                  // requests per minute and principal; DefaultPerMinute when 0
}

// server is the handler's state.
type server struct {
	Deps
	ops     map[string]*operation
	hosts   map[string]bool
	origins map[string]bool
	cross   *http.CrossOriginProtection
	limits  *limiter
	meters  *meters
}

// handler serves one operation. An error becomes a problem document.
type handler func(w http.ResponseWriter, r *http.Request) error

// route ties an address to an operation of openapi.json.
type route struct {
	address   string // METHOD /path, as in openapi.json
	operation string
	serve     handler
}

// New builds the handler and notes the public address, so that tokens made on the
// command line are for it. It fails when the routes and openapi.json differ.
func New(d Deps) (http.Handler, error) {
	base, err := url.Parse(d.BaseURL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("rest: base URL %q names no host", d.BaseURL)
	}
	d.BaseURL = strings.TrimSuffix(d.BaseURL, "/")
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if err := d.Auth.Announce(context.Background()); err != nil {
		return nil, fmt.Errorf("rest: note the public address: %w", err)
	}
	s := &server{Deps: d, hosts: map[string]bool{base.Host: true}, origins: map[string]bool{base.Scheme + "://" + base.Host: true}, cross: http.NewCrossOriginProtection()}
	for _, h := range d.AllowedHosts {
		s.hosts[h] = true
	}
	for _, o := range d.AllowedOrigins {
		s.origins[o] = true
	}
	for o := range s.origins {
		if err := s.cross.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("rest: allowed origin: %w", err)
		}
	}
	s.limits = newLimiter(d.Clock, d.PerMinute)
	if s.meters, err = newMeters(d.Metrics); err != nil {
		return nil, err
	}
	if s.ops, err = loadOperations(); err != nil {
		return nil, err
	}
	return s.router()
}

func (s *server) routes() []route {
	var all []route
	for _, noun := range []func() []route{s.healthRoutes, s.identityRoutes, s.keyRoutes, s.userRoutes, s.runRoutes, s.decisionRoutes, s.eventRoutes, s.actionRoutes,
		s.assetRoutes, s.evidenceRoutes, s.connectorRoutes, s.agentRoutes, s.usageRoutes, s.auditRoutes, s.skillRoutes, s.pluginRoutes, s.datasetRoutes, s.webhookRoutes} {
		all = append(all, noun()...)
	}
	return all
}

func (s *server) router() (http.Handler, error) {
	mux := chi.NewRouter()
	mux.Use(s.begin, s.catchPanic, s.checkHost, s.checkOrigin, middleware.GetHead)
	mux.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, core.Errf(core.KindNotFound, "no_such_address", "There is nothing at this address. %s/openapi.json lists what there is.", s.BaseURL))
	})
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		var takes []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if mux.Match(chi.NewRouteContext(), method, r.URL.Path) {
				takes = append(takes, method)
			}
		}
		s.refuseMethod(w, r, takes)
	})
	served := map[string]bool{}
	for _, rt := range s.routes() {
		op := s.ops[rt.operation]
		if op == nil || rt.address != op.method+" "+op.path || served[rt.operation] {
			return nil, fmt.Errorf("rest: route %q and operation %q of openapi.json differ, or stand twice", rt.address, rt.operation)
		}
		served[rt.operation] = true
		mux.Method(op.method, op.path, s.serve(op, rt.serve))
	}
	for id := range s.ops {
		if !served[id] {
			return nil, fmt.Errorf("rest: operation %q of openapi.json is not served", id)
		}
	}
	return mux, nil
}

// serve is what happens around every handler, in this order: who calls, how often,
// whether they may, what they sent, whether it was answered before.
func (s *server) serve(op *operation, next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := requestOf(r)
		rc.op = op
		if err := s.admit(w, r, op); err != nil {
			if op.page && core.IsKind(err, core.KindUnauthenticated) {
				s.goTo(w, "/login?next="+url.QueryEscape(r.URL.RequestURI()))
				return
			}
			s.fail(w, r, err)
			return
		}
		if err := s.check(w, r, op); err != nil {
			s.fail(w, r, err)
			return
		}
		if key := r.Header.Get(headerIdempotency); op.replayable && key != "" {
			s.once(w, r, key, next)
			return
		}
		if err := next(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// check reads what the caller sent and refuses what the operation does not take.
func (s *server) check(w http.ResponseWriter, r *http.Request, op *operation) error {
	if err := op.checkParameters(r); err != nil {
		return err
	}
	body, err := readBody(w, r, op.maxBody)
	if err != nil {
		return err
	}
	requestOf(r).body = body
	return op.checkBody(r, body)
}

// admit finds the principal, counts the request, and checks the operation's scope.
func (s *server) admit(w http.ResponseWriter, r *http.Request, op *operation) error {
	rc := requestOf(r)
	if op.public {
		return s.limits.take(w, "address "+rc.ip)
	}
	p, err := s.principal(r)
	if err != nil {
		if limited := s.limits.take(w, "address "+rc.ip); limited != nil {
			return limited
		}
		return err
	}
	rc.principal = p
	if err := s.limits.take(w, string(p.Kind)+" "+p.ID); err != nil {
		return err
	}
	if op.scope == "" || op.scope == core.ScopeActionsApprove && p.IsAgent() {
		return nil // the service answers agents with the address of the review page
	}
	return p.Require(op.scope)
}
