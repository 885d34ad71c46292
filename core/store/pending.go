package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun/schema"
)

// On Postgres every statement costs a round trip, and a decision writes half a dozen
// rows. So the writes that nobody waits for are kept back, as finished statements, and
// go to the server together: before the next read that could see them, before the
// transaction takes its place in the log, and before it commits. A write that fails
// fails the transaction, as it would have at once. SQLite has no round trips; there
// every write is made when it is asked for.

// pending is a write that was not sent yet.
type pending struct {
	noun  string
	text  string
	check func(rows int64, err error) error // what its outcome means for the transaction
}

// statement is what bun builds for a write.
type statement interface {
	AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error)
	Exec(ctx context.Context, dest ...any) (sql.Result, error)
}

// later makes a write, on Postgres together with others. Its row must be new or locked
// by this transaction already, so that a wait for a lock comes where it is asked for.
func (tx *Tx) later(ctx context.Context, noun string, q statement, check func(rows int64, err error) error) error {
	if tx.db.driver == SQLite {
		res, err := q.Exec(ctx)
		if err != nil {
			return check(0, err)
		}
		n, err := res.RowsAffected()
		return check(n, err)
	}
	if tx.broken != nil {
		return tx.broken
	}
	b, err := q.AppendQuery(tx.db.write.QueryGen(), nil)
	if err != nil {
		return check(0, err)
	}
	tx.pending = append(tx.pending, pending{noun, string(b), check})
	return nil
}

// flush sends the writes that were kept back. Its error stays: the transaction is over.
func (tx *Tx) flush(ctx context.Context) error {
	if tx.headDirty {
		tx.headDirty = false
		err := tx.later(ctx, "log head", tx.tx.NewUpdate().Model(tx.head).WherePK(), func(rows int64, err error) error {
			if err == nil && rows != 1 {
				err = errors.New("the row is missing")
			}
			if err != nil {
				return failed("change the log head", err)
			}
			return nil
		})
		if err != nil {
			tx.broken = errors.Join(tx.broken, err)
		}
	}
	if tx.broken == nil && len(tx.pending) > 0 {
		_, tx.broken = tx.send("")
	}
	return tx.broken
}

// beside is for reads that none of the writes kept back can change: of a noun that none
// of them is about, or of something that the caller completes from them.
func (tx *Tx) beside(noun string) Reader {
	r := tx.Reader
	r.apart = !slices.ContainsFunc(tx.pending, func(w pending) bool { return w.noun == noun })
	return r
}

// send sends the writes that were kept back, and a read after them where one is given,
// whose single row it returns.
func (tx *Tx) send(read string) (row [][]byte, err error) {
	batch := tx.pending
	tx.pending = nil
	var text strings.Builder
	for _, w := range batch {
		text.WriteString(w.text)
		text.WriteString(";\n")
	}
	text.WriteString(read)
	err = tx.conn.Raw(func(driverConn any) error {
		c, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("store: the driver of Postgres is %T", driverConn)
		}
		row, err = exchange(tx.ctx, c.Conn().PgConn(), text.String(), batch)
		return err
	})
	return row, err
}

// exchange sends statements in one message and judges what came of each.
func exchange(ctx context.Context, c *pgconn.PgConn, text string, batch []pending) (row [][]byte, err error) {
	if c.TxStatus() != 'T' { // else each of them would commit by itself
		return nil, failed("write", errors.New("the transaction is over already"))
	}
	results, err := c.Exec(ctx, text).ReadAll()
	for i, r := range results {
		if i < len(batch) {
			if bad := batch[i].check(r.CommandTag.RowsAffected(), r.Err); bad != nil {
				return nil, bad
			}
			continue
		}
		if r.Err == nil && len(r.Rows) == 1 {
			row = r.Rows[0]
		}
	}
	switch {
	case err != nil && len(results) < len(batch):
		return nil, batch[len(results)].check(0, err)
	case err != nil:
		return nil, failed("read after writing", err)
	}
	return row, nil
}

// lockHead sends what was kept back and takes the transaction's place in the log.
func (tx *Tx) lockHead() (*LogHead, error) {
	row, err := tx.send("SELECT audit_size, encode(frontier, 'hex'), event_seq FROM log_head WHERE id = 1 FOR UPDATE")
	if err == nil && len(row) != 3 {
		err = missing("log head", "")
	}
	if err != nil {
		tx.broken = err
		return nil, err
	}
	head := &LogHead{ID: 1}
	head.AuditSize, err = strconv.ParseInt(string(row[0]), 10, 64)
	if err != nil {
		return nil, failed("read a log head", err)
	}
	if head.EventSeq, err = strconv.ParseInt(string(row[2]), 10, 64); err != nil {
		return nil, failed("read a log head", err)
	}
	if row[1] != nil { // NULL while the log is empty
		if head.Frontier, err = hex.DecodeString(string(row[1])); err != nil {
			return nil, failed("read a log head", err)
		}
	}
	return head, nil
}
