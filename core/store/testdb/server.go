package testdb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx"
)

// Server is a Postgres that was started for tests. It listens on a unix socket in a
// directory of its own and nowhere else, and keeps nothing safe from a power loss.
type Server struct {
	URL   string
	stdin *os.File // closing it stops the server
	cmd   *exec.Cmd
}

// keeper starts Postgres and stops it when its standard input ends, which it does when
// the process that holds the other end closes it or dies, however that happens.
const keeper = `
"$1" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=200 -c log_min_messages=error -c autovacuum=off >"$2/log" 2>&1 </dev/null &
pg=$!
while read -r _; do :; done
kill -INT "$pg" 2>/dev/null
wait "$pg"
rm -rf "$2"
`

// unsafe makes tests fast. It stands in the configuration, not on the command line, so
// that a measurement can switch it back with ALTER SYSTEM.
const unsafe = "fsync = off\nfull_page_writes = off\n"

// startWithin is how long a server may take until it answers.
const startWithin = 60 * time.Second

// StartPostgres makes a database directory and starts a server on it with the binaries
// that are on the machine. It ends with this process at the latest.
func StartPostgres() (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	user, err := ordinaryUser()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "spg") // short: the path of a socket has about 100 characters
	if err != nil {
		return nil, fmt.Errorf("directory for Postgres: %w", err)
	}
	s, err := start(bin, user, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func start(bin string, user asUser, dir string) (*Server, error) {
	if err := user.own(dir); err != nil {
		return nil, err
	}
	initdb := user.command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "sallyport", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	if err := appendTo(filepath.Join(dir, "data", "postgresql.conf"), unsafe); err != nil {
		return nil, err
	}
	stdin, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to Postgres: %w", err)
	}
	cmd := user.command("/bin/sh", "-c", keeper, "keeper", filepath.Join(bin, "postgres"), dir)
	cmd.Dir, cmd.Stdin = dir, stdin
	detach(cmd) // an interrupt from the terminal must reach Postgres through the keeper only
	err = cmd.Start()
	_ = stdin.Close()
	if err != nil {
		_ = hold.Close()
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	s := &Server{stdin: hold, cmd: cmd, URL: "postgres://sallyport@/postgres?" + url.Values{"host": {dir}, "sslmode": {"disable"}}.Encode()}
	if err := s.wait(dir); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("configuration of Postgres: %w", err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (s *Server) wait(dir string) error {
	deadline := time.Now().Add(startWithin)
	for {
		err := admin(s.URL, "SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return fmt.Errorf("the server did not answer: %w: %s", err, bytes.TrimSpace(log))
		}
		time.Sleep(50 * time.Millisecond) // between two questions to another process; nothing here waits for it to have passed
	}
}

// Stop stops the server and removes its files.
func (s *Server) Stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// admin runs one statement on the server's own database.
func admin(address, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// findBinaries is the directory of the newest initdb with its postgres.
func findBinaries() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { // 9 before 16
		return len(b) - len(a) + strings.Compare(b, a)*boolInt(len(a) == len(b))
	})
	dirs = append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
	dirs = append(dirs, "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin", "/usr/local/opt/postgresql/bin")
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("no Postgres server on this machine; install one (on Debian: apt-get install postgresql) or set " + EnvURL)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
