package store_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// Writes that are kept back are seen by the reads of their own transaction, also by
// those that do not wait for them, and say the same as the database does afterwards.
func TestWritesKeptBackAreRead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		old := approved("act_1")
		var briefs []store.ActionBrief
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, old) })
		if err != nil {
			t.Fatal(err)
		}
		err = db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			a, err := tx.LockAction(ctx, "ws_a", "act_1")
			if err != nil {
				return err
			}
			a.Status, a.ContentSHA256 = core.ActionStatusClaimed, []string{"changed"}
			if err := errors.Join(tx.UpdateAction(ctx, a), tx.InsertAction(ctx, approved("act_0"))); err != nil {
				return err
			}
			if briefs, err = tx.ActionBriefs(ctx, "ws_a", a.RunID); err != nil {
				return err
			}
			read, err := tx.Action(ctx, "ws_a", "act_1")
			if err != nil || !reflect.DeepEqual(read, a) {
				t.Errorf("read %+v, %v; wrote %+v", read, err, a)
			}
			a.Generation++ // written twice in one transaction
			return tx.UpdateAction(ctx, a)
		})
		if err != nil {
			t.Fatal(err)
		}
		after, err := db.ActionBriefs(ctx, "ws_a", old.RunID)
		if err != nil || len(after) != 2 || !reflect.DeepEqual(briefs, after) {
			t.Errorf("inside %+v\nafter %+v, %v", briefs, after, err)
		}
		a, err := db.Action(ctx, "ws_a", "act_1")
		if err != nil || a.Generation != 1 || a.Version != 2 || a.Status != core.ActionStatusClaimed {
			t.Errorf("stored %+v, %v", a, err)
		}
	})
}

// A write that fails when it is sent fails the whole transaction with its own error,
// whatever was done after it, and leaves nothing behind.
func TestFailureOfAWriteKeptBack(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		insert := func(ids ...string) error {
			return db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
				for _, id := range ids {
					if err := tx.InsertAction(ctx, approved(id)); err != nil {
						return err
					}
				}
				_, err := tx.Workspace(ctx, "ws_none") // sends what was kept back
				return err
			})
		}
		if err := insert("act_1"); !core.IsKind(err, core.KindNotFound) {
			t.Fatal(err)
		}
		if err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, approved("act_1")) }); err != nil {
			t.Fatal(err)
		}
		if e, ok := errors.AsType[*core.Error](insert("act_2", "act_1", "act_3")); !ok || e.Code != "already_exists" {
			t.Errorf("a second act_1: %v", e)
		}
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			a, err := tx.LockAction(ctx, "ws_a", "act_1")
			if err != nil {
				return err
			}
			a.Version = 7
			return errors.Join(tx.InsertAction(ctx, approved("act_4")), tx.UpdateAction(ctx, a))
		})
		if !store.IsChanged(err) {
			t.Errorf("a stale version: %v", err)
		}
		for _, id := range []string{"act_2", "act_3", "act_4"} {
			if _, err := db.Action(ctx, "ws_a", id); !core.IsKind(err, core.KindNotFound) {
				t.Errorf("%s is there: %v", id, err)
			}
		}
	})
}
