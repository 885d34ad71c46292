package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Email and Password of the owner that Init makes.
const (
	Email    = "owner@example.com"
	Password = "correct horse battery staple"
)

// Host is a host on scratch data.
type Host struct {
	Bin         Binaries
	Data        string
	URL         string // http://localhost:PORT
	Addr        string
	DatabaseURL string
	// Env is added to the environment of the host and of commands.
	Env []string
	// OwnCatalog leaves the plugin catalog as it is in Data.
	OwnCatalog bool

	mu   sync.Mutex
	cmd  *exec.Cmd
	log  *Buffer
	done chan struct{}
}

// Buffer collects output of a process; it is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// NewHost prepares a host in data that listens on a free port of this machine. It is
// not started yet.
func NewHost(bin Binaries, data, databaseURL string) (*Host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	_, port, _ := net.SplitHostPort(addr)
	return &Host{Bin: bin, Data: data, Addr: addr, URL: "http://localhost:" + port, DatabaseURL: databaseURL, log: &Buffer{}}, nil
}

func (h *Host) environ() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.Data, "TMPDIR=" + os.TempDir(), "SALLYPORT_DATA=" + h.Data, "SALLYPORT_ADDR=" + h.Addr, "SALLYPORT_BASE_URL=" + h.URL,
		"SALLYPORT_EXECUTION_UNDO_WINDOW=0s", "SALLYPORT_LOG_LEVEL=debug"}
	if h.DatabaseURL != "" {
		env = append(env, "SALLYPORT_DATABASE_URL="+h.DatabaseURL)
	}
	return append(env, h.Env...)
}

// Command runs a command of the host program beside the host and returns its output.
func (h *Host) Command(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, h.Bin.Host(), args...)
	cmd.Env = h.environ()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("sallyport %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

func (h *Host) field(ctx context.Context, name, stdin string, args ...string) (string, error) {
	out, err := h.Command(ctx, stdin, args...)
	if err != nil {
		return "", err
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		return "", fmt.Errorf("sallyport %s printed %q: %w", args[0], out, err)
	}
	s, _ := v[name].(string)
	if s == "" {
		return "", fmt.Errorf("sallyport %s printed no %s: %s", args[0], name, out)
	}
	return s, nil
}

// Init makes the owner.
func (h *Host) Init(ctx context.Context) error {
	_, err := h.Command(ctx, Password+"\n", "init", "--email", Email, "--password-stdin", "--json")
	return err
}

// Token mints an access token of the owner.
func (h *Host) Token(ctx context.Context) (string, error) {
	return h.field(ctx, "token", "", "token", "create", "--email", Email, "--json")
}

// Key makes an API key.
func (h *Host) Key(ctx context.Context, kind string, scopes ...string) (string, error) {
	args := []string{"key", "create", "--name", "test-" + kind, "--kind", kind, "--json"}
	for _, s := range scopes {
		args = append(args, "--scope", s)
	}
	return h.field(ctx, "key", "", args...)
}

// Start starts the host and waits until it is ready.
func (h *Host) Start(ctx context.Context, extra ...string) error {
	h.mu.Lock()
	args := []string{"serve"}
	if !h.OwnCatalog {
		args = append(args, "--in-tree", h.Bin.Plugins())
	}
	args = append(args, extra...)
	cmd := exec.Command(h.Bin.Host(), args...)
	cmd.Env = h.environ()
	cmd.Stdout, cmd.Stderr = h.log, h.log
	if err := cmd.Start(); err != nil {
		h.mu.Unlock()
		return err
	}
	done := make(chan struct{})
	h.cmd, h.done = cmd, done
	h.mu.Unlock()
	go func() { _ = cmd.Wait(); close(done) }()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return fmt.Errorf("the host ended at start:\n%s", tail(h.log.String()))
		case <-ctx.Done():
			return fmt.Errorf("the host did not become ready: %w\n%s", ctx.Err(), tail(h.log.String()))
		case <-tick.C:
		}
		resp, err := http.Get("http://" + h.Addr + "/readyz")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
}

// Log is what the host printed so far.
func (h *Host) Log() string { return h.log.String() }

// Done is closed when the process has ended.
func (h *Host) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done
}

// Pid is the process id of the running host.
func (h *Host) Pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd.Process.Pid
}

// Stop ends the host as a service manager would, and kills it after 30 seconds.
func (h *Host) Stop() error { return h.end(syscall.SIGTERM) }

// Kill ends the host at once.
func (h *Host) Kill() error { return h.end(syscall.SIGKILL) }

func (h *Host) end(sig syscall.Signal) error {
	h.mu.Lock()
	cmd, done := h.cmd, h.done
	h.mu.Unlock()
	if cmd == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	default:
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		return fmt.Errorf("the host did not end within 30 s of %s", sig)
	}
}

// Remove deletes the data.
func (h *Host) Remove() { _ = os.RemoveAll(h.Data) }

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// Reply is an HTTP answer, read.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request to the host. body may be nil, a string, bytes or anything that
// marshals to JSON; header is a list of names and values.
func (h *Host) Do(ctx context.Context, method, path string, body any, header ...string) (*Reply, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	url := path
	if strings.HasPrefix(path, "/") {
		url = h.URL + path
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Timeout: 90 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return &Reply{Status: resp.StatusCode, Header: resp.Header, Body: b}, err
}

// JSON sends a request as REST clients do and decodes a 2xx answer into out.
func (h *Host) JSON(ctx context.Context, token, method, path string, body, out any, header ...string) error {
	r, err := h.Do(ctx, method, path, body, append([]string{"Authorization", "Bearer " + token}, header...)...)
	if err != nil {
		return err
	}
	if r.Status/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, r.Body)
	}
	return nil
}

// Tool calls a tool over MCP, with a bare request, as a caller with the key does.
// isError results come back as an error that holds their text.
func (h *Host) Tool(ctx context.Context, key, name string, args, out any) (text []string, err error) {
	r, err := h.Do(ctx, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}},
		"X-Api-Key", key, "Accept", "application/json, text/event-stream")
	if err != nil {
		return nil, err
	}
	var reply struct {
		Result struct {
			Content []struct {
				Type, Text string
			}
			StructuredContent json.RawMessage
			IsError           bool
		}
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(r.Body, &reply); err != nil {
		return nil, fmt.Errorf("tools/call %s: %d %s", name, r.Status, r.Body)
	}
	if reply.Error != nil {
		return nil, fmt.Errorf("tools/call %s: error %d %s", name, reply.Error.Code, reply.Error.Message)
	}
	for _, c := range reply.Result.Content {
		if c.Type == "text" {
			text = append(text, c.Text)
		}
	}
	if reply.Result.IsError {
		return text, &ToolError{Tool: name, Text: strings.Join(text, "\n")}
	}
	if out != nil {
		err = json.Unmarshal(reply.Result.StructuredContent, out)
	}
	return text, err
}

// ToolError is a result marked as an error.
type ToolError struct{ Tool, Text string }

func (e *ToolError) Error() string { return e.Tool + ": " + e.Text }

// Scratch makes an empty data folder.
func Scratch() (string, error) {
	dir, err := os.MkdirTemp("", "sallyport-")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "var"), os.Mkdir(filepath.Join(dir, "var"), 0o700)
}
