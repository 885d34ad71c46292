package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/schemas"
)

func described(t *testing.T) map[string]any {
	t.Helper()
	raw, err := OpenAPI("https://sallyport.example/")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// at follows a JSON pointer; nil when it leads nowhere.
func at(doc any, pointer string) any {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = m[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
	}
	return doc
}

func visit(node any, path string, f func(path string, m map[string]any)) {
	switch n := node.(type) {
	case map[string]any:
		f(path, n)
		for k, v := range n {
			visit(v, path+"/"+strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1"), f)
		}
	case []any:
		for i, v := range n {
			visit(v, fmt.Sprintf("%s/%d", path, i), f)
		}
	}
}

// resolved follows a reference inside the document.
func resolved(doc map[string]any, v any) map[string]any {
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		m, _ = at(doc, strings.TrimPrefix(ref, "#")).(map[string]any)
	}
	return m
}

func TestOpenAPIIsSelfContained(t *testing.T) {
	doc := described(t)
	if doc["openapi"] != "3.1.0" || at(doc, "/info/version") != apiVersion {
		t.Errorf("openapi %v, version %v", doc["openapi"], at(doc, "/info/version"))
	}
	if server := doc["servers"].([]any)[0].(map[string]any)["url"]; server != "https://sallyport.example" {
		t.Errorf("server %v", server)
	}
	visit(doc, "", func(path string, m map[string]any) {
		if ref, ok := m["$ref"].(string); ok && (!strings.HasPrefix(ref, "#/") || at(doc, ref[1:]) == nil) {
			t.Errorf("%s: reference %s leads nowhere", path, ref)
		}
		if _, ok := m["x-extends"]; ok {
			t.Errorf("%s: x-extends is left over", path)
		}
		if _, isEnum := m["enum"].([]any); isEnum && m["type"] == nil && !strings.HasSuffix(path, "/properties") {
			t.Errorf("%s: an enum without a type makes clients guess", path)
		}
	})
}

func TestOpenAPIOperations(t *testing.T) {
	doc := described(t)
	components := at(doc, "/components/schemas").(map[string]any)
	check := func(where string, media map[string]any) {
		t.Helper()
		for kind, v := range media {
			m := v.(map[string]any)
			if m["example"] == nil {
				t.Errorf("%s: %s has no example", where, kind)
				continue
			}
			schema, err := json.Marshal(m["schema"])
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compileComponent("example", schema, components)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			example, err := json.Marshal(m["example"])
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(example); err != nil {
				t.Errorf("%s: the example does not fit: %v", where, err)
			}
		}
	}
	for path, methods := range doc["paths"].(map[string]any) {
		for method, v := range methods.(map[string]any) {
			op := v.(map[string]any)
			where := strings.ToUpper(method) + " " + path
			for _, field := range []string{"operationId", "summary", "description", "tags", "security", "responses"} {
				if op[field] == nil {
					t.Errorf("%s: %s is missing", where, field)
				}
			}
			if body := resolved(doc, op["requestBody"]); body != nil {
				check(where+" body", body["content"].(map[string]any))
			}
			problems := 0
			for status, r := range op["responses"].(map[string]any) {
				response := resolved(doc, r)
				content, _ := response["content"].(map[string]any)
				check(where+" "+status, content)
				if content["application/problem+json"] != nil {
					problems++
				}
			}
			if problems == 0 {
				t.Errorf("%s: no problem is described", where)
			}
			security := op["security"].([]any)
			if strings.HasPrefix(path, "/api/") && len(security) == 0 && !slices.Contains([]string{"getHealth", "getConfig"}, op["operationId"].(string)) {
				t.Errorf("%s is open to everybody", where)
			}
		}
	}
}

// TestSpecifiedEndpoints lists what the service specification demands, by hand.
func TestSpecifiedEndpoints(t *testing.T) {
	doc := described(t)
	for _, endpoint := range []string{"get /api/health", "get /api/config", "get /api/me", "get /api/runs", "post /api/runs", "get /api/runs/{id}", "post /api/runs/{id}/approve",
		"post /api/runs/{id}/reject", "get /api/assets", "get /api/actions", "get /api/connectors", "post /api/connectors/{provider}/oauth/start", "post /api/connectors/{provider}/snapshot",
		"post /api/agent/message", "get /api/usage", "get /api/audit-logs"} {
		method, path, _ := strings.Cut(endpoint, " ")
		op, _ := doc["paths"].(map[string]any)[path].(map[string]any)
		described, _ := op[method].(map[string]any)
		if described == nil {
			t.Errorf("%s is missing", endpoint)
			continue
		}
		if at(described, "/responses/200") == nil {
			t.Errorf("%s describes no 200", endpoint)
		}
	}
	for provider, want := range map[string][]any{
		"/api/connectors/{provider}/oauth/start": {"google_search_console", "google_analytics", "google_ads"},
		"/api/connectors/{provider}/snapshot":    {"google_search_console", "google_analytics", "google_ads", "meta_ads", "buffer"},
	} {
		op := doc["paths"].(map[string]any)[provider].(map[string]any)["post"].(map[string]any)
		first := resolved(doc, op["parameters"].([]any)[0])
		if got := at(first, "/schema/enum"); !slices.Equal(got.([]any), want) {
			t.Errorf("%s: providers %v", provider, got)
		}
		if op["requestBody"] != nil {
			t.Errorf("%s declares a body", provider)
		}
	}
}

func TestDecidedRunIsARunAndMore(t *testing.T) {
	doc := described(t)
	run, err := schemas.Resource("run")
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(run.JSON(), &plain); err != nil {
		t.Fatal(err)
	}
	decided := at(doc, "/components/schemas/DecidedRun").(map[string]any)
	for name := range plain["properties"].(map[string]any) {
		if at(decided, "/properties/"+name) == nil {
			t.Errorf("field %s is lost", name)
		}
	}
	if at(decided, "/properties/decided") == nil || len(decided["required"].([]any)) != len(plain["required"].([]any))+1 {
		t.Errorf("required %v", decided["required"])
	}
}
