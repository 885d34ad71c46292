package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
)

// answered is what came back.
type answered struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// call sends a request and checks whatever comes back against openapi.json: the status
// must be described, and the body must fit what is described for it.
func (s *stack) call(method, path, credential, body string, headers ...string) *answered {
	s.t.Helper()
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, testBase+path, reader)
	r.RemoteAddr = "192.0.2.10:4711"
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := &answered{t: s.t, status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	a.check(method, r.URL.Path)
	return a
}

func (a *answered) want(status int) *answered {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// problem decodes an error and checks its code.
func (a *answered) problem(status int, code string) core.Problem {
	a.t.Helper()
	a.want(status)
	var p core.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || p.Code != code || p.Status != status || a.header.Get("Content-Type") != "application/problem+json" {
		a.t.Fatalf("problem %s, want %s", a.body, code)
	}
	if p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id") || !strings.HasPrefix(p.Type, testBase+"/problems/") {
		a.t.Errorf("%+v", p)
	}
	return p
}

func into[T any](a *answered) T {
	a.t.Helper()
	a.want(http.StatusOK)
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%s: %v", a.body, err)
	}
	return v
}

type media struct {
	kind   string
	schema *schemas.Schema // nil for text
}

type contractRow struct {
	method  string
	path    *regexp.Regexp
	params  int
	replies map[int]*media // nil value: no body
}

// contract is openapi.json, compiled for checking replies.
var contract = sync.OnceValues(func() ([]contractRow, error) {
	raw, err := bundledText()
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	components := at(doc, "/components/schemas").(map[string]any)
	var rows []contractRow
	compiled := map[string]*schemas.Schema{}
	for path, methods := range doc["paths"].(map[string]any) {
		pattern := "^" + regexp.MustCompile(`<[^>]+>`).ReplaceAllString(regexp.QuoteMeta(strings.NewReplacer("{", "<", "}", ">").Replace(path)), "[^/]+") + "$"
		for method, v := range methods.(map[string]any) {
			row := contractRow{method: strings.ToUpper(method), path: regexp.MustCompile(pattern), params: strings.Count(path, "{"), replies: map[int]*media{}}
			for status, r := range v.(map[string]any)["responses"].(map[string]any) {
				var code int
				if err := json.Unmarshal([]byte(status), &code); err != nil {
					return nil, err
				}
				row.replies[code] = nil
				content, _ := resolved(doc, r)["content"].(map[string]any)
				for kind, m := range content {
					row.replies[code] = &media{kind: kind}
					if !strings.Contains(kind, "json") {
						continue
					}
					schema, err := json.Marshal(m.(map[string]any)["schema"])
					if err != nil {
						return nil, err
					}
					if compiled[string(schema)] == nil {
						if compiled[string(schema)], err = compileComponent("reply", schema, components); err != nil {
							return nil, err
						}
					}
					row.replies[code].schema = compiled[string(schema)]
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
})

func (a *answered) check(method, path string) {
	a.t.Helper()
	rows, err := contract()
	if err != nil {
		a.t.Fatal(err)
	}
	var best *contractRow
	for i := range rows {
		if rows[i].method == method && rows[i].path.MatchString(path) && (best == nil || rows[i].params < best.params) {
			best = &rows[i]
		}
	}
	if best == nil {
		return // addresses outside the contract are tested by hand
	}
	m, known := best.replies[a.status]
	if !known {
		a.t.Errorf("%s %s: status %d is not described: %s", method, path, a.status, a.body)
		return
	}
	if m == nil {
		if len(a.body) > 0 {
			a.t.Errorf("%s %s: a body where none is described: %s", method, path, a.body)
		}
		return
	}
	if kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); kind != m.kind {
		a.t.Errorf("%s %s: %d is %q, described as %q", method, path, a.status, kind, m.kind)
	}
	if m.schema != nil {
		if err := m.schema.Validate(bytes.TrimSpace(a.body)); err != nil {
			a.t.Errorf("%s %s: %d does not fit openapi.json: %v\n%s", method, path, a.status, err, a.body)
		}
	}
}
