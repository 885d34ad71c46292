// Package store keeps everything the host remembers, in SQLite or in Postgres, and
// is the only place that knows SQL. Reads are methods of Reader, which both DB and
// Tx have; writes are methods of Tx alone, so that nothing is written outside a
// transaction. A read of anything that belongs to a workspace takes the workspace as
// a WorkspaceID and answers not_found for things of another one. The few reads that
// cross workspaces have names that begin with System or All; they serve the host's
// own jobs and sign-in, never a caller's request directly.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // database/sql driver "sqlite"

	"github.com/sallyport-dev/sallyport/core"
)

// Drivers.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Sizes of connection pools. SQLite allows one writer at a time, so a second writing
// connection could only wait inside the database instead of in Go.
const (
	sqliteReaders = 8
	postgresConns = 24
)

// Options say which database to open.
type Options struct {
	// URL is postgres://… or sqlite:PATH; a bare path means SQLite.
	URL string
	// Clock is used for bookkeeping times, and as database time on SQLite. The
	// machine's clock when nil.
	Clock core.Clock
	// Log receives warnings; discarded when nil.
	Log *slog.Logger
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Reader
	write  *bun.DB
	read   *bun.DB
	driver string
	path   string // of the SQLite file
	hostID string
	clock  core.Clock
	log    *slog.Logger

	reads, writes statements
	texts         sync.Map // of statements with holes, by textKey

	installation atomic.Pointer[string] // never changes once it is there
}

// Open opens a database and checks that it answers. It neither creates nor changes
// tables: call Migrate. An SQLite file is created when missing.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Clock == nil {
		o.Clock = core.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	db := &DB{clock: o.Clock, log: o.Log, hostID: core.NewID("host", o.Clock.Now())}
	var err error
	switch {
	case strings.HasPrefix(o.URL, "postgres://"), strings.HasPrefix(o.URL, "postgresql://"):
		err = db.openPostgres(o.URL)
	case o.URL == "":
		err = core.Errf(core.KindInvalid, "database_url_missing", "No database is named. Give sqlite:PATH or postgres://USER@HOST/NAME.")
	default:
		err = db.openSQLite(strings.TrimPrefix(o.URL, "sqlite:"))
	}
	if err != nil {
		return nil, err
	}
	db.Reader = Reader{db: db, idb: db.read}
	for _, h := range []*bun.DB{db.write, db.read} {
		if err := h.PingContext(ctx); err != nil {
			_ = db.Close()
			return nil, &core.Error{Kind: core.KindUnavailable, Code: "database_unreachable",
				Detail: "The database does not answer. Check the database URL, that the server runs, and that the file can be written.", Err: err}
		}
	}
	return db, nil
}

func (db *DB) openPostgres(address string) error {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		// The cause is left out: it may repeat the password.
		return core.Errf(core.KindInvalid, "database_url_invalid", "The Postgres address cannot be read. It looks like postgres://USER:PASSWORD@HOST:5432/NAME.")
	}
	// bun writes values into the statement, so a cache of prepared statements only costs.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "sallyport"
	}
	// A lost commit may be a lost sending mark, and with it a second send.
	cfg.RuntimeParams["synchronous_commit"] = "on"
	// Values are written as literals whose backslashes stand for themselves.
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(postgresConns)
	pool.SetMaxIdleConns(postgresConns)
	db.driver = Postgres
	db.write = bun.NewDB(pool, pgdialect.New())
	db.read = db.write
	return nil
}

func (db *DB) openSQLite(path string) error {
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.Contains(path, ":memory:") {
		return core.Errf(core.KindInvalid, "database_url_invalid", "SQLite needs the path of a file: sqlite:PATH.")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("path of the database: %w", err)
	}
	// synchronous(FULL): after a power loss the last acknowledged commit must be
	// there, else an effect that was already sent could be sent again.
	pragmas := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}}
	pragmas.Set("_txlock", "immediate")
	writer, err := sql.Open("sqlite", sqliteDSN(path, pragmas))
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	writer.SetMaxOpenConns(1)
	readOnly := url.Values{"_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	reader, err := sql.Open("sqlite", sqliteDSN(path, readOnly))
	if err != nil {
		_ = writer.Close()
		return fmt.Errorf("open the database for reading: %w", err)
	}
	reader.SetMaxOpenConns(sqliteReaders)
	reader.SetMaxIdleConns(sqliteReaders)
	db.driver, db.path = SQLite, path
	db.write = bun.NewDB(writer, sqlitedialect.New())
	db.read = bun.NewDB(reader, sqlitedialect.New())
	return nil
}

func sqliteDSN(path string, params url.Values) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: params.Encode()}
	return u.String()
}

// Close closes all connections. Transactions that still run fail.
func (db *DB) Close() error {
	err := db.write.Close()
	if db.read != db.write {
		err = errors.Join(err, db.read.Close())
	}
	return err
}

// Driver is SQLite or Postgres.
func (db *DB) Driver() string { return db.driver }

// Path is the SQLite file; empty on Postgres.
func (db *DB) Path() string { return db.path }

// HostID names this opening of the database, as lease owner and in the table of hosts.
func (db *DB) HostID() string { return db.hostID }

// WriterSQL is the writing handle, for the job queue, which brings its own SQL. On
// SQLite it has one connection: using it inside InTx would wait for ever.
func (db *DB) WriterSQL() *sql.DB { return db.write.DB }

// Now is the time by which leases and deadlines are judged: the server's on Postgres,
// so that several hosts agree, and the Clock of the options on SQLite. Inside a
// transaction too it is the present, not the transaction's start.
func (r Reader) Now(ctx context.Context) (time.Time, error) {
	if r.db.driver == SQLite {
		return At(r.db.clock.Now()).Time, nil
	}
	var micros int64
	err := r.idb.NewRaw("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(ctx, &micros)
	if err != nil {
		return time.Time{}, failed("read the time", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}
