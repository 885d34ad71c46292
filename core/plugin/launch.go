package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// Launch is what a launcher is asked to start.
type Launch struct {
	Name      string
	Path      string // binary, absolute
	Args      []string
	SHA256    string   // hex; checked right before the start
	Env       []string // all of it: only PLUGIN_* and the cookie
	SocketDir string   // private folder in which the plugin makes its socket
	Host      *os.File // becomes the descriptor of the Host service
	Stderr    io.Writer
}

// Launcher starts plugin processes. How they are confined is its own business.
type Launcher interface {
	// Name says how processes are confined, for lists and the start message.
	Name() string
	// AutoMTLS says whether the connection to the plugin needs TLS of its own: not where
	// the socket is out of reach of every other process.
	AutoMTLS() bool
	// Launch prepares a process; its Start starts it.
	Launch(l Launch) (Running, error)
}

// Running is a process as go-plugin and the supervisor see it.
type Running interface {
	runner.Runner
	// Dial connects to the socket that the plugin named, after it was checked.
	Dial(ctx context.Context) (net.Conn, error)
	// Pid is its process id, 0 before the start.
	Pid() int
	// Exited is closed when the process is gone.
	Exited() <-chan struct{}
}

// Unjailed starts plugins as ordinary children: with an empty environment and no
// standard input, killed when the host dies, but with the host's own rights to files and
// network. It is for the plugins of this repository and for development.
type Unjailed struct{}

// Name implements Launcher.
func (Unjailed) Name() string { return "none (unjailed)" }

// AutoMTLS implements Launcher: any process of the same user can reach the socket.
func (Unjailed) AutoMTLS() bool { return true }

// Launch implements Launcher.
func (Unjailed) Launch(l Launch) (Running, error) {
	cmd := exec.Command(l.Path, l.Args...)
	cmd.Env = l.Env
	cmd.Dir = l.SocketDir
	cmd.ExtraFiles = []*os.File{l.Host} // descriptor 3
	cmd.SysProcAttr = childAttributes()
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, stderrWriter, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdout.Close(), stdoutWriter.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, stdoutWriter, stderrWriter
	return &child{launch: l, cmd: cmd, stdout: stdout, stderr: stderr, ends: []*os.File{stdoutWriter, stderrWriter}, exited: make(chan struct{})}, nil
}

// child is one process started by Unjailed.
type child struct {
	launch         Launch
	cmd            *exec.Cmd
	stdout, stderr *os.File
	ends           []*os.File // the child's ends, closed here once it has them
	exited         chan struct{}

	mu     sync.Mutex
	pid    int
	pinned *os.File // the checked socket
	path   string   // through which it is dialled
}

// spawner runs starts on one thread that never ends: on Linux a child dies with the
// thread that started it, not with the process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// Start implements runner.Runner. The binary is read and compared right before.
func (c *child) Start(context.Context) error {
	err := checkDigest(c.launch.Path, c.launch.SHA256)
	if err == nil {
		started := make(chan error)
		spawner() <- func() { started <- c.cmd.Start() }
		err = <-started
	}
	for _, f := range c.ends {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return errors.Join(err, c.stdout.Close(), c.stderr.Close())
	}
	c.mu.Lock()
	c.pid = c.cmd.Process.Pid
	c.mu.Unlock()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if _, err := io.Copy(c.launch.Stderr, c.stderr); err != nil && !errors.Is(err, os.ErrClosed) {
			fmt.Fprintf(c.launch.Stderr, "standard error cannot be read: %v\n", err)
		}
	}()
	go c.wait(drained)
	return nil
}

// grace is how long output of a process that ended is still read: a grandchild may hold
// the pipes open for ever.
const grace = 200 * time.Millisecond

func (c *child) wait(drained <-chan struct{}) {
	_ = c.cmd.Wait() // how it ended is of no consequence: it is gone
	c.killGroup()
	time.AfterFunc(grace, func() {
		_ = c.stdout.Close() // ends whatever still reads
		_ = c.stderr.Close()
	})
	<-drained
	c.mu.Lock()
	if c.pinned != nil {
		_ = c.pinned.Close()
	}
	c.mu.Unlock()
	close(c.exited)
}

func (c *child) killGroup() {
	if pid := c.Pid(); pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // fails only when nobody is left
	}
}

// Kill implements runner.AttachedRunner: the process and everything it started.
func (c *child) Kill(context.Context) error {
	c.killGroup()
	return nil
}

// Wait implements runner.AttachedRunner.
func (c *child) Wait(ctx context.Context) error {
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pid implements Running.
func (c *child) Pid() int { c.mu.Lock(); defer c.mu.Unlock(); return c.pid }

// Exited implements Running.
func (c *child) Exited() <-chan struct{} { return c.exited }

// ID implements runner.AttachedRunner; empty before the start.
func (c *child) ID() string {
	if pid := c.Pid(); pid > 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Name implements runner.Runner.
func (c *child) Name() string { return c.launch.Name }

// Stdout implements runner.Runner; only the handshake line is read from it.
func (c *child) Stdout() io.ReadCloser { return c.stdout }

// Stderr implements runner.Runner. It is empty: standard error goes to our own reader,
// which is bounded.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

// Diagnose implements runner.Runner.
func (c *child) Diagnose(context.Context) string { return "" }

// HostToPlugin implements runner.AddrTranslator. There is no broker: a plugin reaches the
// host over its descriptor only.
func (c *child) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("the host hands out no addresses")
}

// PluginToHost implements runner.AddrTranslator. The plugin chooses what the host dials,
// so that only a socket it made itself, directly in its own folder, is accepted.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("the plugin named a %s address; only its own unix socket is dialled", strings.ToValidUTF8(network, "?"))
	}
	if !filepath.IsAbs(address) || filepath.Clean(address) != address || filepath.Dir(address) != c.launch.SocketDir {
		return "", "", errors.New("the plugin named a socket outside its own folder")
	}
	pinned, path, err := pin(address)
	if err != nil {
		return "", "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned, c.path = pinned, path
	return network, path, nil
}

// Dial implements Running.
func (c *child) Dial(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	path, pid := c.path, c.pid
	c.mu.Unlock()
	if path == "" {
		return nil, errors.New("the plugin has named no socket")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn, pid); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// checkDigest compares the SHA-256 of a file.
func checkDigest(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the binary cannot be read: %w", err)
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the binary cannot be read: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("the binary %s has SHA-256 %s, the catalog says %s: install it again if the change is yours", filepath.Base(path), got, want)
	}
	return nil
}

// environment is all that a plugin gets to see: what the handshake needs.
func environment(prepared []string, socketDir string) []string {
	env := []string{"TMPDIR=" + socketDir}
	for _, kv := range prepared {
		if strings.HasPrefix(kv, "PLUGIN_") || strings.HasPrefix(kv, pluginpb.CookieKey+"=") {
			env = append(env, kv)
		}
	}
	return env
}
