// Command bench measures the house against rivals in the same run and prints ratios:
// absolute figures drift with the machine, ratios stay. Every figure is the median of
// several rounds that take turns.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport/core/e2e/harness"
	"github.com/sallyport-dev/sallyport/core/plugin"
	"github.com/sallyport-dev/sallyport/schemas"
)

var (
	bin    = flag.String("bin", "bin", "folder of the built programs")
	length = flag.Duration("length", 3*time.Second, "length of one measurement")
	rounds = flag.Int("rounds", 3, "measurements per figure")
	asPeer = flag.Bool("rival", false, "serve as the rival (used by this program itself)")
)

const argument = 1000 // bytes of text in, as a tool call of middling size; 4,000 come back

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *asPeer {
		err = serveRival()
	} else {
		err = measure(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context) error {
	b := &bench{table: tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)}
	fmt.Printf("%s, %d rounds of %s each, medians\n\n", machine(), *rounds, *length)
	if err := b.calls(ctx); err != nil {
		return err
	}
	if err := b.lists(ctx); err != nil {
		return err
	}
	if err := b.decisions(ctx); err != nil {
		return err
	}
	return nil
}

type bench struct{ table *tabwriter.Writer }

func (b *bench) head(columns ...string) { fmt.Fprintln(b.table, strings.Join(columns, "\t")) }

func (b *bench) row(format string, args ...any) { fmt.Fprintf(b.table, format+"\n", args...) }

func (b *bench) end() {
	_ = b.table.Flush()
	fmt.Println()
}

// host starts a host whose catalog holds what entries makes of its plugin folder.
func host(ctx context.Context, inTree bool) (h *harness.Host, key string, err error) {
	dir, err := filepath.Abs(*bin)
	if err != nil {
		return nil, "", err
	}
	data, err := harness.Scratch()
	if err != nil {
		return nil, "", err
	}
	if h, err = harness.NewHost(harness.Binaries{Dir: dir}, data, ""); err != nil {
		return nil, "", err
	}
	h.OwnCatalog = !inTree
	h.Env = []string{"SALLYPORT_LOG_LEVEL=error", "SALLYPORT_REQUESTS_PER_MINUTE=100000000"}
	if err := h.Init(ctx); err != nil {
		return nil, "", err
	}
	if key, err = h.Key(ctx, "agent"); err != nil {
		return nil, "", err
	}
	if !inTree {
		if err := echoCatalog(ctx, filepath.Join(data, "plugins")); err != nil {
			return nil, "", err
		}
	}
	return h, key, h.Start(ctx)
}

// echoCatalog builds the echo plugin and makes it the only one of the catalog.
func echoCatalog(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	program := filepath.Join(dir, "echo")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./core/e2e/bench/echo").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	list, origin := true, schemas.CatalogEntryOriginInTree
	return plugin.WriteCatalog(filepath.Join(dir, "catalog.json"), []schemas.CatalogEntry{{Name: "bench_echo", Command: program, Sha256: hex.EncodeToString(sum[:]),
		List: &list, Origin: &origin, Allow: schemas.Allow{Tools: []string{"bench_echo"}}}})
}

// startRival starts this program again as the rival and returns its address.
func startRival(ctx context.Context) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-rival")
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOGC=400") // as the host sets for itself
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return "http://" + strings.TrimSpace(line), func() { _ = in.Close(); _ = cmd.Wait() }, err
}

func serveRival() error {
	raw, err := os.ReadFile("core/e2e/bench/echo/plugin.json")
	if err != nil {
		return err
	}
	var manifest struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return err
	}
	return rival(manifest.Tools[0], answer(), []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`))
}

func answer() json.RawMessage {
	b, _ := json.Marshal(map[string]any{"length": argument, "text": strings.Repeat("x", 4000)})
	return b
}

func callBody() []byte {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "bench_echo",
		"arguments": map[string]any{"text": strings.Repeat("a", argument), "size": 4000}}})
	return b
}

// calls compares a tool call through a plugin process with authentication, two schema
// checks and an audit entry to the same SDK with the handler in the process and none of these.
func (b *bench) calls(ctx context.Context) error {
	h, key, err := host(ctx, false)
	if err != nil {
		return err
	}
	defer h.Remove()
	defer func() { _ = h.Stop() }()
	address, stop, err := startRival(ctx)
	if err != nil {
		return err
	}
	defer stop()
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Api-Key": key}
	ours := request{url: "http://" + h.Addr + "/mcp", body: callBody(), header: header, want: []byte("xxxx")}
	theirs := ours
	theirs.url = address + "/mcp"
	b.head("tools/call, 1 KB in, 4 KB out", "callers", "through a plugin /s", "p50", "p99", "in process /s", "p50", "ratio")
	for _, callers := range []int{1, 16} {
		a, z, err := turns(ctx, ours, theirs, callers)
		if err != nil {
			return err
		}
		b.row("\t%d\t%.0f\t%s\t%s\t%.0f\t%s\t%.2f", callers, a.perSecond, ms(a.p50), ms(a.p99), z.perSecond, ms(z.p50), a.perSecond/z.perSecond)
	}
	b.end()
	return nil
}

// lists compares tools/list of the whole catalog to a handler that writes the same bytes.
func (b *bench) lists(ctx context.Context) error {
	h, _, err := host(ctx, true)
	if err != nil {
		return err
	}
	defer h.Remove()
	defer func() { _ = h.Stop() }()
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	r, err := h.Do(ctx, "POST", "/mcp", body, "Accept", "application/json, text/event-stream")
	if err != nil {
		return err
	}
	tools := bytes.Count(r.Body, []byte(`"inputSchema"`))
	constant, stop, err := constantServer(r.Body)
	if err != nil {
		return err
	}
	defer stop()
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	ours := request{url: "http://" + h.Addr + "/mcp", body: body, header: header, want: []byte("inputSchema")}
	theirs := ours
	theirs.url = constant
	b.head(fmt.Sprintf("tools/list, %d tools, %d KB", tools, len(r.Body)>>10), "callers", "ours /s", "p50", "constant reply /s", "p50", "ratio")
	a, z, err := turns(ctx, ours, theirs, 16)
	if err != nil {
		return err
	}
	b.row("\t16\t%.0f\t%s\t%.0f\t%s\t%.2f", a.perSecond, ms(a.p50), z.perSecond, ms(z.p50), a.perSecond/z.perSecond)
	b.end()
	return nil
}

// turns measures two requests one after the other, several times, and takes the medians.
func turns(ctx context.Context, one, other request, callers int) (a, b figure, err error) {
	var as, bs []figure
	for range *rounds {
		f, err := load(ctx, one, callers, *length)
		if err != nil {
			return a, b, err
		}
		as = append(as, f)
		if f, err = load(ctx, other, callers, *length); err != nil {
			return a, b, err
		}
		bs = append(bs, f)
	}
	return median(as), median(bs), nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func machine() string {
	cpu := "this machine"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(name), ":"))
				break
			}
		}
		cpu += fmt.Sprintf(", %d cores", strings.Count(string(b), "processor\t"))
	}
	return cpu
}
