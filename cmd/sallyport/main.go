// Command sallyport is the host of the platform and its command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/server"
)

// Exit codes of every command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitAuth        = 3
	exitUnreachable = 4
	exitCheck       = 5
)

// app is what commands share: streams, environment and global flags.
type app struct {
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	getenv func(string) string

	json       bool
	configFile string
	serverURL  string
	flags      map[string]*string // configuration keys that flags may set
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

// run executes the command line and returns its exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, getenv func(string) string) int {
	a := &app{in: in, out: out, errOut: errOut, getenv: getenv, flags: map[string]*string{}}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	return a.report(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "sallyport",
		Short:         "Operators that draft, people who approve, one door out",
		Long:          "Sallyport turns a goal into evidence, drafts and proposed actions. Nothing leaves before a person approved exactly that content.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.configFile, "config", "", "configuration file (default ./sallyport.yaml if it is there)")
	f.StringVar(&a.serverURL, "server", "", "address of a running host (default: the base URL)")
	for _, flag := range []struct{ name, key, help string }{
		{"addr", "addr", "listen address"}, {"data", "data", "data directory"}, {"database-url", "databaseUrl", "Postgres address; SQLite in the data directory when absent"},
		{"base-url", "baseUrl", "public address, with a name"}, {"plugins", "plugins", "plugin directory"}, {"log-level", "logLevel", "debug, info, warn or error"},
		{"allow-unjailed", "allowUnjailed", "third-party plugins that may run unconfined, by name"},
	} {
		value := new(string)
		a.flags[flag.key] = value
		f.StringVar(value, flag.name, "", flag.help)
	}
	root.AddCommand(a.serveCmd(), a.initCmd(), a.doctorCmd(), a.userCmd(), a.tokenCmd(), a.keyCmd(), a.runCmd(), a.actionCmd(),
		a.pluginCmd(), a.connectorCmd(), a.auditCmd(), a.openapiCmd(), a.mcpCmd(), a.configCmd(), a.versionCmd())
	return root
}

// config reads the configuration as flags, environment and file give it.
func (a *app) config() (server.Config, []server.Setting, error) {
	flags := map[string]string{}
	for key, value := range a.flags {
		if *value != "" {
			flags[key] = *value
		}
	}
	path := a.configFile
	if path == "" {
		path = a.getenv("SALLYPORT_CONFIG")
	}
	cfg, shown, err := server.LoadConfig(flags, a.getenv, path)
	if err != nil {
		return cfg, shown, usage(err)
	}
	return cfg, shown, nil
}

// print writes a value as JSON, or the text when JSON is not wanted.
func (a *app) print(v any, text func(w io.Writer)) error {
	if !a.json && text != nil {
		text(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// exitError carries an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

func checkFailed(format string, args ...any) error {
	return &exitError{exitCheck, fmt.Errorf(format, args...)}
}

// report prints what failed, why and what to do, and picks the exit code.
func (a *app) report(err error) int {
	code := exitFailed
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
	} else if strings.HasPrefix(err.Error(), "unknown command") || strings.Contains(err.Error(), "arg(s)") || strings.HasPrefix(err.Error(), "required flag") {
		code = exitUsage
	}
	ce, ok := errors.AsType[*core.Error](err)
	if ok {
		switch ce.Kind {
		case core.KindUnauthenticated, core.KindForbidden:
			code = exitAuth
		case core.KindUnavailable:
			code = exitUnreachable
		}
	}
	if a.json && ok {
		_ = json.NewEncoder(a.errOut).Encode(map[string]any{"code": ce.Code, "detail": ce.Detail, "errors": ce.Fields})
		return code
	}
	fmt.Fprintln(a.errOut, "sallyport:", err)
	if ok {
		for _, f := range ce.Fields {
			fmt.Fprintf(a.errOut, "  %s %s\n", f.Pointer, f.Message)
		}
		if ce.ReviewURL != "" {
			fmt.Fprintln(a.errOut, "  review:", ce.ReviewURL)
		}
	}
	return code
}
