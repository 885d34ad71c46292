package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sallyport-dev/sallyport/core"
)

// ErrNested is returned by InTx inside another InTx. On SQLite it would wait for
// itself; on Postgres it would commit apart from the outer one.
var ErrNested = errors.New("store: a transaction inside a transaction: pass the Tx down instead")

// StrictTx makes reads on a DB panic when their context belongs to a transaction:
// they would not see what the transaction wrote. Tests set it, before they start.
var StrictTx = false

// maxTries is how often a transaction runs when the database asks to repeat it.
const maxTries = 4

// waitForWriter is how long a transaction waits for its turn. A database that another
// program keeps locked must be told to callers while they still listen.
const waitForWriter = 5 * time.Second

// Tx is one transaction. It has every read of DB, which see what it wrote, and every
// write. It must not be used after the function that received it returned, nor from
// several goroutines. Inside it, call no plugin and wait for no network.
type Tx struct {
	Reader
	tx    bun.Tx
	conn  *sql.Conn       // the connection it runs on
	ctx   context.Context // it is rolled back when this ends
	after []func()

	now, asked time.Time // the server's time, and ours when it was asked

	head      *LogHead // once locked
	headDirty bool
	held      map[string]any // rows as they were when locked
	runs      map[string]*lockedRun
	briefs    map[string]ownBrief
	pending   []pending
	broken    error // of a write that was kept back
}

type txKey struct{}

// Detached is ctx without the mark of its transaction, for work that a transaction
// starts but that does not belong to it.
func Detached(ctx context.Context) context.Context { return context.WithValue(ctx, txKey{}, nil) }

// InTransaction reports whether ctx belongs to a transaction, so that code that waits
// on plugins or on the network can refuse.
func InTransaction(ctx context.Context) bool { return ctx.Value(txKey{}) != nil }

// InTx runs fn in one transaction: committed when fn returns nil, rolled back when it
// fails or panics. If the database reports a conflict with another transaction, fn
// runs again, at most three times more, so it must not touch anything but tx.
// Locks are taken in the order action, run, log head.
func (db *DB) InTx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if InTransaction(ctx) {
		return ErrNested
	}
	var err error
	for try := 1; ; try++ {
		err = db.once(ctx, fn)
		// SQLite has waited out its busy time already: trying again would only wait longer.
		if err == nil || !repeatable(err) || try == maxTries || ctx.Err() != nil || db.driver == SQLite {
			break
		}
		db.log.Debug("transaction repeated", "try", try, "cause", err)
	}
	if err != nil && (repeatable(err) || errors.Is(err, errBusy)) {
		return &core.Error{Kind: core.KindUnavailable, Code: "database_busy",
			Detail: "The database was too busy to finish this. Nothing was changed; try again.", RetryAfter: time.Second, Err: err}
	}
	return err
}

func (db *DB) once(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	turn, cancel := context.WithTimeout(ctx, waitForWriter)
	db.writes.prepare(turn, db.write.DB)
	conn, err := db.write.Conn(turn)
	cancel()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return errBusy
	}
	if err != nil {
		return failed("wait for the writer", err)
	}
	defer conn.Close()
	btx, err := conn.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return failed("begin a transaction", err)
	}
	done := false
	defer func() {
		if !done {
			_ = btx.Rollback()
		}
	}()
	tx := &Tx{tx: btx, conn: conn.Conn, ctx: ctx}
	tx.Reader = Reader{db: db, idb: btx, tx: tx}
	err = fn(context.WithValue(ctx, txKey{}, tx), tx)
	if tx.broken != nil { // what failed after it failed only because of it
		return tx.broken
	}
	if err != nil {
		return err
	}
	if err := tx.flush(ctx); err != nil {
		return err
	}
	done = true
	if err := btx.Commit(); err != nil {
		return failed("commit", err)
	}
	for _, fn := range tx.after {
		fn()
	}
	return nil
}

// w is the transaction for writes that are made at once, after those kept back.
func (tx *Tx) w(ctx context.Context) bun.Tx {
	_ = tx.flush(ctx) // its error fails the statement, and stays
	return tx.tx
}

// Now is the time by which leases and deadlines are judged. The server is asked once
// in a transaction; from there on the time that passed here is added.
func (tx *Tx) Now(ctx context.Context) (time.Time, error) {
	if tx.asked.IsZero() {
		now, err := tx.Reader.Now(ctx)
		if err != nil {
			return time.Time{}, err
		}
		tx.now, tx.asked = now, tx.db.clock.Now()
		return now, nil
	}
	return At(tx.now.Add(tx.db.clock.Now().Sub(tx.asked))).Time, nil
}

// AfterCommit has fn called once the transaction is committed, and not if it is rolled
// back, for example to wake those who wait for what it wrote. If the process dies in
// between it is not called either, so it must only save time.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// SQL is the transaction for the job queue, which enqueues in it.
func (tx *Tx) SQL() *sql.Tx { return tx.tx.Tx }

// errBusy says that the writer was not free in time.
var errBusy = errors.New("store: the writer was not free in time")

// repeatable reports whether the database asked to run the transaction again.
func repeatable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01" // serialisation failure, deadlock
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_BUSY
	}
	return false
}

// duplicate reports whether a unique index refused a row.
func duplicate(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505"
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// failed says what the store was doing when the database failed. A failure that is
// not ours to repeat means that nothing was written, which callers turn into 503.
func failed(doing string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || repeatable(err) || duplicate(err) {
		return fmt.Errorf("store: %s: %w", doing, err)
	}
	return &core.Error{Kind: core.KindUnavailable, Code: "database_failed",
		Detail: "The database refused or did not answer, so nothing was changed. Try again; if it stays, run sallyport doctor.",
		Err:    fmt.Errorf("%s: %w", doing, err)}
}
