package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

const base = "https://ops.example"

type still struct{}

func (still) Now() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }

// uncalled is a plugin process that no test here calls.
type uncalled struct{}

func (uncalled) Call(context.Context, tool.CallIn) (tool.CallOut, error) { panic("not called") }
func (uncalled) Available() bool                                         { return true }

func doc(name, description string) schemas.ToolDocument {
	o := schemas.Document{"type": "object"}
	return schemas.ToolDocument{Name: name, Title: name, Description: description, Effect: schemas.EffectDraft, InputSchema: o, OutputSchema: o}
}

func snapshot(t *testing.T, docs ...schemas.ToolDocument) *tool.Snapshot {
	t.Helper()
	m := schemas.Manifest{Name: "marketing", Title: "Marketing", Description: "Publishes nothing.\n## Injected <b>heading</b>", Kind: schemas.ManifestKindOperator, Version: "1.0.0", Protocol: 1, Tools: docs}
	if len(docs) > 0 {
		m.Operator = &schemas.OperatorInfo{PrimaryTool: docs[0].Name, Title: "Marketing"}
	}
	s, err := tool.NewSnapshot([]*tool.Plugin{{Manifest: m, Caller: uncalled{}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func launchSnapshot(t *testing.T) *tool.Snapshot {
	return snapshot(t,
		doc("mkt_diagnose_marketing", "Publishes nothing: answers a marketing goal."),
		doc("platform_get_users_after_build", "Publishes nothing: prepares a launch."),
		doc("mkt_continue_launch_loop", "Changes nothing: names the next action."))
}

type rig struct {
	*httptest.Server
	t        *testing.T
	registry *tool.Registry
	plugins  []core.Plugin
}

func newRig(t *testing.T, snap *tool.Snapshot) *rig {
	t.Helper()
	r := &rig{t: t, registry: tool.NewRegistry(), plugins: []core.Plugin{{Name: "marketing", Kind: core.PluginKindOperator, Version: "1.0.0", Status: core.PluginStatusRunning, Pid: new(4711), Sha256: "feedface", Tools: []string{"a", "b"}}}}
	r.registry.Swap(snap)
	h, err := New(Deps{
		Registry: r.registry,
		OpenAPI: func(base string) json.RawMessage {
			return json.RawMessage(`{"openapi":"3.1.0","info":{"title":"Sallyport","version":"0.1.0"},"servers":[{"url":"` + base + `"}],"paths":{}}`)
		},
		BaseURL: base, Version: "0.1.0", Clock: still{},
		Status: func(context.Context) Status { return Status{Sandbox: "none (unjailed)", Plugins: r.plugins} },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(h)
	t.Cleanup(r.Close)
	return r
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (r *rig) do(method, path string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, r.URL+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

func (r *rig) get(path string) string {
	r.t.Helper()
	a := r.do(http.MethodGet, path)
	if a.status != http.StatusOK {
		r.t.Fatalf("%s: status %d: %s", path, a.status, a.body)
	}
	return a.body
}

func (r *rig) json(path string) object {
	r.t.Helper()
	var v object
	if err := json.Unmarshal([]byte(r.get(path)), &v); err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
	return v
}

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// Every address is there, cacheable, open to other origins, and as the status says.
func TestEveryAddress(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	var status struct {
		OK        bool `json:"ok"`
		Addresses []checked
	}
	if err := json.Unmarshal([]byte(r.get(PathStatus)), &status); err != nil {
		t.Fatal(err)
	}
	if !status.OK {
		t.Errorf("self-check: %+v", status.Addresses)
	}
	var listed []string
	for _, c := range status.Addresses {
		listed = append(listed, c.Path)
		a := r.do(http.MethodGet, c.Path)
		if a.status != http.StatusOK || a.header.Get("Content-Type") != c.ContentType || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", c.Path, a.status, a.header)
		}
		if c.URL != base+c.Path || c.Purpose == "" || c.CheckedAt != (still{}).Now() {
			t.Errorf("entry %+v", c)
		}
		if a.header.Get("ETag") != `"`+digest(a.body)+`"` {
			t.Errorf("%s: ETag %s is not the digest", c.Path, a.header.Get("ETag"))
		}
		if c.Live != (c.SHA256 == nil) || (!c.Live && (*c.SHA256 != digest(a.body) || c.Bytes != len(a.body))) {
			t.Errorf("%s: digest in the status differs", c.Path)
		}
		if strings.Contains(c.ContentType, "json") && !json.Valid([]byte(a.body)) {
			t.Errorf("%s is not JSON", c.Path)
		}
		if again := r.do(http.MethodGet, c.Path, "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
			t.Errorf("%s: unchanged file sent again (%d)", c.Path, again.status)
		}
		if head := r.do(http.MethodHead, c.Path); head.status != http.StatusOK || head.body != "" || head.header.Get("ETag") != a.header.Get("ETag") {
			t.Errorf("HEAD %s: %d", c.Path, head.status)
		}
		if pre := r.do(http.MethodOptions, c.Path); pre.status != http.StatusNoContent {
			t.Errorf("OPTIONS %s: %d", c.Path, pre.status)
		}
		if post := r.do(http.MethodPost, c.Path); post.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", c.Path, post.status)
		}
	}
	if !slices.Equal(listed, Paths()) {
		t.Errorf("status lists %v", listed)
	}
	if a := r.do(http.MethodGet, "/.well-known/other"); a.status != http.StatusNotFound {
		t.Errorf("unknown path: %d", a.status)
	}
}

// Whatever names tools names those of the registry, before and after a swap.
func TestFilesAgreeWithTheRegistry(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	agree := func() {
		t.Helper()
		var want []string
		for _, e := range r.registry.Snapshot().Visible() {
			want = append(want, e.Doc.Name)
		}
		tools := r.json(PathMCP)["tools"].(object)
		var got []string
		for _, name := range tools["names"].([]any) {
			got = append(got, name.(string))
		}
		if !slices.Equal(got, want) || int(tools["count"].(float64)) != len(want) || tools["digest"] != r.registry.Snapshot().Digest() {
			t.Errorf("mcp.json names %v, the registry %v", got, want)
		}
		var inGuide []string
		for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`: ").FindAllStringSubmatch(r.get(PathLLMs), -1) {
			inGuide = append(inGuide, m[1])
		}
		slices.Sort(inGuide)
		if !slices.Equal(inGuide, want) {
			t.Errorf("llms.txt names %v, the registry %v", inGuide, want)
		}
		if n := r.json(PathAgentStatus)["toolCount"]; int(n.(float64)) != len(want) {
			t.Errorf("status/agent counts %v", n)
		}
	}
	agree()
	before := r.do(http.MethodGet, PathLLMs).header.Get("ETag")
	r.registry.Swap(snapshot(t, doc("sales_diagnose", "Sends nothing: answers a sales goal.")))
	agree()
	if r.do(http.MethodGet, PathLLMs).header.Get("ETag") == before {
		t.Error("the file did not change with the registry")
	}
	for _, path := range []string{PathLLMs, PathAgents, PathHookGuide} {
		if strings.Contains(r.get(path), "platform_get_users_after_build") {
			t.Errorf("%s tells to call a tool that is not there", path)
		}
	}
}

func TestGuidesStateTheContract(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	steps := []string{"whatChanged, recentCommits, changedFiles, routes, readme, targetCustomer and launchGoal", "--what-changed=",
		"Call platform_get_users_after_build", "agentGuide.userMessage and reviewUrl", "Wait.", "mkt_continue_launch_loop", "24 hours"}
	for _, path := range []string{PathAgents, PathHookGuide} {
		rest := r.get(path)
		if !strings.Contains(strings.ToLower(rest), "hard rule") || !strings.Contains(strings.ReplaceAll(rest, "\n", " "), "No publish, send, spend or other effect on the outside world happens before a person approved it at") {
			t.Errorf("%s lacks the hard rule", path)
		}
		rest = rest[strings.Index(rest, "1. Collect"):]
		for _, step := range steps {
			_, after, ok := strings.Cut(rest, step)
			if !ok {
				t.Fatalf("%s: %q is missing or out of order", path, step)
			}
			rest = after
		}
	}
	hook := r.get(PathHookGuide)
	for _, line := range []string{
		`f=$(mktemp) && curl -fsSLo "$f.mjs" https://ops.example/install-agent-hook.mjs && node "$f.mjs" --dry-run && node "$f.mjs"`,
		`$f="$env:TEMP\iah.mjs"; Invoke-WebRequest -UseBasicParsing https://ops.example/install-agent-hook.mjs -OutFile $f; Get-FileHash $f -Algorithm SHA256; node $f --dry-run; node $f`,
		digest(r.get(PathInstaller)),
	} {
		if !strings.Contains(hook, line) {
			t.Errorf("the hook guide lacks %q", line)
		}
	}
}

func TestScripts(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	collector, err := os.ReadFile("scripts/repo-context.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if r.get(PathCollector) != string(collector) {
		t.Error("the collector is not served byte for byte")
	}
	installer, err := os.ReadFile("scripts/install-agent-hook.mjs")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(installer), `const DEFAULT_BASE_URL = "http://localhost:8080";`, `const DEFAULT_BASE_URL = "https://ops.example";`, 1)
	if r.get(PathInstaller) != want {
		t.Error("the installer differs by more than its default address")
	}
}

func TestPluginTextStaysText(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	if guide := r.get(PathLLMs); strings.Contains(guide, "\n## Injected") || strings.Contains(guide, "<b>") {
		t.Errorf("a description made markup: %s", guide)
	}
}

func TestAgentStatusKeepsToWhatIsPublic(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	r.plugins = append(r.plugins, core.Plugin{Name: "smtp", Kind: core.PluginKindConnector, Status: core.PluginStatusUnavailable, StatusReason: "exit status 2 in /srv/private"})
	body := r.get(PathAgentStatus)
	for _, private := range []string{"4711", "feedface", "/srv/private"} {
		if strings.Contains(body, private) {
			t.Errorf("shows %q", private)
		}
	}
	v := r.json(PathAgentStatus)
	if v["status"] != "degraded" || v["sandbox"] != "none (unjailed)" || len(v["plugins"].([]any)) != 2 || len(v["operators"].([]any)) != 1 {
		t.Errorf("status %s", body)
	}
}

func TestDescriptors(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	m := r.json(PathMCP)
	if m["endpoint"] != base+"/mcp" || m["protocol"] != "mcp/2025-03-26" {
		t.Errorf("mcp.json %v", m)
	}
	for name, link := range m["links"].(object) {
		if !slices.Contains(Paths(), strings.TrimPrefix(link.(string), base)) {
			t.Errorf("link %s leads to %v", name, link)
		}
	}
	if v := r.json(PathResourceOfMCP); v["resource"] != base+"/mcp" {
		t.Errorf("resource %v", v)
	}
	if v := r.json(PathResource); v["resource"] != base {
		t.Errorf("resource %v", v)
	}
	entry := r.json(PathCatalog)["entries"].([]any)[0].(object)
	if entry["identifier"] != "urn:air:ops.example:mcp:sallyport" || entry["url"] != base+PathServerCard || entry["type"] != typeCard {
		t.Errorf("entry %v", entry)
	}
	card := r.json(PathServerCard)
	if _, lists := card["tools"]; lists || card["remotes"].([]any)[0].(object)["url"] != base+"/mcp" || strings.Count(card["name"].(string), "/") != 1 {
		t.Errorf("card %v", card)
	}
	if len(description) > 100 {
		t.Errorf("the description has %d characters, 100 are allowed", len(description))
	}
	if v := r.json(PathOpenAPI); v["openapi"] != "3.1.0" || v["info"].(object)["version"] != "0.1.0" {
		t.Errorf("openapi %v", v)
	}
}

// A status that finds a wrong file says so.
func TestSelfCheckCanFail(t *testing.T) {
	r := newRig(t, launchSnapshot(t))
	s := r.Config.Handler.(*site)
	f := *s.current.Load()
	f.byPath = map[string]*file{}
	for path, one := range s.current.Load().byPath {
		f.byPath[path] = one
	}
	f.byPath[PathCatalog] = newFile(typeJSON, "broken", []byte("{"))
	f.tools = append(slices.Clone(f.tools), "mkt_not_mentioned")
	s.current.Store(&f)
	bad := map[string]bool{}
	for _, c := range s.check(&f) {
		if !c.OK {
			bad[c.Path] = true
		}
	}
	if len(bad) != 2 || !bad[PathCatalog] || !bad[PathLLMs] {
		t.Errorf("found %v", bad)
	}
	if v := r.json(PathStatus); v["ok"] != false {
		t.Errorf("status %v", v["ok"])
	}
}

func TestDepsAreChecked(t *testing.T) {
	full := Deps{Registry: tool.NewRegistry(), OpenAPI: func(string) json.RawMessage { return json.RawMessage("{}") }, Status: func(context.Context) Status { return Status{} }, BaseURL: base}
	if _, err := New(full); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Deps){
		"no registry": func(d *Deps) { d.Registry = nil }, "no description": func(d *Deps) { d.OpenAPI = nil },
		"slash at the end": func(d *Deps) { d.BaseURL += "/" }, "no scheme": func(d *Deps) { d.BaseURL = "ops.example" },
	} {
		d := full
		change(&d)
		if _, err := New(d); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

var update = flag.Bool("update", false, "write server.json anew")

// The repository's server.json is what this package would say of the version in it.
func TestServerJSONOfTheRepository(t *testing.T) {
	const path = "../../server.json"
	version := "0.1.0"
	want := string(mustJSON(ServerJSON(version)))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("server.json is stale: go test ./core/discovery -run ServerJSON -update")
	}
}
