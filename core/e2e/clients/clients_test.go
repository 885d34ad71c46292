//go:build clients

// Package clients lets MCP clients that people already have talk to the real host: the
// official TypeScript SDK in both majors and the Inspector's command line.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

// tools is where `make clients` installs the pinned packages.
func tools(t *testing.T) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".tools", "clients")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".bin", "mcp-inspector")); err != nil {
		fmt.Println("not run: MCP clients: npm could not install them into .tools/clients")
		if os.Getenv("CI") == "true" {
			t.Fatal("in CI the clients must be there")
		}
		t.Skip("the clients are not installed; make clients does it")
	}
	return dir
}

func TestClients(t *testing.T) {
	dir := tools(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	bin, err := harness.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := harness.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	host, err := harness.NewHost(bin, data, "")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Remove()
	if err := host.Init(ctx); err != nil {
		t.Fatal(err)
	}
	key, err := host.Key(ctx, "agent")
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Stop() }()
	node := filepath.Join(dir, "node_modules", ".bin", "node")
	url := host.URL + "/mcp"

	for _, script := range []string{"v1.mjs", "v2.mjs"} {
		t.Run(script, func(t *testing.T) {
			// A script finds its packages beside itself, so that it runs from where they are.
			copied := filepath.Join(dir, script)
			source, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied, source, 0o600); err != nil {
				t.Fatal(err)
			}
			var out struct {
				Tools      []string
				Refused    *string
				Structured struct {
					Operators []struct{ PrimaryTool string }
				}
				IsError bool
			}
			run(t, ctx, dir, &out, node, copied, url, key)
			if !slices.Contains(out.Tools, "mkt_diagnose_marketing") || slices.Contains(out.Tools, "smtp_send") {
				t.Errorf("tools: %v", out.Tools)
			}
			if out.IsError || len(out.Structured.Operators) == 0 || out.Structured.Operators[0].PrimaryTool != "mkt_diagnose_marketing" {
				t.Errorf("call: %+v", out)
			}
			if out.Refused != nil && *out.Refused == "" {
				t.Error("a call without a key was served")
			}
		})
	}

	t.Run("inspector", func(t *testing.T) {
		inspect := func(out any, args ...string) {
			run(t, ctx, dir, out, node, append([]string{filepath.Join(dir, "node_modules", ".bin", "mcp-inspector"), "--cli", "--transport", "http", "--format", "json", "-q", "--stored-auth-only", "--server-url", url}, args...)...)
		}
		var list struct {
			Result struct{ Tools []struct{ Name string } }
		}
		inspect(&list, "--method", "tools/list")
		if len(list.Result.Tools) < 20 {
			t.Errorf("tools/list: %d tools", len(list.Result.Tools))
		}
		var call struct {
			Result struct {
				StructuredContent struct{ Operators []any }
				IsError           bool
			}
		}
		inspect(&call, "--header", "X-Api-Key: "+key, "--method", "tools/call", "--tool-name", "platform_list_operators", "--tool-args-json", "{}")
		if call.Result.IsError || len(call.Result.StructuredContent.Operators) == 0 {
			t.Errorf("tools/call: %+v", call)
		}
		inspect(nil, "--protocol-era", "modern", "--method", "tools/list", "--strict")
	})
}

// run runs a program and decodes what it prints.
func run(t *testing.T, ctx context.Context, dir string, out any, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Join(dir, "node_modules", ".bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s\n%.2000s", strings.Join(args, " "), err, stderr.String(), stdout.String())
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		t.Fatalf("%s printed %.500q: %v", strings.Join(args, " "), stdout.String(), err)
	}
}
