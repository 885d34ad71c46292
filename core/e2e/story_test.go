// Package e2e tells the promises of the platform as stories: real host, real plugin
// processes, real mail and webhook traffic on this machine. Each file of testdata is one.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

var bin harness.Binaries

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "sallyport-bin-")
	if err != nil {
		panic(err)
	}
	if bin, err = harness.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is what one story works with.
type world struct {
	host     *harness.Host
	mail     *harness.MailServer
	hooks    map[string]*harness.Receiver
	token    string
	keys     map[string]string // by kind
	contract *harness.Contract
	last     []byte // body of the last answer
}

const worldKey = "world"

func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			w := &world{hooks: map[string]*harness.Receiver{}, keys: map[string]string{}}
			env.Values[worldKey] = w
			env.Defer(w.close)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"host":   cmdHost,
			"rest":   cmdREST,
			"mcp":    cmdMCP,
			"tool":   cmdTool,
			"pick":   cmdPick,
			"await":  cmdAwait,
			"ledger": cmdLedger,
			"cli":    cmdCLI,
		},
	})
}

func of(ts *testscript.TestScript) *world { return ts.Value(worldKey).(*world) }

func (w *world) close() {
	if w.host != nil {
		_ = w.host.Stop()
		w.host.Remove()
	}
	if w.mail != nil {
		w.mail.Close()
	}
	for _, h := range w.hooks {
		h.Close()
	}
}

// cmdHost is `host start [connect]`, `host restart`, `host kill`, `host stop` or `host log REGEXP`.
func cmdHost(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	ctx := context.Background()
	switch args[0] {
	case "start":
		ts.Check(w.start(ctx))
		if len(args) > 1 && args[1] == "connect" {
			ts.Check(harness.ConnectMail(ctx, w.host, w.token, w.mail))
			for _, name := range []string{"changelog", "team"} {
				ts.Check(harness.ConnectWebhook(ctx, w.host, w.token, w.hooks[name]))
			}
		}
		for name, value := range map[string]string{"URL": w.host.URL, "TOKEN": w.token, "AGENT_KEY": w.keys["agent"], "SERVICE_KEY": w.keys["service"], "DATA": w.host.Data, "HOOK": w.hooks["changelog"].URL} {
			ts.Setenv(name, value)
		}
	case "restart":
		ts.Check(w.host.Stop())
		ts.Check(w.host.Start(ctx))
	case "kill":
		ts.Check(w.host.Kill())
	case "stop":
		ts.Check(w.host.Stop())
	case "log":
		if found := regexp.MustCompile(args[1]).MatchString(w.host.Log()); found == neg {
			ts.Fatalf("host log: match of %q is %v in\n%s", args[1], found, w.host.Log())
		}
	default:
		ts.Fatalf("host: unknown %q", args[0])
	}
}

func (w *world) start(ctx context.Context) error {
	data, err := harness.Scratch()
	if err != nil {
		return err
	}
	if w.mail, err = harness.StartMail("story", "story-password"); err != nil {
		return err
	}
	allow := []string{w.mail.Addr}
	for _, name := range []string{"changelog", "team"} {
		if w.hooks[name], err = harness.StartReceiver(name, "whsec_c3Rvcnktc2VjcmV0LW9mLXRoaXMtbWFjaGluZS1vbmx5"); err != nil {
			return err
		}
		allow = append(allow, w.hooks[name].Addr)
	}
	if w.host, err = harness.NewHost(bin, data, ""); err != nil {
		return err
	}
	w.host.Env = []string{"SALLYPORT_EGRESS_ALLOW_PRIVATE=" + strings.Join(allow, ",")}
	if err := w.host.Init(ctx); err != nil {
		return err
	}
	if w.token, err = w.host.Token(ctx); err != nil {
		return err
	}
	for _, kind := range []string{"agent", "service"} {
		if w.keys[kind], err = w.host.Key(ctx, kind); err != nil {
			return err
		}
	}
	if err := w.host.Start(ctx); err != nil {
		return err
	}
	r, err := w.host.Do(ctx, "GET", "/openapi.json", nil)
	if err != nil {
		return err
	}
	w.contract, err = harness.NewContract(r.Body)
	return err
}

// credential turns -as into headers.
func (w *world) credential(as string) ([]string, error) {
	switch as {
	case "owner":
		return []string{"Authorization", "Bearer " + w.token}, nil
	case "agent", "service":
		return []string{"X-Api-Key", w.keys[as]}, nil
	case "agent-bearer":
		return []string{"Authorization", "Bearer " + w.keys["agent"]}, nil
	case "bad":
		return []string{"Authorization", "Bearer nonsense"}, nil
	case "bad-key":
		return []string{"X-Api-Key", "spk_agent_nonsense"}, nil
	case "none":
		return nil, nil
	}
	return nil, fmt.Errorf("-as %s: nobody of that name", as)
}

// options reads leading -as WHO, -h 'Name: value' and -era VERSION.
func options(w *world, as string, args []string) (header []string, era string, rest []string, err error) {
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-as":
			as = args[1]
		case "-era":
			era = args[1]
		case "-h":
			name, value, _ := strings.Cut(args[1], ": ")
			header = append(header, name, value)
		default:
			return nil, "", nil, fmt.Errorf("unknown option %s", args[0])
		}
		args = args[2:]
	}
	cred, err := w.credential(as)
	return append(cred, header...), era, args, err
}

// body is a literal, or the contents of a file of the story when it starts with @; @big
// is 2 MiB.
func body(ts *testscript.TestScript, args []string) any {
	if len(args) == 0 {
		return nil
	}
	if args[0] == "@big" { // more than any body may have
		return `{"goal":"` + strings.Repeat("x", 2<<20) + `"}`
	}
	if file, ok := strings.CutPrefix(args[0], "@"); ok {
		return os.Expand(ts.ReadFile(file), ts.Getenv)
	}
	return args[0]
}

// cmdREST is `rest [-as WHO] [-h HEADER] STATUS METHOD PATH [BODY]`. It checks the status
// and holds the answer against the served description; the answer is the next `stdout`.
func cmdREST(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	header, _, args, err := options(w, "owner", args)
	ts.Check(err)
	if neg || len(args) < 3 {
		ts.Fatalf("usage: rest [-as WHO] [-h HEADER] STATUS METHOD PATH [BODY]")
	}
	r, err := w.host.Do(context.Background(), args[1], args[2], body(ts, args[3:]), header...)
	ts.Check(err)
	w.show(ts, r)
	if want, _ := strconv.Atoi(args[0]); r.Status != want {
		ts.Fatalf("%s %s: status %d, want %s\n%s", args[1], args[2], r.Status, args[0], r.Body)
	}
	if strings.HasPrefix(args[2], "/api/") {
		ts.Check(w.contract.Check(args[1], args[2], r.Status, r.Header, r.Body))
	}
}

func (w *world) show(ts *testscript.TestScript, r *harness.Reply) {
	w.last = r.Body
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d\n", r.Status)
	for _, name := range []string{"Content-Type", "Www-Authenticate", "Etag", "Link", "Location", "Retry-After", "Ratelimit", "Content-Security-Policy", "Cache-Control"} {
		if v := r.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	var v any
	if json.Unmarshal(r.Body, &v) == nil {
		pretty, _ := json.MarshalIndent(v, "", "  ")
		b.Write(pretty)
	} else {
		b.Write(r.Body)
	}
	ts.Check(os.WriteFile(ts.MkAbs("answer"), []byte(b.String()), 0o600))
	fmt.Fprintln(ts.Stdout(), b.String())
}

// cmdMCP is `mcp [-as WHO] [-era VERSION] STATUS BODY`: one raw POST.
func cmdMCP(ts *testscript.TestScript, _ bool, args []string) {
	w := of(ts)
	header, era, args, err := options(w, "none", args)
	ts.Check(err)
	if era != "" {
		header = append(header, "Mcp-Protocol-Version", era)
	}
	r, err := w.host.Do(context.Background(), "POST", "/mcp", body(ts, args[1:]), append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
	ts.Check(err)
	if data, ok := strings.CutPrefix(string(r.Body), "event: message\n"); ok {
		_, data, _ = strings.Cut(data, "data: ")
		r.Body = []byte(strings.TrimSpace(data))
	}
	w.show(ts, r)
	if want, _ := strconv.Atoi(args[0]); r.Status != want {
		ts.Fatalf("mcp: status %d, want %s\n%s", r.Status, args[0], r.Body)
	}
}

// cmdTool is `[!] tool [-as WHO] NAME ARGUMENTS`: calls a tool, `!` expects an error result.
func cmdTool(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	key := w.keys["agent"]
	if args[0] == "-as" {
		key, args = w.keys[args[1]], args[2:]
	}
	var raw json.RawMessage = []byte("{}")
	if len(args) > 1 {
		raw = []byte(body(ts, args[1:]).(string))
	}
	var out json.RawMessage
	text, err := w.host.Tool(context.Background(), key, args[0], raw, &out)
	refusal, refused := errors.AsType[*harness.ToolError](err)
	if err != nil && !refused {
		ts.Fatalf("%v", err)
	}
	if refused != neg {
		ts.Fatalf("tool %s: error result is %v: %v", args[0], refused, err)
	}
	if refused {
		fmt.Fprintln(ts.Stdout(), refusal.Text)
		return
	}
	w.last = out
	fmt.Fprintln(ts.Stdout(), strings.Join(text, "\n---\n"))
}

// cmdPick is `pick VAR PATH`: sets VAR to what stands at PATH (as runs/0/id) of the last
// answer; `#` counts a list.
func cmdPick(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal(of(ts).last, &v))
	for part := range strings.SplitSeq(args[1], "/") {
		switch node := v.(type) {
		case map[string]any:
			v = node[part]
		case []any:
			if part == "#" {
				v = float64(len(node))
				continue
			}
			if key, value, ok := strings.Cut(part, "="); ok { // the first item whose field has the value
				v = nil
				for _, item := range node {
					if m, _ := item.(map[string]any); m != nil && fmt.Sprint(m[key]) == value {
						v = item
						break
					}
				}
				continue
			}
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(node) {
				ts.Fatalf("pick: no %s in a list of %d", part, len(node))
			}
			v = node[i]
		default:
			ts.Fatalf("pick: nothing at %s of %s in %s", part, args[1], of(ts).last)
		}
	}
	if v == nil {
		ts.Fatalf("pick: nothing at %s in %s", args[1], of(ts).last)
	}
	if f, ok := v.(float64); ok {
		ts.Setenv(args[0], strconv.FormatFloat(f, 'f', -1, 64))
		return
	}
	if s, ok := v.(string); ok {
		ts.Setenv(args[0], s)
		return
	}
	b, _ := json.Marshal(v)
	ts.Setenv(args[0], string(b))
}

// cmdAwait is `await REGEXP METHOD PATH`: asks until the answer matches, 20 s at most.
func cmdAwait(ts *testscript.TestScript, _ bool, args []string) {
	w := of(ts)
	want := regexp.MustCompile(args[0])
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := w.host.Do(ctx, args[1], args[2], nil, "Authorization", "Bearer "+w.token)
		if err == nil && want.Match(r.Body) {
			w.show(ts, r)
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("await %q: last answer %v %v", args[0], r, err)
		case <-tick.C:
		}
	}
}

// cmdLedger prints what reached the outside: a line per mail and delivery with its SHA-256.
func cmdLedger(ts *testscript.TestScript, _ bool, args []string) {
	w := of(ts)
	n := 0
	for _, m := range w.mail.Mails() {
		n++
		fmt.Fprintf(ts.Stdout(), "mail %s %s\n", strings.Join(m.To, ","), m.SHA256)
	}
	for name, hook := range w.hooks {
		for _, d := range hook.Deliveries() {
			n++
			fmt.Fprintf(ts.Stdout(), "webhook %s %s %s signature %v\n", name, d.ID, d.SHA256, d.Verified)
		}
	}
	fmt.Fprintf(ts.Stdout(), "entries %d\n", n)
	if len(args) > 0 && args[0] != strconv.Itoa(n) {
		ts.Fatalf("the ledgers hold %d entries, want %s", n, args[0])
	}
}

// cmdCLI is `[!] cli ARGS`: runs the command line against the story's data and host.
func cmdCLI(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	w.host.Env = append(w.host.Env[:1:1], "SALLYPORT_TOKEN="+w.token)
	out, err := w.host.Command(context.Background(), "", args...)
	fmt.Fprint(ts.Stdout(), string(out))
	if err != nil {
		fmt.Fprintln(ts.Stderr(), err)
	}
	if (err != nil) != neg {
		ts.Fatalf("sallyport %s: %v", strings.Join(args, " "), err)
	}
	w.last = out
}
