package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// checked is one address with what the host found when it fetched it itself.
type checked struct {
	Path        string    `json:"path"`
	URL         string    `json:"url"`
	Purpose     string    `json:"purpose"`
	ContentType string    `json:"contentType"`
	Live        bool      `json:"live"`
	SHA256      *string   `json:"sha256"` // null for documents made at each request
	Bytes       int       `json:"bytes"`
	CheckedAt   time.Time `json:"checkedAt"`
	OK          bool      `json:"ok"`
	Detail      string    `json:"detail"`
}

// status lists every address. It fetches all of them anew, so that the answer is about
// now.
func (s *site) status(f *files) *file {
	list := s.check(f)
	out := newFile(typeJSON, "Discovery status", mustJSON(object{
		"ok":             !slices.ContainsFunc(list, func(c checked) bool { return !c.OK }),
		"baseUrl":        s.deps.BaseURL,
		"version":        s.deps.Version,
		"generatedAt":    f.builtAt,
		"registryDigest": f.digest,
		"toolCount":      len(f.tools),
		"addresses":      list,
	}))
	out.live = true
	return out
}

// check fetches each address in memory.
func (s *site) check(f *files) []checked {
	at := s.deps.Clock.Now()
	list := []checked{}
	for _, path := range Paths() {
		c := checked{Path: path, URL: s.deps.BaseURL + path, CheckedAt: at, OK: true, Detail: "served"}
		switch path {
		case PathStatus: // it would have to contain itself
			c.Purpose, c.ContentType, c.Live = "Discovery status", typeJSON, true
		case PathAgentStatus:
			c.Purpose, c.ContentType, c.Live = "Agent status", typeJSON, true
		default:
			one := f.byPath[path]
			c.Purpose, c.ContentType, c.SHA256, c.Bytes = one.purpose, one.contentType, &one.digest, len(one.body)
			if err := s.fetch(path, one, f.tools); err != nil {
				c.OK, c.Detail = false, err.Error()
			}
		}
		list = append(list, c)
	}
	return list
}

// fetch asks the handler for one file as a client would, and looks whether it says what
// it should.
func (s *site) fetch(path string, want *file, tools []string) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	w := &memory{header: http.Header{}, status: http.StatusOK}
	s.ServeHTTP(w, r)
	switch {
	case w.status != http.StatusOK:
		return fmt.Errorf("status %d", w.status)
	case !bytes.Equal(w.Bytes(), want.body):
		return fmt.Errorf("a newer version is in force")
	case strings.Contains(want.contentType, "json") && !json.Valid(want.body):
		return fmt.Errorf("is not JSON")
	case want.contentType == typeText && bytes.Contains(want.body, []byte("<no value>")):
		return fmt.Errorf("has a gap")
	}
	if path == PathLLMs {
		for _, name := range tools {
			if !bytes.Contains(want.body, []byte("`"+name+"`")) {
				return fmt.Errorf("the tool %s is missing", name)
			}
		}
	}
	return nil
}

// memory is a response kept in memory.
type memory struct {
	bytes.Buffer
	header http.Header
	status int
}

func (m *memory) Header() http.Header    { return m.header }
func (m *memory) WriteHeader(status int) { m.status = status }

// agentStatus tells what works now. It is public, so that it names no process, digest or
// cause.
func (s *site) agentStatus(ctx context.Context, f *files) *file {
	st := s.deps.Status(ctx)
	plugins := []object{}
	up := 0
	for _, p := range st.Plugins {
		if p.Status == core.PluginStatusRunning {
			up++
		}
		plugins = append(plugins, object{"name": p.Name, "kind": p.Kind, "version": p.Version, "status": p.Status, "tools": len(p.Tools)})
	}
	state := "ok"
	if up < len(st.Plugins) {
		state = "degraded"
	}
	operators := s.deps.Registry.Snapshot().Operators()
	if operators == nil {
		operators = []core.Operator{}
	}
	out := newFile(typeJSON, "Agent status", mustJSON(object{
		"status":           state,
		"version":          s.deps.Version,
		"startedAt":        s.started,
		"protocolVersions": versions,
		"sandbox":          st.Sandbox,
		"toolCount":        len(f.tools),
		"registryDigest":   f.digest,
		"operators":        operators,
		"plugins":          plugins,
		"approval":         object{"required": true, "where": s.deps.BaseURL + "/review/{runId}", "agentKeys": "cannot approve"},
		"links":            object{"mcp": s.deps.BaseURL + "/mcp", "guide": s.deps.BaseURL + PathAgents, "discovery": s.deps.BaseURL + PathStatus},
	}))
	out.live = true
	return out
}

func mustJSON(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // only our own types come here
		panic(err)
	}
	return append(b, '\n')
}
