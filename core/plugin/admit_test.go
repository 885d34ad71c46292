package plugin

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/schemas"
)

func manifestWith(t *testing.T, change func(m map[string]any)) []byte {
	t.Helper()
	m := map[string]any{"name": "pp", "kind": "skill", "version": "1.0.0", "title": "P", "description": "P.", "protocol": 1, "needs": map[string]any{}, "tools": []any{fixtureTool("p_do", "read")}}
	change(m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func needing(t *testing.T, endpoint string) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal([]byte(endpoint), &e); err != nil {
		t.Fatal(err)
	}
	e["id"] = "e"
	return manifestWith(t, func(m map[string]any) { m["needs"] = map[string]any{"endpoints": []any{e}} })
}

func TestAdmission(t *testing.T) {
	entry := schemas.CatalogEntry{Name: "pp", Allow: schemas.Allow{Tools: []string{"p_*"}, Endpoints: []string{"*"}, Call: []string{"a_*"}}}
	tool := func(change func(doc map[string]any)) []byte {
		return manifestWith(t, func(m map[string]any) {
			doc := fixtureTool("p_do", "read")
			change(doc)
			m["tools"] = []any{doc}
		})
	}
	for name, c := range map[string]struct {
		raw  []byte
		says string // empty: admitted
	}{
		"plain":          {manifestWith(t, func(map[string]any) {}), ""},
		"other name":     {manifestWith(t, func(m map[string]any) { m["name"] = "qq" }), "calls itself qq"},
		"unknown field":  {manifestWith(t, func(m map[string]any) { m["extra"] = 1 }), "/extra"},
		"later protocol": {manifestWith(t, func(m map[string]any) { m["protocol"] = 2 }), "/protocol"},
		"foreign tool":   {tool(func(d map[string]any) { d["name"] = "q_do" }), "may not own the tool q_do"},
		"tool twice":     {manifestWith(t, func(m map[string]any) { m["tools"] = []any{fixtureTool("p_do", "read"), fixtureTool("p_do", "read")} }), "stands twice"},
		"operator alone": {manifestWith(t, func(m map[string]any) { m["kind"] = "operator" }), "wrong part"},
		"primary tool": {manifestWith(t, func(m map[string]any) {
			m["kind"] = "operator"
			m["operator"] = map[string]any{"primaryTool": "p_no", "title": "x"}
		}), "none of its tools"},
		"allowed call":    {manifestWith(t, func(m map[string]any) { m["needs"] = map[string]any{"tools": []string{"a_b", "a_*", "a_b*"}} }), ""},
		"wider call":      {manifestWith(t, func(m map[string]any) { m["needs"] = map[string]any{"tools": []string{"*"}} }), "needs to call *"},
		"read GET":        {needing(t, `{"class":"read","method":"GET","host":"api.example.com","path":"/x"}`), ""},
		"read DELETE":     {needing(t, `{"class":"read","method":"DELETE","host":"api.example.com"}`), "reads with DELETE"},
		"read POST":       {needing(t, `{"class":"read","method":"POST","host":"api.example.com"}`), "reads with POST"},
		"read POST told":  {needing(t, `{"class":"read","method":"POST","host":"api.example.com","readPost":true,"bodySchema":{"type":"object"}}`), ""},
		"write GET":       {needing(t, `{"class":"write","method":"GET","host":"api.example.com"}`), "writes with GET"},
		"web POST":        {needing(t, `{"class":"read","method":"POST","host":"$web","readPost":true,"bodySchema":{}}`), "open web"},
		"web signed":      {needing(t, `{"class":"read","method":"GET","host":"$web","signers":["bearer"]}`), "open web"},
		"wildcard host":   {needing(t, `{"class":"read","method":"GET","host":"*.example.com"}`), "one exact host name"},
		"host with port":  {needing(t, `{"class":"read","method":"GET","host":"a.example.com:80"}`), "one exact host name"},
		"address":         {needing(t, `{"class":"read","method":"GET","host":"10.0.0.1"}`), "one exact host name"},
		"short host":      {needing(t, `{"class":"read","method":"GET","host":"localhost"}`), "one exact host name"},
		"mail to anybody": {needing(t, `{"class":"write","transport":"smtp","host":"mail.example.com"}`), "to the host of the connection"},
		"remote schema": {tool(func(d map[string]any) {
			d["inputSchema"] = map[string]any{"type": "object", "$ref": "https://evil.example/x.json"}
		}), "leads out of the document"},
		"file schema": {tool(func(d map[string]any) {
			d["outputSchema"] = map[string]any{"type": "object", "$ref": "file:///etc/passwd"}
		}), "leads out of the document"},
		"no object":    {tool(func(d map[string]any) { d["inputSchema"] = map[string]any{"type": "string"} }), "not of type object"},
		"not a schema": {tool(func(d map[string]any) { d["inputSchema"] = map[string]any{"type": "object", "properties": 7} }), "p_do"},
		"doubling":     {tool(func(d map[string]any) { d["inputSchema"] = doubling(5) }), "expands to more than"},
		"recursion": {tool(func(d map[string]any) {
			d["inputSchema"] = map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"$ref": "#"}}}
		}), "deeper than"},
		"hidden doubling": {tool(func(d map[string]any) {
			s := doubling(5)
			s["properties"] = map[string]any{"$defs": map[string]any{"$ref": "#/$defs/d5"}}
			d["inputSchema"] = s
		}), "expands to more than"},
		"huge": {tool(func(d map[string]any) {
			d["inputSchema"] = map[string]any{"type": "object", "description": strings.Repeat("x", maxSchemaBytes)}
		}), "bytes"},
	} {
		started := time.Now()
		_, err := admit(c.raw, entry)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v; want it to say %q", name, err, c.says)
		}
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// doubling is a small schema whose references multiply.
func doubling(n int) map[string]any {
	defs := map[string]any{"d0": map[string]any{"type": "string"}}
	for i := range n {
		ref := map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", i)}
		defs[fmt.Sprintf("d%d", i+1)] = map[string]any{"allOf": []any{ref, ref, ref, ref, ref, ref, ref, ref}}
	}
	return map[string]any{"type": "object", "$defs": defs, "properties": map[string]any{"x": map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", n)}}}
}

// stopped is a clock that the test turns.
type stopped struct {
	mu  sync.Mutex
	now time.Time
}

func (s *stopped) Now() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

func TestWhatAPluginWritesIsBounded(t *testing.T) {
	var out strings.Builder
	clock := &stopped{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	l := newLineLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), clock)
	write := func(s string) {
		if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	write("plain \x1b[31mred\u202e")
	write(" line\r\n")
	write(`{"@level":"warn","@message":"hello\nlevel=ERROR msg=forged","call":"c-1","secret":"s"}` + "\n")
	write(strings.Repeat("z", maxLine+5000) + "\nnext\n")
	text := out.String()
	for _, want := range []string{`plain \\u001b[31mred\\u202e line\\u000d`, `level=WARN msg="hello\\u000alevel=ERROR msg=forged" call=c-1`, "cut=true", "msg=next"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not hold %s", want)
		}
	}
	if strings.Contains(text, "secret") || strings.Count(text, "z") > maxLine || strings.Count(text, "\n") != 4 {
		t.Errorf("the log holds more than it should: %d lines", strings.Count(text, "\n"))
	}
	out.Reset()
	for range 1000 {
		write("again\n")
	}
	if n := strings.Count(out.String(), "again"); n != linesPerSecond-4 {
		t.Errorf("%d lines passed in one second", n)
	}
	clock.now = clock.now.Add(time.Second)
	write("later\n")
	if !strings.Contains(out.String(), "lines_dropped=904") || !strings.Contains(out.String(), "later") {
		t.Errorf("after a second: %s", out.String()[max(0, out.Len()-300):])
	}
}
