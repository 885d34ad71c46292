package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

func TestPages(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	var made []string
	for i := range 5 {
		made = append(made, into[core.Run](s.call("POST", "/api/runs", owner, fmt.Sprintf(`{"goal":"goal %d"}`, i))).ID)
	}
	slices.Reverse(made) // newest first
	var seen []string
	next := "/api/runs?limit=2"
	for range 4 {
		a := s.call("GET", next, owner, "")
		var page struct {
			Runs       []core.Run
			NextCursor string
		}
		must(t, json.Unmarshal(a.want(200).body, &page))
		for _, r := range page.Runs {
			seen = append(seen, r.ID)
		}
		link := a.header.Get("Link")
		if page.NextCursor == "" {
			if link != "" {
				t.Errorf("a link beyond the last page: %s", link)
			}
			break
		}
		address, ok := strings.CutSuffix(link, `>; rel="next"`)
		if !ok || !strings.HasPrefix(address, "<"+testBase+"/api/runs?") {
			t.Fatalf("link %q", link)
		}
		next = strings.TrimPrefix(address, "<"+testBase)
	}
	if !slices.Equal(seen, made) {
		t.Errorf("saw %v, made %v", seen, made)
	}
	for query, code := range map[string]string{"limit=0": "invalid_parameter", "limit=201": "invalid_parameter", "limit=x": "invalid_parameter", "limit=1&limit=2": "invalid_parameter",
		"status=done": "invalid_parameter", "since=yesterday": "invalid_parameter", "stauts=created": "invalid_parameter"} {
		s.call("GET", "/api/runs?"+query, owner, "").problem(422, code)
	}
	s.call("GET", "/api/runs?cursor=zzzz", owner, "").problem(400, "bad_cursor")
	s.call("GET", "/api/runs?since=2026-01-01T00:00:00%2B02:00&status=created", owner, "").want(200)
}

func TestPluginsOverREST(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	s.call("POST", "/api/plugins/marketing/reload", owner, "").want(200)
	s.call("POST", "/api/plugins/nothing/reload", owner, "").problem(404, "not_found")
	s.plugins.reload = func(string) error {
		return core.Errf(core.KindUnavailable, "plugin_unavailable", "It does not start; the old one serves on.")
	}
	s.call("POST", "/api/plugins/marketing/reload", owner, "").problem(503, "plugin_unavailable")
}

func TestProblemPages(t *testing.T) {
	s := newStack(t)
	for _, code := range ProblemCodes() {
		a := s.call("GET", "/problems/"+code, "", "").want(200)
		if !strings.Contains(string(a.body), explanations[code].Cure[:10]) {
			t.Errorf("%s: %s", code, a.body)
		}
	}
	s.call("GET", "/problems/some_other_code", "", "").want(200)
	s.call("GET", "/problems/%3Cscript%3E", "", "").want(404)
}

func TestReadiness(t *testing.T) {
	broken := true
	s := newStack(t, func(d *Deps) {
		d.Ready = []Check{{Name: "database", Do: func(context.Context) error {
			if broken {
				return core.Errf(core.KindUnavailable, "database_failed", "The database does not answer.")
			}
			return nil
		}}}
	})
	s.call("GET", "/readyz", "", "").want(503)
	s.call("GET", "/livez", "", "").want(200)
	broken = false
	s.call("GET", "/readyz", "", "").want(200)
}

func TestMetrics(t *testing.T) {
	s := newStack(t)
	s.call("GET", "/api/health", "", "").want(200)
	s.call("GET", "/metrics", s.key(core.APIKeyKindAgent), "").problem(403, "missing_scope")
	a := s.call("GET", "/metrics", s.owner(), "").want(http.StatusOK)
	if !strings.Contains(string(a.body), `sallyport_http_requests_total{operation="getHealth",status="200"} 1`) {
		t.Errorf("%.400s", a.body)
	}
}
