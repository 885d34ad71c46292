package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func TestNewerSchemaIsRefused(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		db := testdb.Open(t, url, nil)
		if _, err := db.WriterSQL().ExecContext(ctx, "INSERT INTO bun_migrations (name, group_id) VALUES ('29990101000000', 99)"); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{db.Migrate(ctx), func() error { _, err := db.CheckSchema(ctx); return err }()} {
			if core.AsError(err).Code != "newer_schema" || !strings.Contains(err.Error(), "29990101000000") {
				t.Errorf("%v", err)
			}
		}
	})
}

// An interruption between a migration and the note that it was applied runs it again.
func TestMigrationRunsAgain(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		db := testdb.Open(t, url, nil)
		before, err := db.InstallationID(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.WriterSQL().ExecContext(ctx, "DELETE FROM bun_migrations"); err != nil {
			t.Fatal(err)
		}
		if pending, err := db.CheckSchema(ctx); err != nil || len(pending) == 0 {
			t.Errorf("pending %v, %v", pending, err)
		}
		if err := db.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		if after, err := db.InstallationID(ctx); err != nil || after != before {
			t.Errorf("installation %s, then %s, %v", before, after, err)
		}
	})
}

func TestMigrationsSideBySide(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				db, err := store.Open(context.Background(), store.Options{URL: url})
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Migrate(context.Background()); err != nil {
					t.Error(err)
				}
				_ = db.Close()
			})
		}
		wg.Wait()
	})
}

// Both folders must hold the same migrations, with the same tables.
func TestMigrationsAgree(t *testing.T) {
	tables := func(dir string) string {
		names := ""
		files, _ := filepath.Glob(filepath.Join("migrations", dir, "*.sql"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			names += filepath.Base(file) + "\n"
			for line := range strings.Lines(string(text)) {
				if word := strings.Fields(line); len(word) > 0 && !strings.HasPrefix(line, "--") {
					names += word[0] + " "
					if strings.HasPrefix(line, "CREATE") {
						names += line
					}
				}
			}
		}
		return names
	}
	if a, b := tables(store.SQLite), tables(store.Postgres); a == "" || a != b {
		t.Error("the migrations of SQLite and Postgres differ in tables, columns or indexes")
	}
}
