package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/uptrace/bun"
)

// SQLite spends more time on reading a statement of fifty columns than on finding the
// row, so there the statements of the reads that every call makes are kept prepared.
// Postgres gets them with their values, as everything else: behind a pooler the next
// transaction may run on a connection that knows no statement.

// statements are those that are prepared on one pool of connections.
type statements struct {
	mu     sync.Mutex
	ready  map[string]*sql.Stmt
	wanted []string // asked for while the only connection was in use
}

// lookup reads the single row of a table that a condition selects.
func lookup[T any](ctx context.Context, r Reader, noun, id, where string, args ...any) (*T, error) {
	return lookupIn[T](ctx, r, noun, id, nil, where, args...)
}

// lookupIn is lookup with columns and joins of its own, which must be the same for all
// calls with the same row type and condition.
func lookupIn[T any](ctx context.Context, r Reader, noun, id string, shape filter, where string, args ...any) (*T, error) {
	if r.db.driver != SQLite {
		return one[T](ctx, r, noun, id, func(q *bun.SelectQuery) *bun.SelectQuery { return shaped(q, shape).Where(where, args...) })
	}
	rows, err := prepared[T](ctx, r, shape, where, "", 1, args)
	if err != nil {
		return nil, failed("read a "+noun, err)
	}
	if len(rows) == 0 {
		return nil, missing(noun, id)
	}
	return &rows[0], nil
}

// lookups reads every row that a condition selects, in an order; never nil.
func lookups[T any](ctx context.Context, r Reader, noun, where, order string, args ...any) ([]T, error) {
	if r.db.driver != SQLite {
		return all[T](ctx, r, noun, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where(where, args...).OrderExpr(order) })
	}
	rows, err := prepared[T](ctx, r, nil, where, order, 0, args)
	if err != nil {
		return nil, failed("read "+noun+" rows", err)
	}
	return rows, nil
}

func shaped(q *bun.SelectQuery, shape filter) *bun.SelectQuery {
	if shape == nil {
		return q
	}
	return shape(q)
}

func prepared[T any](ctx context.Context, r Reader, shape filter, where, order string, limit int64, args []any) ([]T, error) {
	r.q(ctx) // as every read: in its place
	text, err := r.db.textOf(reflect.TypeFor[T](), where+" ORDER "+order, func() *bun.SelectQuery {
		holes := make([]any, len(args))
		for i := range holes {
			holes[i] = bun.Safe("?")
		}
		q := shaped(r.db.read.NewSelect().Model((*T)(nil)), shape).Where(where, holes...)
		if order != "" {
			q = q.OrderExpr(order)
		}
		if limit > 0 {
			q = q.Limit(limit)
		}
		return q
	})
	if err != nil {
		return nil, err
	}
	found, err := r.ask(ctx, text, args)
	if err != nil {
		return nil, err
	}
	rows := []T{}
	if err := r.db.read.ScanRows(ctx, found, &rows); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return rows, nil
}

// textKey names a statement by what its text follows from.
type textKey struct {
	row  reflect.Type
	rest string
}

// textOf is the text of a statement with holes for its values.
func (db *DB) textOf(row reflect.Type, rest string, build func() *bun.SelectQuery) (string, error) {
	key := textKey{row, rest}
	if text, ok := db.texts.Load(key); ok {
		if text, ok := text.(string); ok {
			return text, nil
		}
	}
	b, err := build().AppendQuery(db.read.QueryGen(), nil)
	if err != nil {
		return "", fmt.Errorf("store: statement for %s: %w", row, err)
	}
	db.texts.Store(key, string(b))
	return string(b), nil
}

// ask runs a read, prepared where that is possible: a transaction occupies the only
// connection on which its statements could be prepared, so what it lacks is prepared
// before the next.
func (r Reader) ask(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	if r.tx != nil {
		s := &r.db.writes
		s.mu.Lock()
		stmt := s.ready[text]
		if stmt == nil {
			s.wanted = append(s.wanted, text)
		}
		s.mu.Unlock()
		if stmt == nil {
			return r.tx.tx.Tx.QueryContext(ctx, text, args...)
		}
		return r.tx.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	stmt, err := r.db.reads.get(ctx, r.db.read.DB, text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// get prepares a statement once.
func (s *statements) get(ctx context.Context, pool *sql.DB, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.ready[text]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := pool.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.ready[text]; first != nil {
		_ = stmt.Close() // somebody else was quicker
		return first, nil
	}
	if s.ready == nil {
		s.ready = map[string]*sql.Stmt{}
	}
	s.ready[text] = stmt
	return stmt, nil
}

// prepare makes the statements that transactions lacked. One that fails is asked for
// again by the next.
func (s *statements) prepare(ctx context.Context, pool *sql.DB) {
	s.mu.Lock()
	wanted := s.wanted
	s.wanted = nil
	s.mu.Unlock()
	for _, text := range wanted {
		_, _ = s.get(ctx, pool, text)
	}
}
