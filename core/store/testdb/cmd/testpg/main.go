// Command testpg runs a command with a Postgres for tests, so that many test processes
// share one server: testpg go test ./... It starts a server unless the environment
// names one already, passes it on in SALLYPORT_TEST_DATABASE_URL, stops it afterwards
// and exits as the command did. Without a server the command runs all the same; its
// tests say what they leave out.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: testpg COMMAND [ARGUMENT...]")
		return 2
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if os.Getenv(testdb.EnvURL) == "" {
		server, err := testdb.StartPostgres()
		if err != nil {
			fmt.Fprintf(os.Stderr, "not run: postgres: %v\n", err)
		} else {
			defer server.Stop()
			cmd.Env = append(cmd.Env, testdb.EnvURL+"="+server.URL)
		}
	}
	// The command receives an interrupt from the terminal itself; we stay to stop the server.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testpg: %v\n", err)
		return 1
	}
	return 0
}
