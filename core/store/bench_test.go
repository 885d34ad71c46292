package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// The rate of the store is judged against what the same database does with one bare
// connection and one row per commit: compare ns/op of raw and intx within one run.
// Durable figures need a Postgres with fsync on, named by SALLYPORT_TEST_DATABASE_URL;
// the one that the tests start by themselves has it off.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(testing.TB) *store.DB
	}{{store.SQLite, testdb.SQLite}, {store.Postgres, testdb.Postgres}} {
		b.Run(kind.name, func(b *testing.B) {
			db := kind.open(b)
			b.Run("raw", func(b *testing.B) { rawCommits(b, db) })
			b.Run("intx", func(b *testing.B) { storeCommits(b, db, 1) })
			b.Run("intx16", func(b *testing.B) { storeCommits(b, db, 16) })
		})
	}
}

var benchRow atomic.Int64

func rawCommits(b *testing.B, db *store.DB) {
	ctx := context.Background()
	conn, err := db.WriterSQL().Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for b.Loop() {
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{})
		if err != nil {
			b.Fatal(err)
		}
		statement := fmt.Sprintf("INSERT INTO throttles (key, count, window_start) VALUES ('raw %d', 1, 0)", benchRow.Add(1))
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func storeCommits(b *testing.B, db *store.DB, callers int) {
	b.SetParallelism(callers)
	b.ResetTimer()
	one := func() error {
		return db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			return tx.PutThrottle(ctx, &store.Throttle{Key: fmt.Sprint("store ", benchRow.Add(1)), Count: 1})
		})
	}
	if callers == 1 {
		for b.Loop() {
			if err := one(); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := one(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
