package store_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/storetest"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func TestExercise(t *testing.T) { testdb.Each(t, storetest.Exercise) }

// The suite must call every method, else the second database is untested where it
// matters: in the one that was added last.
func TestExerciseCallsEveryMethod(t *testing.T) {
	called := map[string]bool{}
	files, err := filepath.Glob("storetest/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("sources of the suite: %v, %v", files, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				called[s.Sel.Name] = true
			}
			return true
		})
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[*store.DB](), reflect.TypeFor[*store.Tx]()} {
		for i := range typ.NumMethod() {
			if name := typ.Method(i).Name; !called[name] && name != "Close" {
				t.Errorf("storetest does not call %s.%s", typ, name)
			}
		}
	}
}

func approved(id string) *store.Action {
	return &store.Action{ID: id, WorkspaceID: "ws_a", RunID: "run_1", Status: core.ActionStatusApproved, Executor: core.ActionExecutorConnector}
}

// Two hosts, each with its own connections, want the same actions at the same time:
// every action has exactly one winner, and the losers are told.
func TestConcurrentClaim(t *testing.T) {
	testdb.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		hosts := []*store.DB{testdb.Open(t, url, nil), testdb.Open(t, url, nil)}
		const count, workers = 20, 4
		var won, lost atomic.Int64
		for n := range count {
			id := fmt.Sprintf("act_%d", n)
			if err := hosts[0].InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, approved(id)) }); err != nil {
				t.Fatal(err)
			}
			var wg, read sync.WaitGroup
			read.Add(workers)
			for w := range workers {
				db := hosts[w%len(hosts)]
				wg.Go(func() {
					a, err := db.Action(ctx, "ws_a", id)
					read.Done()
					read.Wait() // all have seen it approved
					if err != nil {
						t.Error(err)
						return
					}
					err = db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
						a.Status, a.LeaseOwner = core.ActionStatusClaimed, db.HostID()
						a.Generation++
						return tx.UpdateAction(ctx, a)
					})
					switch {
					case err == nil:
						won.Add(1)
					case store.IsChanged(err):
						lost.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if a, err := hosts[1].Action(ctx, "ws_a", id); err != nil || a.Generation != 1 || a.Version != 1 {
				t.Fatalf("%s: %+v, %v", id, a, err)
			}
		}
		if won.Load() != count || lost.Load() != count*(workers-1) {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
	})
}

// Transactions that take the same locks in opposite order cannot both go on; the
// database ends one, and it must be run again unseen.
func TestConflictsAreRepeated(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		ids := []string{"act_1", "act_2"}
		for _, id := range ids {
			if err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, approved(id)) }); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		var runs atomic.Int64
		var met sync.WaitGroup
		met.Add(2)
		if db.Driver() == store.SQLite { // its writers come one after the other: nobody to meet
			met.Add(-2)
		}
		for i := range 2 {
			var once sync.Once
			wg.Go(func() {
				err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
					runs.Add(1)
					for j := range 2 {
						a, err := tx.LockAction(ctx, "ws_a", ids[(i+j)%2])
						if err != nil {
							return err
						}
						if j == 0 && db.Driver() == store.Postgres {
							once.Do(func() { met.Done(); met.Wait() }) // both hold one lock and want the other
						}
						a.Generation++
						if err := tx.UpdateAction(ctx, a); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, id := range ids {
			if a, err := db.Action(ctx, "ws_a", id); err != nil || a.Generation != 2 {
				t.Errorf("%s: %+v, %v", id, a, err)
			}
		}
		if db.Driver() == store.Postgres && runs.Load() < 3 {
			t.Errorf("the functions ran %d times: there was no conflict to repeat", runs.Load())
		}
	})
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		err := db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			if err := tx.InsertAction(ctx, approved("act_1")); err != nil {
				return err
			}
			short, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := db.Action(short, "ws_a", "act_1")
			if !core.IsKind(err, core.KindNotFound) {
				return fmt.Errorf("a reader beside the writer: %w", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestEndedContextRollsBack(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(context.Background())
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.InsertAction(ctx, approved("act_1")); err != nil {
				return err
			}
			cancel()
			return nil
		})
		if err == nil {
			t.Error("committed although the context ended")
		}
		if _, err := db.Action(context.Background(), "ws_a", "act_1"); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("the row is there: %v", err)
		}
		// The connection must be usable again.
		if err := db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, approved("act_2")) }); err != nil {
			t.Error(err)
		}
	})
}

func TestBatchSharesTransactions(t *testing.T) {
	var batch store.Batch[int]
	release, entered := make(chan struct{}), make(chan int, 100)
	write := func(_ context.Context, items []int) error {
		entered <- len(items)
		<-release
		if len(items) > 1 {
			return errors.New("shared")
		}
		return nil
	}
	results := make(chan error, 10)
	go func() { results <- batch.Do(context.Background(), 0, write) }()
	if n := <-entered; n != 1 {
		t.Fatalf("first batch of %d", n)
	}
	ended, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for i := range 5 {
		waiting.Add(1)
		go func() {
			ctx := context.Background()
			if i == 0 {
				ctx = ended
			}
			waiting.Done()
			results <- batch.Do(ctx, i, write)
		}()
	}
	waiting.Wait()
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who gave up got %v", err)
	}
	close(release)
	shared := 0
	for range 5 {
		if err := <-results; err != nil {
			shared++
		}
	}
	sum := 0
	for len(entered) > 0 {
		sum += <-entered
	}
	if sum < 4 || sum > 5 { // the one who gave up may have been handed over already
		t.Errorf("%d items were written after the first", sum)
	}
	if shared == 0 {
		t.Error("nobody shared a transaction")
	}
}

func TestOpenRefusesBadAddresses(t *testing.T) {
	for _, c := range [][2]string{
		{"", "database_url_missing"}, {"sqlite:", "database_url_invalid"}, {"sqlite::memory:", "database_url_invalid"},
		{"postgres://u:hunter2@[", "database_url_invalid"}, {"sqlite:/nowhere/at/all/x.db", "database_unreachable"},
		{"postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=2", "database_unreachable"},
	} {
		db, err := store.Open(context.Background(), store.Options{URL: c[0]})
		if err == nil {
			_ = db.Close()
		}
		if core.AsError(err).Code != c[1] || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

func TestFileNamesWithSpecialCharacters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%41&e")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	testdb.Open(t, "sqlite:"+filepath.Join(dir, "x.db"), nil)
	if _, err := os.Stat(filepath.Join(dir, "x.db")); err != nil {
		t.Error(err)
	}
}

func TestDurability(t *testing.T) {
	db := testdb.SQLite(t)
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
		var got string
		if err := db.WriterSQL().QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v", pragma, got, err)
		}
	}
	pg := testdb.Postgres(t)
	var got string
	if err := pg.WriterSQL().QueryRow("SHOW synchronous_commit").Scan(&got); err != nil || got != "on" {
		t.Errorf("synchronous_commit is %s, %v", got, err)
	}
}
