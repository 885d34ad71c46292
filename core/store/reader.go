package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Reader has every read. DB reads the last committed state; Tx reads its own.
type Reader struct {
	db    *DB
	idb   bun.IDB
	tx    *Tx  // nil outside of a transaction
	apart bool // reads nothing that writes kept back could change
}

func (r Reader) q(ctx context.Context) bun.IDB {
	if r.tx != nil && !r.apart {
		_ = r.tx.flush(ctx) // its error fails the read too, and stays
	}
	if StrictTx && r.tx == nil && InTransaction(ctx) {
		panic("store: a read on the DB inside a transaction does not see what the transaction wrote; use the Tx")
	}
	return r.idb
}

// Driver is SQLite or Postgres.
func (r Reader) Driver() string { return r.db.driver }

type filter = func(*bun.SelectQuery) *bun.SelectQuery

func missing(noun, id string) error {
	return core.Errf(core.KindNotFound, "not_found", "There is no %s %s here.", noun, id)
}

// one reads the single row that the filter selects.
func one[T any](ctx context.Context, r Reader, noun, id string, f filter) (*T, error) {
	row := new(T)
	err := f(r.q(ctx).NewSelect().Model(row)).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing(noun, id)
	}
	if err != nil {
		return nil, failed("read a "+noun, err)
	}
	return row, nil
}

// byID reads a row of a workspace by its identifier.
func byID[T any](ctx context.Context, r Reader, noun string, ws WorkspaceID, id string) (*T, error) {
	return lookup[T](ctx, r, noun, id, "id = ? AND workspace_id = ?", id, ws)
}

// all reads every row that the filter selects; never nil.
func all[T any](ctx context.Context, r Reader, noun string, f filter) ([]T, error) {
	rows := []T{}
	if err := f(r.q(ctx).NewSelect().Model(&rows)).Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, failed("read "+noun+" rows", err)
	}
	if rows == nil {
		rows = []T{}
	}
	return rows, nil
}

// listing describes a paged list: its cursor column, which rises with creation and is
// unique, and the column that Since compares.
type listing[T any] struct {
	noun  string
	key   string // column
	since string // column; "" if the list has no times
	num   bool   // the key is a number
	keyOf func(*T) string
}

// page reads one page, newest first. Rows that arrive later stand before the first
// page, so a cursor never repeats or skips a row.
func (l listing[T]) page(ctx context.Context, r Reader, q core.Query, f filter) (core.Page[T], error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return core.Page[T]{}, err
	}
	after, err := decodeCursor(l.noun, q.Cursor)
	if err != nil {
		return core.Page[T]{}, err
	}
	if _, err := strconv.ParseInt(after, 10, 64); l.num && after != "" && err != nil {
		return core.Page[T]{}, errCursor
	}
	rows, err := all[T](ctx, r, l.noun, func(s *bun.SelectQuery) *bun.SelectQuery {
		s = f(s)
		if after != "" {
			s = s.Where("?TableAlias.? < ?", bun.Ident(l.key), after)
		}
		if l.since != "" && !q.Since.IsZero() {
			s = s.Where("?TableAlias.? >= ?", bun.Ident(l.since), At(q.Since))
		}
		return s.OrderExpr("?TableAlias.? DESC", bun.Ident(l.key)).Limit(int64(limit) + 1)
	})
	if err != nil {
		return core.Page[T]{}, err
	}
	p := core.Page[T]{Items: rows}
	if len(rows) > limit {
		p.Items = rows[:limit]
		p.NextCursor = encodeCursor(l.noun, l.keyOf(&rows[limit-1]))
	}
	return p, nil
}

func pageLimit(n int) (int, error) {
	if n == 0 {
		return core.DefaultLimit, nil
	}
	if n < 0 || n > core.MaxLimit {
		e := core.Errf(core.KindInvalid, "bad_limit", "limit is %d; it must be between 1 and %d.", n, core.MaxLimit)
		e.Fields = []core.FieldError{{Pointer: "/limit", Message: "must be between 1 and 200"}}
		return 0, e
	}
	return n, nil
}

func encodeCursor(noun, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(noun + "\x00" + key))
}

func decodeCursor(noun, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	key, ok := strings.CutPrefix(string(b), noun+"\x00")
	if err != nil || !ok || key == "" || len(key) > 100 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", errCursor
	}
	return key, nil
}

var errCursor = core.Errf(core.KindMalformed, "bad_cursor", "The cursor is not one that this list gave out. Begin again without a cursor.")

// insert adds a row. An identifier or unique value that exists already is a conflict.
func insert[T any](ctx context.Context, tx *Tx, noun string, row *T) error {
	_, err := tx.w(ctx).NewInsert().Model(row).Exec(ctx)
	return added(noun, err)
}

// insertLater adds a row that nothing else in the transaction waits for.
func insertLater[T any](ctx context.Context, tx *Tx, noun string, row *T) error {
	return tx.later(ctx, noun, tx.tx.NewInsert().Model(row), func(_ int64, err error) error { return added(noun, err) })
}

func added(noun string, err error) error {
	if err != nil && duplicate(err) {
		return &core.Error{Kind: core.KindConflict, Code: "already_exists", Detail: "There is such a " + noun + " already.", Err: err}
	}
	if err != nil {
		return failed("add a "+noun, err)
	}
	return nil
}

// versioned is a row that is changed only by compare-and-swap.
type versioned interface {
	ref() (noun, id string, version *int64)
}

// swap writes a row if its stored version is still the one that was read, and raises
// the version. Otherwise the row is untouched, its Version field too. Of a row that this
// transaction holds the columns that differ are written, else all.
func swap[T any, P interface {
	*T
	versioned
}](ctx context.Context, tx *Tx, row P, keep ...string) error {
	noun, id, version := row.ref()
	was := *version
	*version = was + 1
	swapped := func(rows int64, err error) error {
		switch {
		case err != nil && duplicate(err):
			err = &core.Error{Kind: core.KindConflict, Code: "already_exists", Detail: "There is such a " + noun + " already.", Err: err}
		case err != nil:
			err = failed("change a "+noun, err)
		case rows != 1:
			err = core.Errf(core.KindConflict, "changed_meanwhile", "The %s %s was changed by someone else in the meantime. Read it again.", noun, id)
		default:
			return nil
		}
		*version = was
		return err
	}
	keep = append(keep, "created_at")
	if held := heldRow[T](tx, row); held != nil {
		columns := changed(tx, held, (*T)(row), keep)
		return tx.later(ctx, noun, tx.tx.NewUpdate().Model(row).Column(columns...).WherePK().Where("version = ?", was), swapped)
	}
	res, err := tx.w(ctx).NewUpdate().Model(row).ExcludeColumn(keep...).WherePK().Where("version = ?", was).Exec(ctx)
	if err != nil {
		return swapped(0, err)
	}
	n, err := res.RowsAffected()
	return swapped(n, err)
}

// IsChanged reports whether err says that a row was changed since it was read.
func IsChanged(err error) bool {
	e, ok := errors.AsType[*core.Error](err)
	return ok && e.Code == "changed_meanwhile"
}

// set runs an update and answers not_found when it changed nothing.
func set(ctx context.Context, noun, id string, q *bun.UpdateQuery) error {
	res, err := q.Exec(ctx)
	if err != nil {
		return failed("change a "+noun, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return missing(noun, id)
	}
	return nil
}

// remove runs a delete and answers not_found when it removed nothing.
func remove(ctx context.Context, noun, id string, q *bun.DeleteQuery) error {
	res, err := q.Exec(ctx)
	if err != nil {
		return failed("remove a "+noun, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return missing(noun, id)
	}
	return nil
}

// purge runs a delete and tells how many rows went.
func purge(ctx context.Context, noun string, q *bun.DeleteQuery) (int, error) {
	res, err := q.Exec(ctx)
	if err != nil {
		return 0, failed("remove old "+noun+" rows", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, failed("remove old "+noun+" rows", err)
	}
	return int(n), nil
}

// locked adds FOR UPDATE on Postgres; SQLite's single writer needs none.
func (tx *Tx) locked(q *bun.SelectQuery) *bun.SelectQuery {
	if tx.db.driver == Postgres {
		return q.For("UPDATE")
	}
	return q
}

// fresh keeps the entries of ids once each, in order, without empty ones.
func fresh(ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
