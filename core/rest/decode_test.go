package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

func TestBodies(t *testing.T) {
	ops, err := loadOperations()
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)
	for name, c := range map[string]struct {
		op, kind, body string
		code, pointer  string // code empty: taken
	}{
		"good":                     {"createRun", "application/json", `{"goal":"x"}`, "", ""},
		"with charset":             {"createRun", "application/json; charset=utf-8", `{"goal":"x"}`, "", ""},
		"empty where optional":     {"approveRun", "", "", "", ""},
		"spaces where optional":    {"approveRun", "", " \n", "", ""},
		"object where none":        {"cancelRun", "", "{}", "", ""},
		"empty where needed":       {"createRun", "application/json", "", "body_missing", ""},
		"something where none":     {"cancelRun", "application/json", `{"x":1}`, "body_unexpected", ""},
		"form":                     {"createRun", "application/x-www-form-urlencoded", "goal=x", "unsupported_media_type", ""},
		"text that is JSON":        {"createRun", "text/plain", `{"goal":"x"}`, "unsupported_media_type", ""},
		"no type":                  {"createRun", "", `{"goal":"x"}`, "unsupported_media_type", ""},
		"not JSON":                 {"createRun", "application/json", `{goal:x}`, "malformed_json", ""},
		"cut off":                  {"createRun", "application/json", `{"goal":"x"`, "malformed_json", ""},
		"two values":               {"createRun", "application/json", `{"goal":"x"}{}`, "malformed_json", ""},
		"duplicate key":            {"createRun", "application/json", `{"goal":"x","goal":"y"}`, "duplicate_key", "/goal"},
		"escaped duplicate":        {"createRun", "application/json", `{"goal":"x","\u0067oal":"y"}`, "duplicate_key", "/goal"},
		"nested duplicate":         {"editAction", "application/json", `{"input":{"a":{"b":1,"b":2}}}`, "duplicate_key", "/input/a/b"},
		"duplicate in array":       {"editAction", "application/json", `{"input":{"a":[1,{"b":1,"b":2}]}}`, "duplicate_key", "/input/a/1/b"},
		"too deep":                 {"editAction", "application/json", `{"input":{"a":` + deep + `}}`, "too_deep", ""},
		"unknown field":            {"createRun", "application/json", `{"goal":"x","approved":true}`, "invalid_body", "/approved"},
		"mass assignment":          {"createRun", "application/json", `{"goal":"x","status":"approved","createdBy":{}}`, "invalid_body", "/createdBy"},
		"another case":             {"createRun", "application/json", `{"Goal":"x","goal":"y"}`, "invalid_body", "/Goal"},
		"missing field":            {"createRun", "application/json", `{"projectId":"p"}`, "invalid_body", "/goal"},
		"wrong type":               {"createRun", "application/json", `{"goal":7}`, "invalid_body", "/goal"},
		"array":                    {"createRun", "application/json", `[]`, "invalid_body", ""},
		"null":                     {"createRun", "application/json", `null`, "invalid_body", ""},
		"bad digest":               {"approveRun", "application/json", `{"expectedDigest":"ABC"}`, "invalid_body", "/expectedDigest"},
		"unknown scope":            {"createKey", "application/json", `{"name":"k","kind":"agent","scopes":["root"]}`, "invalid_body", "/scopes/0"},
		"slash in an unknown name": {"createRun", "application/json", `{"goal":"x","a/b":1}`, "invalid_body", "/a~1b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			err := ops[c.op].checkBody(r, []byte(c.body))
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e := core.AsError(err)
			if err == nil || e.Code != c.code {
				t.Fatalf("%v, want %s", err, c.code)
			}
			if c.pointer != "" && (len(e.Fields) == 0 || e.Fields[0].Pointer != c.pointer) {
				t.Errorf("fields %+v, want %s", e.Fields, c.pointer)
			}
		})
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[{"a":1,"a":2}]`, `{"a":{"b":[null,true,1e9]}} x`, `"\ud800"`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := checkJSON(body); err != nil && core.AsError(err).Kind != core.KindMalformed {
			t.Errorf("%q: %v", body, err)
		}
	})
}

func TestNamedDigest(t *testing.T) {
	one, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for name, c := range map[string]struct {
		header string
		body   *string
		want   string
		bad    bool
	}{
		"none":              {"", nil, "", false},
		"tag of a reply":    {`"` + one + `.0123456789ab"`, nil, one, false},
		"plain digest":      {`"` + one + `"`, nil, one, false},
		"any":               {"*", nil, "", false},
		"body":              {"", &one, one, false},
		"both the same":     {`"` + one + `.x"`, &one, one, false},
		"both, and differ":  {`"` + one + `"`, &other, "", true},
		"weak":              {`W/"` + one + `"`, nil, "", true},
		"without quotes":    {one, nil, "", true},
		"more than one tag": {`"a", "b"`, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			if c.header != "" {
				r.Header.Set("If-Match", c.header)
			}
			got, err := digestOf(r, c.body)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestPreferences(t *testing.T) {
	for header, c := range map[string]struct {
		seconds int
		asked   bool
		bad     bool
	}{
		"":                        {},
		"return=minimal":          {},
		"wait=5":                  {5, true, false},
		"return=minimal, Wait=7":  {7, true, false},
		"respond-async; wait=600": {60, true, false},
		"wait=-1":                 {0, false, true},
		"wait=soon":               {0, false, true},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if header != "" {
			r.Header.Set("Prefer", header)
		}
		wait, asked, err := waitOf(r)
		if int(wait.Seconds()) != c.seconds || asked != c.asked || (err != nil) != c.bad {
			t.Errorf("%q: %v, %v, %v", header, wait, asked, err)
		}
	}
}
