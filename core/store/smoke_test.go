package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func TestSmoke(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		a := &store.Action{ID: "act_1", WorkspaceID: "ws_1", RunID: "run_1", Status: core.ActionStatusApproved, Input: store.JSON(`{"a":"\u0000 x"}`), ExpiresAt: store.At(time.Now()), ContentSHA256: []string{"a"}}
		if err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, a) }); err != nil {
			t.Fatal(err)
		}
		got, err := db.Action(ctx, "ws_1", "act_1")
		t.Logf("%+v %v", got, err)
		now, err := db.Now(ctx)
		t.Log(now, err)
	})
}
