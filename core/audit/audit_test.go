package audit_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func newLog(t *testing.T, db *store.DB) *audit.Log {
	t.Helper()
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return audit.New(db, keys, core.SystemClock{}, nil)
}

func entry(n int) audit.Entry {
	owner := "usr_1"
	return audit.Entry{Actor: core.Actor{Kind: core.ActorKindKey, ID: "key_1", Label: "ci@example.test", OnBehalfOf: &owner}, WorkspaceID: "ws_a",
		Action: "action.approved", Target: fmt.Sprintf("act_%d", n), RequestID: "req_1", TraceID: "trace", IP: "192.0.2.1", Details: map[string]any{"digest": fmt.Sprint(n)}}
}

func appendN(t *testing.T, db *store.DB, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		err := db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			_, err := l.Append(ctx, tx, entry(i))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t *testing.T, db *store.DB, l *audit.Log) *audit.Verdict {
	t.Helper()
	v, err := audit.Verify(context.Background(), db, l.VerifierKey())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func checkpoint(t *testing.T, l *audit.Log) audit.Checkpoint {
	t.Helper()
	c, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLogVerifies(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		l := newLog(t, db)
		if v := verify(t, db, l); !v.OK || v.Size != 0 {
			t.Fatalf("empty log: %+v", v)
		}
		checkpoint(t, l)
		for _, n := range []int{1, 1, 5, 9, 30} {
			appendN(t, db, l, n)
			checkpoint(t, l)
			checkpoint(t, l) // the same size again
		}
		v := verify(t, db, l)
		if !v.OK || v.Size != 46 || v.Checkpoints != 6 || v.FirstBad != -1 {
			t.Fatalf("%+v", v)
		}
		if c := checkpoint(t, l); c.Size != 46 {
			t.Errorf("checkpoint over %d entries", c.Size)
		}
	})
}

func TestEntryStandsAndFallsWithItsTransaction(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		l := newLog(t, db)
		boom := errors.New("boom")
		err := db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			if _, err := l.Append(ctx, tx, entry(1)); err != nil {
				return err
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		err = db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			for want := range int64(3) { // several in one transaction
				if seq, err := l.Append(ctx, tx, entry(1)); err != nil || seq != want {
					return fmt.Errorf("number %d, %w", seq, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if v := verify(t, db, l); !v.OK || v.Size != 3 {
			t.Errorf("%+v", v)
		}
	})
}

func TestAppendNowSharesTransactionsAndLosesNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		l := newLog(t, db)
		const callers, each = 16, 10
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					if err := l.AppendNow(context.Background(), entry(c*each+i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if v := verify(t, db, l); !v.OK || v.Size != callers*each {
			t.Fatalf("%+v", v)
		}
		seen := map[string]bool{}
		rows, err := db.AllAuditEntries(context.Background(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			seen[r.Target] = true
		}
		if len(seen) != callers*each {
			t.Errorf("%d different entries of %d", len(seen), callers*each)
		}
		err = db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error { return l.AppendNow(ctx, entry(1)) })
		if !errors.Is(err, store.ErrNested) {
			t.Errorf("AppendNow inside a transaction: %v", err)
		}
	})
}

// columns that no verification can or needs to cover: log_head.id is fixed and
// event_seq belongs to the outbox.
var outside = map[string]bool{"log_head.id": true, "log_head.event_seq": true}

func TestEveryChangedColumnIsFound(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := mathrand.New(mathrand.NewPCG(uint64(seed), 1))
	db := testdb.SQLite(t)
	ctx := context.Background()
	l := newLog(t, db)
	appendN(t, db, l, 7)
	checkpoint(t, l)
	appendN(t, db, l, 12)
	checkpoint(t, l)
	sqlDB := db.WriterSQL()
	changed := 0
	for _, table := range []string{"audit_entries", "audit_hashes", "audit_checkpoints", "log_head"} {
		var ids []int64
		rows, err := sqlDB.QueryContext(ctx, "SELECT rowid FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		_ = rows.Close()
		names, err := columns(ctx, db, table)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range names {
			if outside[table+"."+column] {
				continue
			}
			row := ids[rnd.IntN(len(ids))]
			var old any
			if err := sqlDB.QueryRowContext(ctx, "SELECT "+column+" FROM "+table+" WHERE rowid = ?", row).Scan(&old); err != nil {
				t.Fatal(err)
			}
			for _, damaged := range []any{flip(rnd, old), nil} {
				if reflect.DeepEqual(damaged, old) {
					continue
				}
				if _, err := sqlDB.ExecContext(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE rowid = ?", damaged, row); err != nil {
					continue // the table itself refuses: NOT NULL
				}
				changed++
				if v, err := audit.Verify(ctx, db, l.VerifierKey()); err == nil && v.OK {
					t.Errorf("%s.%s of row %d: %v for %v was not found", table, column, row, damaged, old)
				}
				if isKey(table, column) { // the row has moved
					_, err = sqlDB.ExecContext(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE "+column+" = ?", old, damaged)
				} else {
					_, err = sqlDB.ExecContext(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE rowid = ?", old, row)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if changed < 30 {
		t.Errorf("only %d changes were tried", changed)
	}
	if v := verify(t, db, l); !v.OK {
		t.Fatalf("after restoring: %+v", v)
	}
}

func isKey(table, column string) bool {
	return map[string]string{"audit_entries": "seq", "audit_hashes": "idx", "audit_checkpoints": "tree_size", "log_head": "id"}[table] == column
}

func columns(ctx context.Context, db *store.DB, table string) ([]string, error) {
	rows, err := db.WriterSQL().QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	return rows.Columns()
}

// flip changes one bit or one unit of a value.
func flip(rnd *mathrand.Rand, v any) any {
	switch v := v.(type) {
	case int64:
		return v + 1000003
	case string:
		if v == "" {
			return "x"
		}
		b := []byte(v)
		b[rnd.IntN(len(b))] ^= 1
		return string(b)
	case []byte:
		b := append([]byte(nil), v...)
		b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		return b
	}
	return "x"
}

func TestMissingRowsAreFound(t *testing.T) {
	ctx := context.Background()
	for _, statement := range []string{
		"DELETE FROM audit_entries WHERE seq = 4",
		"DELETE FROM audit_entries WHERE seq = 9",
		"DELETE FROM audit_hashes WHERE idx = 6",
		"UPDATE log_head SET audit_size = 8, frontier = (SELECT hash FROM audit_hashes WHERE idx = 14)", // cut short, head and all
		"UPDATE audit_entries SET personal = NULL, personal_salt = NULL WHERE seq = 2",
	} {
		db := testdb.SQLite(t)
		l := newLog(t, db)
		appendN(t, db, l, 10)
		checkpoint(t, l)
		if _, err := db.WriterSQL().ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
		if v := verify(t, db, l); v.OK {
			t.Errorf("%s: was not found", statement)
		}
	}
}

func TestRewrittenLogIsNotSigned(t *testing.T) {
	ctx := context.Background()
	db := testdb.SQLite(t)
	l := newLog(t, db)
	appendN(t, db, l, 6)
	checkpoint(t, l)
	// Someone who can write the database replaces the whole log by a consistent other one.
	for _, table := range []string{"audit_entries", "audit_hashes"} {
		if _, err := db.WriterSQL().ExecContext(ctx, "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.WriterSQL().ExecContext(ctx, "UPDATE log_head SET audit_size = 0, frontier = NULL"); err != nil {
		t.Fatal(err)
	}
	appendN(t, db, l, 9)
	if v := verify(t, db, l); v.OK {
		t.Error("verification did not find it")
	}
	if _, err := l.Checkpoint(ctx); core.AsError(err).Code != "audit_inconsistent" {
		t.Errorf("it was signed: %v", err)
	}
}

func TestForeignSignerIsFound(t *testing.T) {
	db := testdb.SQLite(t)
	l := newLog(t, db)
	appendN(t, db, l, 2)
	checkpoint(t, l)
	_, foreign, err := note.GenerateKey(rand.Reader, "sallyport-audit")
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.Verify(context.Background(), db, foreign)
	if err != nil || v.OK || !strings.Contains(v.Reason, "checkpoint") {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestErasureKeepsTheTree(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		l := newLog(t, db)
		appendN(t, db, l, 3)
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return l.Erase(ctx, tx, "ws_a", 1, audit.Entry{Actor: core.Actor{Kind: core.ActorKindPerson, ID: "usr_1"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if v := verify(t, db, l); !v.OK || v.Erased != 1 || v.Size != 4 {
			t.Errorf("%+v", v)
		}
		page, err := l.List(ctx, "ws_a", core.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if e := page.Items[2]; e.Seq != 1 || e.Ip != nil || e.Actor.Label != "" {
			t.Errorf("not erased: %+v", e)
		}
	})
}

func TestListShowsResources(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		l := newLog(t, db)
		other := entry(1)
		other.WorkspaceID = "ws_b"
		bad := entry(2)
		bad.Target, bad.RequestID = "a\x00b\xff", strings.Repeat("ü", 400)
		bad.Details = map[string]any{"apiKey": "spk_agent_secret", "nested": map[string]any{"Access-Token": "x", "ok": "1"}, "\x00": "\xff"}
		bad.Personal = map[string]any{"email": "a@example.test"}
		for _, e := range []audit.Entry{other, entry(1), bad} {
			if err := l.AppendNow(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		page, err := l.List(ctx, "ws_a", core.Query{})
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		e := page.Items[0]
		text, _ := json.Marshal(e)
		if strings.Contains(string(text), "spk_agent_secret") || e.Details["apiKey"] != "[redacted]" || e.Details["email"] != "a@example.test" {
			t.Errorf("details: %s", text)
		}
		if e.Actor.Label != "ci@example.test" || *e.Ip != "192.0.2.1" || *e.Actor.OnBehalfOf != "usr_1" || len(e.Hash) != 64 || len(e.PrevHash) != 64 {
			t.Errorf("%s", text)
		}
		if v := verify(t, db, l); !v.OK || v.Size != 3 {
			t.Errorf("text the database would change: %+v", v)
		}
	})
}
