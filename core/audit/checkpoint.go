package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Checkpoint is a signed statement about the whole log at one size. Whoever keeps one
// can later prove that the log still begins with what it held then.
type Checkpoint struct {
	Size int64
	Root string // base64, as in the note
	At   time.Time
	Note string // signed note, in the format of transparency logs
}

// Checkpoint signs the log as it is and keeps the note. It refuses to sign a log that
// no longer begins with what the last checkpoint covers.
func (l *Log) Checkpoint(ctx context.Context) (Checkpoint, error) {
	// The last checkpoint is read first: the log only grows, so that one made by another
	// host in between can never look longer than the log.
	last, lastErr := l.db.LatestAuditCheckpoint(ctx)
	if lastErr != nil && !core.IsKind(lastErr, core.KindNotFound) {
		return Checkpoint{}, lastErr
	}
	head, err := l.db.LogHead(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	t, err := treeOf(head.AuditSize, head.Frontier)
	if err != nil {
		return Checkpoint{}, err
	}
	root := t.root()
	if lastErr == nil {
		if last.TreeSize == t.size && bytes.Equal(last.Root, root[:]) {
			return stored(last), nil
		}
		if err := l.extends(ctx, last, t.size, root); err != nil {
			return Checkpoint{}, err
		}
	}
	origin, err := l.db.InstallationID(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	at := store.At(l.clock.Now())
	signer, _ := l.keys.Signer()
	signed, err := note.Sign(&note.Note{Text: noteText(origin, t.size, root, at)}, signer)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("audit: sign a checkpoint: %w", err)
	}
	row := &store.AuditCheckpoint{TreeSize: t.size, Root: root[:], Note: string(signed), At: at}
	err = l.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.PutAuditCheckpoint(ctx, row) })
	if err != nil {
		return Checkpoint{}, err
	}
	return stored(row), nil
}

// VerifierKey is the public key that verifies checkpoints.
func (l *Log) VerifierKey() string {
	_, verifier := l.keys.Signer()
	return verifier
}

func stored(c *store.AuditCheckpoint) Checkpoint {
	return Checkpoint{Size: c.TreeSize, Root: base64.StdEncoding.EncodeToString(c.Root), At: c.At.Time, Note: c.Note}
}

// extends proves from the stored nodes that the tree of the last checkpoint is the
// beginning of the present one.
func (l *Log) extends(ctx context.Context, last *store.AuditCheckpoint, size int64, root tlog.Hash) error {
	tampered := core.Errf(core.KindUnavailable, "audit_inconsistent",
		"The audit log no longer begins with what the checkpoint over %d entries covers. Nothing is signed or sent until it is restored; run sallyport audit verify.", last.TreeSize)
	if last.TreeSize > size || len(last.Root) != tlog.HashSize {
		return tampered
	}
	if last.TreeSize == 0 {
		return nil
	}
	reader := tlog.HashReaderFunc(func(idx []int64) ([]tlog.Hash, error) { return l.nodes(ctx, idx) })
	proof, err := tlog.ProveTree(size, last.TreeSize, reader)
	if err == nil {
		err = tlog.CheckTree(proof, size, root, last.TreeSize, tlog.Hash(last.Root))
	}
	if err != nil {
		tampered.Err = err
		return tampered
	}
	return nil
}

func (l *Log) nodes(ctx context.Context, idx []int64) ([]tlog.Hash, error) {
	rows, err := l.db.AuditHashes(ctx, idx)
	if err != nil {
		return nil, err
	}
	at := make(map[int64]tlog.Hash, len(rows))
	for _, r := range rows {
		if len(r.Hash) == tlog.HashSize {
			at[r.Idx] = tlog.Hash(r.Hash)
		}
	}
	out := make([]tlog.Hash, len(idx))
	for i, n := range idx {
		h, ok := at[n]
		if !ok {
			return nil, fmt.Errorf("node %d of the tree is missing", n)
		}
		out[i] = h
	}
	return out, nil
}

// noteText is what a checkpoint signs: origin, size and root as other transparency
// logs write them, and the time.
func noteText(origin string, size int64, root tlog.Hash, at store.Time) string {
	return fmt.Sprintf("%s\n%d\n%s\nat %d\n", origin, size, base64.StdEncoding.EncodeToString(root[:]), at.UnixMicro())
}

// checkNote compares a stored checkpoint with its signed note.
func checkNote(c *store.AuditCheckpoint, origin string, verifier note.Verifier) error {
	n, err := note.Open([]byte(c.Note), note.VerifierList(verifier))
	if err != nil {
		return fmt.Errorf("its signature does not hold: %w", err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 5 || lines[0] != origin {
		return fmt.Errorf("its note belongs to another log")
	}
	same := lines[1] == strconv.FormatInt(c.TreeSize, 10) && lines[2] == base64.StdEncoding.EncodeToString(c.Root) &&
		!c.At.IsZero() && lines[3] == "at "+strconv.FormatInt(c.At.UnixMicro(), 10)
	if !same {
		return fmt.Errorf("it says something else than its signed note")
	}
	return nil
}
