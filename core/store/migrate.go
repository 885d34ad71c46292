package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"

	"github.com/sallyport-dev/sallyport/core"
)

// Migrations are SQL files, one folder per dialect, with the same names in both. Each
// runs in a transaction of its own and can run again after an interruption.
//
//go:embed migrations
var migrationFiles embed.FS

// migrationLock is the advisory lock under which hosts on one Postgres migrate in turn.
const migrationLock = 7306079160443825

// Migrate brings the tables to the state this binary knows. It is safe to call from
// several processes at once. A database that a newer binary has migrated is refused
// with the conflict newer_schema: this one would not know what its columns mean.
func (db *DB) Migrate(ctx context.Context) error {
	known, err := migrations(db.driver)
	if err != nil {
		return err
	}
	unlock, err := db.lockMigration(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	m := migrate.NewMigrator(db.write, known, migrate.WithMarkAppliedOnSuccess(true))
	if err := m.Init(ctx); err != nil {
		return failed("prepare migrations", err)
	}
	if err := refuseNewer(ctx, m, known); err != nil {
		return err
	}
	if _, err := m.Migrate(ctx); err != nil {
		return failed("migrate", err)
	}
	return db.InTx(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.InsertInstanceValue(ctx, instanceID, core.NewID("ins", db.clock.Now()))
		return err
	})
}

// CheckSchema lists the migrations that Migrate would run, without running any.
func (db *DB) CheckSchema(ctx context.Context) (pending []string, err error) {
	known, err := migrations(db.driver)
	if err != nil {
		return nil, err
	}
	m := migrate.NewMigrator(db.write, known)
	if err := m.Init(ctx); err != nil {
		return nil, failed("prepare migrations", err)
	}
	if err := refuseNewer(ctx, m, known); err != nil {
		return nil, err
	}
	status, err := m.MigrationsWithStatus(ctx)
	if err != nil {
		return nil, failed("read migrations", err)
	}
	for _, s := range status.Unapplied() {
		pending = append(pending, s.Name+"_"+s.Comment)
	}
	return pending, nil
}

func migrations(driver string) (*migrate.Migrations, error) {
	dir, err := fs.Sub(migrationFiles, "migrations/"+driver)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	set := migrate.NewMigrations()
	if err := set.Discover(dir); err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return set, nil
}

func refuseNewer(ctx context.Context, m *migrate.Migrator, known *migrate.Migrations) error {
	applied, err := m.AppliedMigrations(ctx)
	if err != nil {
		return failed("read migrations", err)
	}
	names := map[string]bool{}
	for _, k := range known.Sorted() {
		names[k.Name] = true
	}
	var unknown []string
	for _, a := range applied {
		if !names[a.Name] {
			unknown = append(unknown, a.Name)
		}
	}
	if len(unknown) > 0 {
		return core.Errf(core.KindConflict, "newer_schema",
			"The database was migrated by a newer sallyport (%s). Run that version, or restore a backup made before the upgrade.", strings.Join(unknown, ", "))
	}
	return nil
}

// lockMigration keeps other processes from migrating at the same time.
func (db *DB) lockMigration(ctx context.Context) (unlock func(), err error) {
	if db.driver == SQLite {
		unlock, err := waitForFile(db.path + ".migrate.lock")
		if err != nil {
			return nil, failed("lock migrations", err)
		}
		return unlock, nil
	}
	conn, err := db.write.Conn(ctx) // an advisory lock belongs to its connection
	if err != nil {
		return nil, failed("lock migrations", err)
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(?)", int64(migrationLock)); err != nil {
		_ = conn.Close()
		return nil, failed("lock migrations", err)
	}
	return func() { unlockMigration(conn) }, nil
}

func unlockMigration(conn bun.Conn) {
	// Without the context of the caller: an ended one would leave the lock with a pooled connection.
	_, _ = conn.ExecContext(context.Background(), "SELECT pg_advisory_unlock(?)", int64(migrationLock))
	_ = conn.Close()
}
