package audit

import (
	"crypto/sha256"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// tree is the growing edge of the Merkle tree: the hashes of its complete subtrees,
// largest first, one for each bit of the size. It is all that adding a leaf needs.
type tree struct {
	size     int64
	frontier []tlog.Hash
}

func treeOf(size int64, frontier []byte) (*tree, error) {
	t := &tree{size: size}
	if size < 0 || len(frontier) != bits.OnesCount64(uint64(size))*tlog.HashSize {
		return nil, fmt.Errorf("audit: the log head is damaged: %d bytes of hashes for %d entries; run sallyport audit verify", len(frontier), size)
	}
	for ; len(frontier) > 0; frontier = frontier[tlog.HashSize:] {
		t.frontier = append(t.frontier, tlog.Hash(frontier[:tlog.HashSize]))
	}
	return t, nil
}

// add puts a leaf hash at the end and returns the nodes it completes, from the leaf
// up, which is the order in which the numbers of stored nodes rise.
func (t *tree) add(hash tlog.Hash) []tlog.Hash {
	nodes := []tlog.Hash{hash}
	for m := t.size; m&1 == 1; m >>= 1 {
		last := len(t.frontier) - 1
		hash = tlog.NodeHash(t.frontier[last], hash)
		t.frontier = t.frontier[:last]
		nodes = append(nodes, hash)
	}
	t.frontier = append(t.frontier, hash)
	t.size++
	return nodes
}

// root is the hash of the whole tree.
func (t *tree) root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	last := len(t.frontier) - 1
	root := t.frontier[last]
	for i := last - 1; i >= 0; i-- {
		root = tlog.NodeHash(t.frontier[i], root)
	}
	return root
}

func (t *tree) bytes() []byte {
	var b []byte
	for _, h := range t.frontier {
		b = append(b, h[:]...)
	}
	return b
}
