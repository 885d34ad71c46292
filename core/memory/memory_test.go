package memory_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/memory"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func TestMemory(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		m := memory.New(db, core.SystemClock{})
		put := func(ws store.WorkspaceID, key, value string) {
			t.Helper()
			if err := m.Put(ctx, ws, key, json.RawMessage(value), "usr_1"); err != nil {
				t.Fatal(err)
			}
		}
		put("ws_a", "brand_dna", `{"name": "Ünïcode\u0000"}`)
		put("ws_a", "voice.en-GB", `1`)
		put("ws_a", "brand_dna", `{"b":2, "a":1}`)
		put("ws_b", "brand_dna", `"other"`)
		if v, err := m.Get(ctx, "ws_a", "brand_dna"); err != nil || string(v) != `{"b":2, "a":1}` {
			t.Errorf("%s, %v", v, err)
		}
		if keys, err := m.Keys(ctx, "ws_a"); err != nil || !slices.Equal(keys, []string{"brand_dna", "voice.en-GB"}) {
			t.Errorf("%v, %v", keys, err)
		}
		put("ws_a", "brand_dna", `null`)
		put("ws_a", "brand_dna", `null`)
		if _, err := m.Get(ctx, "ws_a", "brand_dna"); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("forgotten: %v", err)
		}
		if v, err := m.Get(ctx, "ws_b", "brand_dna"); err != nil || string(v) != `"other"` {
			t.Errorf("another workspace: %s, %v", v, err)
		}
	})
}

func TestMemoryRefusesBadInput(t *testing.T) {
	m := memory.New(testdb.SQLite(t), core.SystemClock{})
	for _, c := range []struct {
		key, value string
		kind       core.ErrorKind
	}{
		{"", "1", core.KindInvalid}, {"A b", "1", core.KindInvalid}, {strings.Repeat("a", 121), "1", core.KindInvalid},
		{"a", "{", core.KindInvalid}, {"a", "", core.KindInvalid}, {"a", "\"\xff\"", core.KindInvalid},
		{"a", `"` + strings.Repeat("x", memory.MaxValue) + `"`, core.KindTooLarge},
	} {
		if err := m.Put(context.Background(), "ws_a", c.key, json.RawMessage(c.value), ""); !core.IsKind(err, c.kind) {
			t.Errorf("%.20q = %.20q: %v", c.key, c.value, err)
		}
	}
}
