// Package archtest keeps the import rules of the tree true. The table below is the
// rule; a package that is not in it fails the test, so that a new one is thought about.
package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sallyport-dev/sallyport/"

// rules lists, per package (a trailing /... covers what lies below), the packages of
// this module it may import. A package may always import what lies below itself.
var rules = map[string][]string{
	"schemas":               {},
	"sdk/effect":            {},
	"sdk/proto/...":         {},
	"sdk/text":              {"schemas"},
	"sdk/stats":             {},
	"sdk":                   {"schemas", "sdk/effect", "sdk/proto/..."},
	"sdk/...":               {"schemas", "sdk", "sdk/..."},
	"core":                  {},
	"core/store/...":        {"core", "core/store/..."},
	"core/secret":           {"core", "core/store"},
	"core/audit":            {"core", "core/store", "core/secret"},
	"core/event":            {"core", "core/store", "core/audit", "core/secret"},
	"core/memory":           {"core", "core/store", "core/audit", "core/secret"},
	"core/dataset":          {"core", "core/store", "core/audit", "core/secret"},
	"core/usage":            {"core", "core/store"},
	"core/auth":             {"core", "core/store", "core/audit", "core/secret"},
	"core/run":              {"core", "core/store", "core/audit", "core/event"},
	"core/approved":         {"core", "sdk/effect"},
	"core/approval":         {"core", "core/approved", "core/store", "core/audit", "core/auth", "core/run", "core/event", "core/secret", "sdk/effect", "schemas"},
	"core/egress":           {"core", "core/approved", "sdk/effect"},
	"core/llm":              {"core", "core/egress", "core/usage"},
	"core/connector":        {"core", "core/store", "core/audit", "core/egress", "core/secret", "core/event", "schemas", "sdk/effect"},
	"core/execute":          {"core", "core/approved", "core/store", "core/run", "core/approval", "core/connector", "core/egress", "core/audit", "core/event", "sdk/effect"},
	"core/tool":             {"core", "schemas", "core/run", "core/approval", "core/audit", "core/usage", "core/event", "core/store", "sdk/effect"},
	"core/plugin/...":       {"core", "schemas", "core/tool", "core/approval", "core/connector", "core/egress", "core/llm", "core/memory", "core/dataset", "core/run", "core/audit", "core/event", "core/plugin/...", "sdk/proto/...", "sdk/effect"},
	"core/jobs":             {"core", "core/store", "core/approval", "core/execute", "core/tool", "core/run", "core/event", "core/egress"},
	"core/rest":             {"core", "schemas", "sdk/effect", "services"},
	"core/rest/replay":      {"core", "core/store"}, // idempotency records
	"core/mcp/...":          {"core", "schemas", "core/mcp/...", "services"},
	"core/web":              {"core", "schemas", "services"},
	"core/discovery/...":    {"core", "schemas", "services"},
	"core/server":           {"core", "core/...", "schemas", "sdk/effect"},
	"core/e2e/...":          {"*"},
	"core/sim/...":          {"*"},
	"core/archtest":         {},
	"operators/...":         {"sdk", "sdk/...", "schemas"},
	"plugins/...":           {"sdk", "sdk/...", "schemas"},
	"cmd/sallyport":         {"core", "core/server", "sdk", "sdk/..."},
	"cmd/sallyport-plugins": {"sdk", "operators/...", "plugins/..."},
}

// services is what surfaces may call.
var services = []string{"core/run", "core/approval", "core/auth", "core/audit", "core/connector", "core/tool", "core/usage", "core/event", "core/memory", "core/dataset"}

// sole names modules that exactly these packages may import (tests excepted).
var sole = map[string][]string{
	"github.com/santhosh-tekuri/jsonschema/v5": {"schemas"},
	"github.com/uptrace/bun":                   {"core/store"},
	"github.com/riverqueue/river":              {"core/jobs"},
	"github.com/modelcontextprotocol/go-sdk":   {"core/mcp"},
	"github.com/hashicorp/go-plugin":           {"core/plugin", "sdk"},
	"github.com/go-chi/chi/v5":                 {"core/rest", "core/web", "core/discovery", "core/server"},
	"modernc.org/sqlite":                       {"core/store", "core/egress"},
	"github.com/jackc/pgx/v5":                  {"core/store", "core/egress"},
}

type pkg struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
}

func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 20 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	return pkgs
}

func below(path, rule string) bool {
	if prefix, deep := strings.CutSuffix(rule, "/..."); deep {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == rule
}

// ruleFor finds the longest rule that covers a package.
func ruleFor(path string) (string, bool) {
	best, found := "", false
	for rule := range rules {
		if below(path, rule) && (!found || len(rule) > len(best) || rule == path) {
			if found && best == path {
				continue
			}
			best, found = rule, true
		}
	}
	return best, found
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		rule, ok := ruleFor(path)
		if !ok {
			t.Errorf("%s: no rule covers this package; add one to the table", path)
			continue
		}
		allowed := rules[rule]
		if slices.Contains(allowed, "services") {
			allowed = append(slices.Clone(allowed), services...)
		}
		for _, imp := range p.Imports {
			own, internal := strings.CutPrefix(imp, module)
			if !internal || strings.HasPrefix(own, path+"/") || slices.Contains(allowed, "*") {
				continue
			}
			if !slices.ContainsFunc(allowed, func(r string) bool { return below(own, r) }) {
				t.Errorf("%s must not import %s", path, own)
			}
		}
	}
}

func TestSoleImporters(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(path, "core/e2e") || strings.HasPrefix(path, "core/sim") {
			continue
		}
		for _, imp := range p.Imports {
			for lib, owners := range sole {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.ContainsFunc(owners, func(o string) bool { return below(path, o+"/...") }) {
					t.Errorf("%s must not import %s; only %s may", path, imp, strings.Join(owners, ", "))
				}
			}
		}
	}
}

// TestPluginsHoldNoDoor checks that operators and plugins neither dial nor start processes.
func TestPluginsHoldNoDoor(t *testing.T) {
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if !strings.HasPrefix(path, "operators/") && !strings.HasPrefix(path, "plugins/") {
			continue
		}
		for _, imp := range p.Imports {
			if imp == "net" || imp == "os/exec" || imp == "net/http" || imp == "syscall" || imp == "unsafe" || imp == "plugin" {
				t.Errorf("%s must not import %s: a plugin has no door of its own", path, imp)
			}
		}
	}
}

// outbound are the ways to the network that only core/egress may use.
var outbound = map[string][]string{
	"net/http":   {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Post", "Head", "PostForm"},
	"net":        {"Dial", "DialTimeout", "Dialer", "DialTCP", "DialUDP", "DialIP", "DialUnix"},
	"net/smtp":   {"Dial", "SendMail", "NewClient"},
	"crypto/tls": {"Dial", "Dialer", "DialWithDialer"},
}

// mayDial lists packages that dial something other than the network, with the reason.
var mayDial = map[string]string{
	"core/egress":   "the only way out",
	"core/plugin":   "dials the pinned socket of its own child",
	"core/mcp":      "bridges standard input to the host on this machine",
	"core/e2e":      "tests",
	"cmd/sallyport": "the command line speaks to a running host",
	"core/server":   "the command line speaks to a running host",
	"core/store":    "looks for a test database",
}

func TestOnlyEgressReachesOut(t *testing.T) {
	inspect(t, func(path, file string, imports map[string]string, sel *ast.SelectorExpr) {
		id, ok := sel.X.(*ast.Ident)
		if !ok || slices.Contains(outbound[imports[id.Name]], sel.Sel.Name) == false {
			return
		}
		for prefix := range mayDial {
			if below(path, prefix+"/...") {
				return
			}
		}
		t.Errorf("%s: %s.%s: only core/egress reaches out", filepath.Join(path, file), id.Name, sel.Sel.Name)
	})
}

// TestOneWayToWrite checks the callers of the two functions that carry the promise.
func TestOneWayToWrite(t *testing.T) {
	callers := map[string][]string{ // import path + "." + name: packages that may use it
		module + "core/approved.New": {"core/approval"},
	}
	found := map[string]bool{}
	inspect(t, func(path, file string, imports map[string]string, sel *ast.SelectorExpr) {
		id, ok := sel.X.(*ast.Ident)
		if !ok {
			return
		}
		name := imports[id.Name] + "." + sel.Sel.Name
		owners, watched := callers[name]
		if !watched {
			return
		}
		found[name] = true
		if !slices.Contains(owners, path) {
			t.Errorf("%s: %s may be called by %s only", filepath.Join(path, file), name, strings.Join(owners, ", "))
		}
	})
	for name := range callers {
		if !found[name] {
			t.Errorf("%s has no caller: the check watches nothing", name)
		}
	}
}

// TestOneSender checks that of all packages that know core/egress only core/execute sends:
// a method called Send is egress's there, or it should have another name.
func TestOneSender(t *testing.T) {
	sends := map[string]bool{}
	inspect(t, func(path, file string, imports map[string]string, sel *ast.SelectorExpr) {
		if sel.Sel.Name != "Send" {
			return
		}
		for _, imp := range imports {
			if imp == module+"core/egress" {
				sends[path] = true
			}
		}
	})
	for path := range sends {
		if path != "core/execute" {
			t.Errorf("%s: calls Send; only core/execute may", path)
		}
	}
	if !sends["core/execute"] {
		t.Error("core/execute does not send: the check watches nothing")
	}
}

// TestWallClockStaysOutside checks that services take core.Clock.
func TestWallClockStaysOutside(t *testing.T) {
	inspect(t, func(path, file string, imports map[string]string, sel *ast.SelectorExpr) {
		id, ok := sel.X.(*ast.Ident)
		if !ok || imports[id.Name] != "time" || (sel.Sel.Name != "Now" && sel.Sel.Name != "Since" && sel.Sel.Name != "Until") {
			return
		}
		if (path == "core" && file == "clock.go") || !strings.HasPrefix(path, "core") || strings.HasPrefix(path, "core/e2e") || strings.Contains(path, "test") {
			return
		}
		t.Errorf("%s: time.%s: take core.Clock instead", filepath.Join(path, file), sel.Sel.Name)
	})
}

// inspect visits every selector of every non-test file with the file's imports by local name.
func inspect(t *testing.T, visit func(path, file string, imports map[string]string, sel *ast.SelectorExpr)) {
	t.Helper()
	for _, p := range load(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("%s/%s: %v", path, name, err)
				continue
			}
			imports := map[string]string{}
			for _, spec := range f.Imports {
				imp, _ := strconv.Unquote(spec.Path.Value)
				local := imp[strings.LastIndex(imp, "/")+1:]
				if spec.Name != nil {
					local = spec.Name.Name
				}
				imports[local] = imp
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					visit(path, name, imports, sel)
				}
				return true
			})
		}
	}
}
