package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

const csvType = "text/csv; charset=utf-8"

func TestDatasets(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	table := "week,visits\n2026-W46,\"1,2\"\n2026-W47,140\n"
	made := s.call("POST", "/api/datasets?name="+url.QueryEscape("weekly numbers"), owner, table, "Content-Type", csvType)
	d := into[core.Dataset](made)
	if d.Name != "weekly numbers" || d.Rows != 2 || fmt.Sprint(d.Columns) != "[week visits]" || d.Bytes != len(table) || made.header.Get("Location") != testBase+"/api/datasets/"+d.ID {
		t.Errorf("%+v, %v", d, made.header)
	}
	rows := strings.TrimSpace(string(s.call("GET", "/api/datasets/"+d.ID+"/rows", owner, "").want(200).body))
	if rows != `{"rows":[{"visits":"1,2","week":"2026-W46"},{"visits":"140","week":"2026-W47"}]}` {
		t.Errorf("rows %s", rows)
	}
	fromJSON := into[core.Dataset](s.call("POST", "/api/datasets?name=j", owner, `[{"a":1},{"b":{"c":[true]}}]`))
	if got := into[map[string][]map[string]any](s.call("GET", "/api/datasets/"+fromJSON.ID+"/rows", owner, ""))["rows"]; len(got) != 2 || fmt.Sprint(got) != "[map[a:1] map[b:map[c:[true]]]]" {
		t.Errorf("rows %v", got)
	}
	empty := into[core.Dataset](s.call("POST", "/api/datasets?name=e", owner, "only,names\n", "Content-Type", csvType))
	if got := strings.TrimSpace(string(s.call("GET", "/api/datasets/"+empty.ID+"/rows", owner, "").want(200).body)); got != `{"rows":[]}` {
		t.Errorf("rows %s", got)
	}
	list := into[struct{ Datasets []core.Dataset }](s.call("GET", "/api/datasets?limit=2", owner, ""))
	if len(list.Datasets) != 2 || list.Datasets[0].ID != empty.ID || list.Datasets[1].ID != fromJSON.ID {
		t.Errorf("%+v", list)
	}
	stranger := s.stranger()
	for _, path := range []string{"/api/datasets/" + d.ID, "/api/datasets/" + d.ID + "/rows"} {
		s.call("GET", path, stranger, "").problem(404, "not_found")
	}
	s.call("DELETE", "/api/datasets/"+d.ID, stranger, "").problem(404, "not_found")
	s.call("DELETE", "/api/datasets/"+d.ID, s.key(core.APIKeyKindAgent), "").problem(403, "person_required")
	if a := s.call("DELETE", "/api/datasets/"+d.ID, owner, ""); a.status != http.StatusNoContent {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.call("GET", "/api/datasets/"+d.ID, owner, "").problem(404, "not_found")
}

func TestDatasetRefusals(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	for _, c := range []struct {
		path, kind, body string
		status           int
		code             string
	}{
		{"/api/datasets?name=x", "text/tab-separated-values", "a\tb\n", 415, "unsupported_media_type"},
		{"/api/datasets?name=x", "application/json", `[{"a":1,"a":2}]`, 400, "duplicate_key"},
		{"/api/datasets?name=x", "application/json", `[1]`, 422, "invalid"},
		{"/api/datasets?name=x", "text/csv", "a,b\n1\n", 400, "malformed"},
		{"/api/datasets?name=x", "text/csv", "a,a\n", 422, "invalid"},
		{"/api/datasets?name=x", "text/csv", "", 400, "body_missing"},
		{"/api/datasets", "text/csv", "a\n1\n", 422, "invalid"},
		{"/api/datasets?name=", "text/csv", "a\n1\n", 422, "invalid_parameter"},
		{"/api/datasets?name=x&kind=y", "text/csv", "a\n1\n", 422, "invalid_parameter"},
	} {
		s.call("POST", c.path, owner, c.body, "Content-Type", c.kind).problem(c.status, c.code)
	}
	s.call("POST", "/api/datasets?name=x", owner, "a\n1\n", "Content-Type", "text/csv", "Content-Encoding", "gzip").problem(415, "unsupported_encoding")
	duplicate := s.call("POST", "/api/datasets?name=x", owner, `[{"a":1},{"b/c":[{"d":1,"d":2}]}]`).problem(400, "duplicate_key")
	if len(duplicate.Errors) != 1 || duplicate.Errors[0].Pointer != "/1/b~1c/0/d" {
		t.Errorf("%+v", duplicate.Errors)
	}
	viewer := s.token("ada@example.com", core.ScopeRunsRead)
	s.call("POST", "/api/datasets?name=x", viewer, "a\n1\n", "Content-Type", "text/csv").problem(403, "missing_scope")
}

// TestDatasetSize checks that an upload may have 20 MiB and nothing else more than one.
func TestDatasetSize(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	var large strings.Builder
	large.WriteString("name,text\n")
	line := strings.Repeat("x", 1000)
	for i := range 3000 {
		fmt.Fprintf(&large, "%d,%s\n", i, line)
	}
	d := into[core.Dataset](s.call("POST", "/api/datasets?name=large", owner, large.String(), "Content-Type", "text/csv"))
	var got struct{ Rows []struct{ Name string } }
	must(t, json.Unmarshal(s.call("GET", "/api/datasets/"+d.ID+"/rows", owner, "").want(200).body, &got))
	if len(got.Rows) != 3000 || got.Rows[2999].Name != "2999" {
		t.Errorf("%d rows", len(got.Rows))
	}
	s.call("POST", "/api/datasets?name=x", owner, strings.Repeat("x", 20<<20+1), "Content-Type", "text/csv").problem(413, "body_too_large")
	s.call("POST", "/api/runs", owner, `{"goal":"`+large.String()[:2<<20]+`"}`).problem(413, "body_too_large")
}
