package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sallyport-dev/sallyport/core"
)

// meters count requests by operation, so that labels stay few whatever callers send.
type meters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	serve    http.Handler
}

func newMeters(registry *prometheus.Registry) (*meters, error) {
	if registry == nil {
		registry = prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	m := &meters{
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sallyport_http_requests_total", Help: "Requests of the REST interface."}, []string{"operation", "status"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sallyport_http_request_seconds", Help: "Time to answer.", Buckets: prometheus.DefBuckets}, []string{"operation"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	m.serve = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m, nil
}

func (m *meters) observe(op *operation, _ string, status int, took time.Duration) {
	name := "none"
	if op != nil {
		name = op.id
	}
	if op == nil || op.id != "watchRun" { // a stream lasts as long as its reader likes
		m.seconds.WithLabelValues(name).Observe(took.Seconds())
	}
	m.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
}

// getMetrics answers callers that hold admin. Scrapers take an API key for that.
func (s *server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	if err := requestOf(r).principal.Require(core.ScopeAdmin); err != nil {
		return err
	}
	s.meters.serve.ServeHTTP(w, r)
	return nil
}
