// Package testdb gives tests fresh databases of both kinds. SQLite is always there;
// Postgres comes from SALLYPORT_TEST_DATABASE_URL, else from server binaries found on
// the machine. Where there is none the Postgres half prints one line that begins with
// "not run:"; in CI that is a failure.
package testdb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// EnvURL names a Postgres on which the tests may create and drop databases.
const EnvURL = "SALLYPORT_TEST_DATABASE_URL"

func init() { store.StrictTx = true }

// Each runs fn as a subtest on a fresh, migrated database of each kind.
func Each(t *testing.T, fn func(t *testing.T, db *store.DB)) {
	t.Helper()
	t.Run(store.SQLite, func(t *testing.T) { fn(t, SQLite(t)) })
	t.Run(store.Postgres, func(t *testing.T) { fn(t, Postgres(t)) })
}

// EachURL is Each for tests that open the database themselves, perhaps several times.
// The database is empty: it was not migrated.
func EachURL(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run(store.SQLite, func(t *testing.T) { fn(t, SQLiteURL(t)) })
	t.Run(store.Postgres, func(t *testing.T) { fn(t, PostgresURL(t)) })
}

// SQLite opens a fresh, migrated SQLite database in a directory of the test.
func SQLite(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, SQLiteURL(t), nil)
}

// SQLiteURL names an SQLite file that does not exist yet.
func SQLiteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "sallyport.db")
}

// Postgres opens a fresh, migrated Postgres database, or skips the test.
func Postgres(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, PostgresURL(t), nil)
}

// Open opens and migrates a database for the time of the test. The clock may be nil.
func Open(t testing.TB, address string, clock core.Clock) *store.DB {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{URL: address, Clock: clock})
	if err != nil {
		t.Fatalf("open %s: %v", address, err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	if err := db.Migrate(ctx); err != nil {
		t.Fatalf("migrate %s: %v", address, err)
	}
	return db
}

// PostgresURL creates an empty Postgres database for the time of the test and names
// it, or skips the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	server, err := sharedServer()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("not run: postgres: %v", err)
		}
		t.Skipf("not run: postgres: %v", err)
	}
	var random [6]byte
	_, _ = rand.Read(random[:])
	name := "t_" + hex.EncodeToString(random[:])
	if err := admin(server.URL, `CREATE DATABASE "`+name+`" TEMPLATE template0`); err != nil {
		t.Fatalf("create a Postgres database: %v", err)
	}
	t.Cleanup(func() {
		if err := admin(server.URL, `DROP DATABASE IF EXISTS "`+name+`" WITH (FORCE)`); err != nil {
			t.Logf("drop the Postgres database %s: %v", name, err)
		}
	})
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatalf("address of Postgres: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

// sharedServer is the Postgres of this test process. One that it started is held here
// until the process ends: collected as garbage, it would stop.
var sharedServer = sync.OnceValues(func() (*Server, error) {
	if address := os.Getenv(EnvURL); address != "" {
		return &Server{URL: address}, nil
	}
	return StartPostgres()
})
