package store

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// LogHead is the one row that orders what is written to the audit log and the outbox.
// Whoever locks it writes alone until the transaction ends, so the numbers of both
// rise in the order of commits and a reader that has seen one number has seen all
// smaller ones. It is the last lock a transaction takes.
type LogHead struct {
	bun.BaseModel `bun:"table:log_head"`

	ID        int    `bun:"id,pk"`
	AuditSize int64  `bun:"audit_size"` // entries in the audit log
	Frontier  []byte `bun:"frontier"`   // hashes of the complete subtrees, largest first
	EventSeq  int64  `bun:"event_seq"`  // last number of the outbox
}

// LogHead reads the head without locking it.
func (r Reader) LogHead(ctx context.Context) (*LogHead, error) {
	return lookup[LogHead](ctx, r, "log head", "", "id = ?", 1)
}

// LogHead is the head as this transaction sees it, with what it adds to the log itself.
func (tx *Tx) LogHead(ctx context.Context) (*LogHead, error) {
	if tx.head == nil {
		return tx.Reader.LogHead(ctx)
	}
	head := *tx.head
	return &head, nil
}

// LockLogHead locks the head for the rest of the transaction. Asked again, it answers
// with the same value, including what was saved since.
func (tx *Tx) LockLogHead(ctx context.Context) (*LogHead, error) {
	if tx.head != nil {
		return tx.head, nil
	}
	var head *LogHead
	var err error
	if tx.db.driver == Postgres {
		head, err = tx.lockHead()
	} else {
		head, err = tx.Reader.LogHead(ctx)
	}
	if err != nil {
		return nil, err
	}
	tx.head = head
	return head, nil
}

// SaveLogHead has the head that LockLogHead returned written, once for all that the
// transaction adds.
func (tx *Tx) SaveLogHead(context.Context) error {
	if tx.head == nil {
		return errors.New("store: the log head is saved without being locked")
	}
	tx.headDirty = true
	return nil
}

// AuditEntry is one entry of the audit log. Leaf is what the tree commits to; Details
// and Personal stand beside it under salted commitments, so that personal data can be
// erased without breaking the tree.
type AuditEntry struct {
	bun.BaseModel `bun:"table:audit_entries"`

	Seq            int64                  `bun:"seq,pk"`
	WorkspaceID    WorkspaceID            `bun:"workspace_id"` // empty for the installation
	At             Time                   `bun:"at"`
	ActorKind      core.ActorKind         `bun:"actor_kind"`
	ActorID        string                 `bun:"actor_id"`
	OnBehalfOf     string                 `bun:"on_behalf_of"`
	Action         string                 `bun:"action"`
	Target         string                 `bun:"target"`
	Outcome        core.AuditEntryOutcome `bun:"outcome"`
	RequestID      string                 `bun:"request_id"`
	TraceID        string                 `bun:"trace_id"`
	Details        JSON                   `bun:"details"`
	DetailsSalt    []byte                 `bun:"details_salt"`
	DetailsCommit  []byte                 `bun:"details_commit"`
	Personal       JSON                   `bun:"personal"` // label, address and the like; NULL once erased
	PersonalSalt   []byte                 `bun:"personal_salt"`
	PersonalCommit []byte                 `bun:"personal_commit"`
	Leaf           []byte                 `bun:"leaf"`
	LeafHash       []byte                 `bun:"leaf_hash"`
	PrevRoot       []byte                 `bun:"prev_root"` // root of the tree before this entry
}

// AuditHash is a node of the tree, numbered as golang.org/x/mod/sumdb/tlog stores it.
type AuditHash struct {
	bun.BaseModel `bun:"table:audit_hashes"`

	Idx  int64  `bun:"idx,pk"`
	Hash []byte `bun:"hash"`
}

// AuditCheckpoint is a signed note over the tree at one size.
type AuditCheckpoint struct {
	bun.BaseModel `bun:"table:audit_checkpoints"`

	TreeSize int64  `bun:"tree_size,pk"`
	Root     []byte `bun:"root"`
	Note     string `bun:"note"`
	At       Time   `bun:"at"`
}

// InsertAuditEntries adds entries and the nodes of the tree they complete.
func (tx *Tx) InsertAuditEntries(ctx context.Context, rows []AuditEntry, nodes []AuditHash) error {
	if err := tx.later(ctx, "audit entry", tx.tx.NewInsert().Model(&rows), func(_ int64, err error) error { return added("audit entry", err) }); err != nil {
		return err
	}
	return tx.later(ctx, "audit hash", tx.tx.NewInsert().Model(&nodes), func(_ int64, err error) error { return added("audit hash", err) })
}

// EraseAuditPersonal removes the personal data of an entry; its commitment stays.
func (tx *Tx) EraseAuditPersonal(ctx context.Context, ws WorkspaceID, seq int64) error {
	return set(ctx, "audit entry", "", tx.w(ctx).NewUpdate().Model((*AuditEntry)(nil)).Set("personal = NULL").Set("personal_salt = NULL").
		Where("seq = ?", seq).Where("workspace_id = ?", ws))
}

// ListAuditEntries lists entries of the workspace, newest first. Status of the query
// selects an outcome, RunID a target.
func (r Reader) ListAuditEntries(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[AuditEntry], error) {
	l := listing[AuditEntry]{noun: "audit entry", key: "seq", since: "at", num: true, keyOf: func(e *AuditEntry) string { return itoa(e.Seq) }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery {
		s = s.Where("workspace_id = ?", ws)
		if q.RunID != "" {
			s = s.Where("target = ?", q.RunID)
		}
		if q.Status != "" {
			s = s.Where("outcome = ?", q.Status)
		}
		return s
	})
}

// AllAuditEntries reads up to limit entries of the whole installation from a number
// on, oldest first, for verification and export.
func (r Reader) AllAuditEntries(ctx context.Context, from int64, limit int) ([]AuditEntry, error) {
	return all[AuditEntry](ctx, r, "audit entry", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("seq >= ?", from).Order("seq").Limit(int64(limit))
	})
}

// AllAuditHashes reads up to limit nodes of the tree from a number on.
func (r Reader) AllAuditHashes(ctx context.Context, from int64, limit int) ([]AuditHash, error) {
	return all[AuditHash](ctx, r, "audit hash", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("idx >= ?", from).Order("idx").Limit(int64(limit))
	})
}

// AuditHashes reads the named nodes of the tree, in any order.
func (r Reader) AuditHashes(ctx context.Context, idx []int64) ([]AuditHash, error) {
	if len(idx) == 0 {
		return []AuditHash{}, nil
	}
	return all[AuditHash](ctx, r, "audit hash", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("idx IN (?)", bun.List(idx)) })
}

// LatestAuditCheckpoint reads the checkpoint over the largest tree.
func (r Reader) LatestAuditCheckpoint(ctx context.Context) (*AuditCheckpoint, error) {
	return one[AuditCheckpoint](ctx, r, "checkpoint", "", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("tree_size DESC") })
}

// AllAuditCheckpoints reads up to limit checkpoints over trees of at least a size.
func (r Reader) AllAuditCheckpoints(ctx context.Context, from int64, limit int) ([]AuditCheckpoint, error) {
	return all[AuditCheckpoint](ctx, r, "checkpoint", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("tree_size >= ?", from).Order("tree_size").Limit(int64(limit))
	})
}

// PutAuditCheckpoint adds a checkpoint; one of the same size stays as it is.
func (tx *Tx) PutAuditCheckpoint(ctx context.Context, c *AuditCheckpoint) error {
	if _, err := tx.w(ctx).NewInsert().Model(c).On("CONFLICT (tree_size) DO NOTHING").Exec(ctx); err != nil {
		return failed("add a checkpoint", err)
	}
	return nil
}
