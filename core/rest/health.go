package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/dataset"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
)

func (s *server) healthRoutes() []route {
	return []route{
		{"GET /api/health", "getHealth", s.getHealth},
		{"GET /api/config", "getConfig", s.getConfig},
		{"GET /livez", "getLive", s.getHealth},
		{"GET /readyz", "getReady", s.getReady},
		{"GET /metrics", "getMetrics", s.getMetrics},
		{"GET /problems/{code}", "getProblem", s.getProblem},
	}
}

func (s *server) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{"status": "ok", "version": s.Version, "time": s.Clock.Now().UTC()})
}

// readyWithin bounds every check: a prober that waits long learns nothing.
const readyWithin = 2 * time.Second

func (s *server) getReady(w http.ResponseWriter, r *http.Request) error {
	type check struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	}
	ctx, stop := context.WithTimeout(r.Context(), readyWithin)
	defer stop()
	status, code := "ready", http.StatusOK
	checks := []check{}
	for _, c := range s.Ready {
		one := check{Name: c.Name, OK: true}
		if err := c.Do(ctx); err != nil {
			s.Log.Warn("not ready", "check", c.Name, "error", err)
			one.OK, one.Detail = false, core.AsError(err).Detail
			status, code = "unavailable", http.StatusServiceUnavailable
		}
		checks = append(checks, one)
	}
	writeJSON(w, code, "application/json", map[string]any{"status": status, "checks": checks})
	return nil
}

// getConfig is what a client has to know before it has a credential.
func (s *server) getConfig(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{
		"name": "Sallyport", "version": s.Version, "apiVersion": apiVersion, "baseUrl": s.BaseURL,
		"authMethods": []string{"jwt", "api_key", "session"},
		"sandbox":     map[string]any{"tier": "none", "detail": "none (unjailed)"},
		"limits": map[string]any{
			"bodyBytes": defaultMaxBody, "datasetBytes": dataset.MaxBytes, "listDefault": core.DefaultLimit, "listMax": core.MaxLimit,
			"waitSeconds": int(maxWait / time.Second), "requestsPerMinute": s.limits.perMinute, "idempotencyHours": int(replay.Keep / time.Hour),
		},
		"mcp":   map[string]any{"url": s.BaseURL + "/mcp", "protocol": "mcp/2025-03-26"},
		"links": map[string]any{"openapi": s.BaseURL + "/openapi.json", "llms": s.BaseURL + "/llms.txt"},
	})
}
