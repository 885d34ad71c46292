package audit

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// The library for transparency logs is the judge: nodes, their numbers and roots must
// be those it computes from scratch.
func TestTreeAgreesWithLibrary(t *testing.T) {
	var nodes []tlog.Hash
	reader := tlog.HashReaderFunc(func(idx []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(idx))
		for i, n := range idx {
			out[i] = nodes[n]
		}
		return out, nil
	})
	tr := &tree{}
	for n := range int64(300) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil || tr.root() != want {
			t.Fatalf("root over %d leaves: %v, want %v (%v)", n, tr.root(), want, err)
		}
		again, err := treeOf(tr.size, tr.bytes())
		if err != nil || again.root() != want || !bytes.Equal(again.bytes(), tr.bytes()) {
			t.Fatalf("head over %d leaves does not come back: %v", n, err)
		}
		data := fmt.Appendf(nil, "leaf %d", n)
		expected, err := tlog.StoredHashes(n, data, reader)
		if err != nil {
			t.Fatal(err)
		}
		got := tr.add(tlog.RecordHash(data))
		if fmt.Sprint(got) != fmt.Sprint(expected) || int64(len(nodes)) != tlog.StoredHashIndex(0, n) {
			t.Fatalf("nodes of leaf %d differ", n)
		}
		nodes = append(nodes, got...)
	}
	if _, err := treeOf(3, make([]byte, 32)); err == nil {
		t.Error("a head with too few hashes was accepted")
	}
}
