package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// verifyBatch is how many rows are read at once.
const verifyBatch = 500

// Verdict is the result of Verify.
type Verdict struct {
	OK          bool   `json:"ok"`
	Size        int64  `json:"size"`        // entries that were checked
	Root        string `json:"root"`        // hex, of the tree over them
	Checkpoints int    `json:"checkpoints"` // signed checkpoints that hold
	Erased      int    `json:"erased"`      // entries whose personal data were erased, with an entry that says so
	// FirstBad is the number of the first entry that is wrong or missing; -1 if none is,
	// or if the fault is not in an entry. Reason says what is wrong.
	FirstBad int64  `json:"firstBad"`
	Reason   string `json:"reason,omitempty"`
}

// Verify recomputes the whole log from its entries: commitments, leaves, tree, head
// and checkpoints. A log that was tampered with yields a Verdict that says where; an
// error means that the log could not be read to its end. Verify of a database that
// hosts write to at the same time covers the entries up to the head it found.
func Verify(ctx context.Context, db *store.DB, verifierKey string) (*Verdict, error) {
	verifier, err := note.NewVerifier(verifierKey)
	if err != nil {
		return nil, core.Errf(core.KindInvalid, "verifier_key_invalid", "The verifier key cannot be read; it looks like NAME+HASH+KEY.")
	}
	head, err := db.LogHead(ctx)
	if err != nil {
		return nil, err
	}
	v := &verification{db: db, verifier: verifier, head: head, t: &tree{}, erasedAt: map[int64]bool{}, reported: map[int64]bool{}}
	if v.origin, err = db.InstallationID(ctx); err != nil {
		return nil, err
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	root := v.t.root()
	return &Verdict{OK: v.reason == "", Size: v.t.size, Root: hex.EncodeToString(root[:]), Checkpoints: v.checkpoints,
		Erased: len(v.erasedAt), FirstBad: v.firstBad, Reason: v.reason}, nil
}

type verification struct {
	db       *store.DB
	verifier note.Verifier
	origin   string
	head     *store.LogHead
	t        *tree

	nodes    []store.AuditHash // read and not compared yet
	nextNode int64
	notes    []store.AuditCheckpoint
	nextNote int64

	erasedAt    map[int64]bool // entries without personal data
	reported    map[int64]bool // entries that an erasure names
	checkpoints int
	firstBad    int64
	reason      string
}

// bad records the first fault; verification stops there.
func (v *verification) bad(seq int64, format string, args ...any) {
	if v.reason == "" {
		v.firstBad, v.reason = seq, fmt.Sprintf(format, args...)
	}
}

func (v *verification) run(ctx context.Context) error {
	v.firstBad = -1
	if err := v.checkpoint(ctx); err != nil || v.reason != "" { // over the empty log
		return err
	}
	for v.t.size < v.head.AuditSize && v.reason == "" {
		rows, err := v.db.AllAuditEntries(ctx, v.t.size, verifyBatch)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			v.bad(v.t.size, "entry %d is missing: the log ends before its head", v.t.size)
		}
		for i := range rows {
			if v.t.size == v.head.AuditSize || v.reason != "" {
				break
			}
			if err := v.entry(ctx, &rows[i]); err != nil {
				return err
			}
		}
	}
	if v.reason != "" {
		return nil
	}
	return v.end(ctx)
}

func (v *verification) entry(ctx context.Context, r *store.AuditEntry) error {
	seq := v.t.size
	root := v.t.root()
	switch {
	case r.Seq != seq:
		v.bad(seq, "entry %d is missing", seq)
	case r.At.IsZero() || !bytes.Equal(r.Leaf, leaf(r)):
		v.bad(seq, "entry %d does not say what its leaf says", seq)
	case !bytes.Equal(commitment(r.DetailsSalt, r.Details), r.DetailsCommit):
		v.bad(seq, "the details of entry %d were changed", seq)
	case !bytes.Equal(r.PrevRoot, root[:]):
		v.bad(seq, "entry %d names another tree before it", seq)
	}
	if r.Personal == nil && r.PersonalSalt == nil {
		v.erasedAt[seq] = true
	} else if !bytes.Equal(commitment(r.PersonalSalt, r.Personal), r.PersonalCommit) {
		v.bad(seq, "the personal details of entry %d were changed", seq)
	}
	hash := tlog.RecordHash(r.Leaf)
	if !bytes.Equal(r.LeafHash, hash[:]) {
		v.bad(seq, "the hash of entry %d is not the hash of its leaf", seq)
	}
	if v.reason != "" {
		return nil
	}
	if r.Action == erased {
		var d struct {
			Seq int64 `json:"seq"`
		}
		if err := r.Details.Decode(&d); err == nil {
			v.reported[d.Seq] = true
		}
	}
	for _, want := range v.t.add(hash) {
		if err := v.node(ctx, seq, want); err != nil || v.reason != "" {
			return err
		}
	}
	return v.checkpoint(ctx)
}

// node compares the next stored node of the tree.
func (v *verification) node(ctx context.Context, seq int64, want tlog.Hash) error {
	if len(v.nodes) == 0 {
		rows, err := v.db.AllAuditHashes(ctx, v.nextNode, verifyBatch)
		if err != nil {
			return err
		}
		v.nodes = rows
	}
	if len(v.nodes) == 0 || v.nodes[0].Idx != v.nextNode || !bytes.Equal(v.nodes[0].Hash, want[:]) {
		v.bad(seq, "node %d of the tree, which entry %d completes, is missing or wrong", v.nextNode, seq)
		return nil
	}
	v.nodes = v.nodes[1:]
	v.nextNode++
	return nil
}

// checkpoint compares the stored checkpoint over the present size, if there is one.
func (v *verification) checkpoint(ctx context.Context) error {
	if len(v.notes) == 0 && v.nextNote >= 0 {
		rows, err := v.db.AllAuditCheckpoints(ctx, v.nextNote, verifyBatch)
		if err != nil {
			return err
		}
		v.notes, v.nextNote = rows, -1 // -1: none left
		if len(rows) > 0 {
			v.nextNote = rows[len(rows)-1].TreeSize + 1
		}
	}
	if len(v.notes) == 0 || v.notes[0].TreeSize > v.t.size {
		return nil
	}
	c := &v.notes[0]
	v.notes = v.notes[1:]
	root := v.t.root()
	if err := checkNote(c, v.origin, v.verifier); err != nil {
		v.bad(-1, "the checkpoint over %d entries is false: %v", c.TreeSize, err)
	} else if c.TreeSize != v.t.size || !bytes.Equal(c.Root, root[:]) {
		v.bad(max(c.TreeSize-1, 0), "the first %d entries are not the ones that the checkpoint over them signed", c.TreeSize)
	} else {
		v.checkpoints++
	}
	return nil
}

// end checks what stands beside and behind the entries.
func (v *verification) end(ctx context.Context) error {
	for _, seq := range sorted(v.erasedAt) {
		if !v.reported[seq] {
			v.bad(seq, "the personal details of entry %d are gone, and no entry reports their erasure", seq)
		}
	}
	if !bytes.Equal(v.head.Frontier, v.t.bytes()) {
		v.bad(-1, "the log head does not fit the entries")
	}
	// A host may have written since the head was read; only what no head covers is too much.
	now, err := v.db.LogHead(ctx)
	if err != nil {
		return err
	}
	after, err := v.db.AllAuditEntries(ctx, now.AuditSize, 1)
	if err != nil {
		return err
	}
	nodes, err := v.db.AllAuditHashes(ctx, tlog.StoredHashCount(now.AuditSize), 1)
	if err != nil {
		return err
	}
	notes, err := v.db.AllAuditCheckpoints(ctx, now.AuditSize+1, 1)
	if err != nil {
		return err
	}
	if again, err := v.db.LogHead(ctx); err != nil || again.AuditSize != now.AuditSize {
		return err // written to between these reads: nothing can be said about what stands behind
	}
	if len(after)+len(nodes)+len(notes) > 0 {
		v.bad(now.AuditSize, "there are entries, nodes or checkpoints behind the end of the log (%d entries): it was cut short", now.AuditSize)
	}
	return nil
}

func sorted(set map[int64]bool) []int64 {
	out := make([]int64, 0, len(set))
	for n := range set {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
