// Package audit keeps the log of everything that was done, refused or read. Its
// entries are the leaves of a Merkle tree (the one of transparency logs), written in
// the transaction of what they report, so that neither exists without the other and no
// entry can later be changed, removed or inserted unseen. Particulars stand beside the
// leaf under salted commitments: personal data can be erased and the tree still holds.
package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Outcomes of entries.
const (
	OK      = string(core.AuditEntryOutcomeOk)
	Refused = string(core.AuditEntryOutcomeRefused)
	Failed  = string(core.AuditEntryOutcomeFailed)
)

// erased is the action of the entry that reports an erasure of personal data.
const erased = "audit.erased"

// Entry is what callers report. Identifiers, states and digests go into Details; what
// is about a person and may have to be erased goes into Personal, as the label of the
// actor and the IP address do by themselves. Neither takes drafts or secrets.
type Entry struct {
	Actor       core.Actor
	WorkspaceID string
	Action      string // for example action.approved
	Target      string // identifier it happened to
	Outcome     string // OK when empty
	RequestID   string
	TraceID     string
	IP          string
	Details     map[string]any
	Personal    map[string]any
}

// By is an entry about something a principal did.
func By(p core.Principal, action, target string) Entry {
	return Entry{Actor: p.Actor(), WorkspaceID: p.WorkspaceID, Action: action, Target: target, RequestID: p.RequestID, IP: p.IP}
}

// Log writes and reads the audit log. It is safe for concurrent use.
type Log struct {
	db    *store.DB
	keys  *secret.Keeper
	clock core.Clock
	log   *slog.Logger
	queue store.Batch[store.AuditEntry]
}

// New makes a Log on a database.
func New(db *store.DB, keys *secret.Keeper, clock core.Clock, log *slog.Logger) *Log {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Log{db: db, keys: keys, clock: clock, log: log}
}

// Append writes an entry in the caller's transaction and returns its number. It locks
// the log head until the transaction ends, so call it last.
func (l *Log) Append(ctx context.Context, tx *store.Tx, e Entry) (seq int64, err error) {
	row, err := l.row(e)
	if err != nil {
		return 0, err
	}
	rows := []store.AuditEntry{row}
	if err := appendRows(ctx, tx, rows); err != nil {
		return 0, err
	}
	return rows[0].Seq, nil
}

// Standing is the size of the log and its root, in base64, as a transaction sees them:
// with what it appended itself.
func (l *Log) Standing(ctx context.Context, tx *store.Tx) (size int64, root string, err error) {
	head, err := tx.LogHead(ctx)
	if err != nil {
		return 0, "", err
	}
	t, err := treeOf(head.AuditSize, head.Frontier)
	if err != nil {
		return 0, "", err
	}
	hash := t.root()
	return t.size, base64.StdEncoding.EncodeToString(hash[:]), nil
}

// AppendNow writes an entry in a transaction of its own and returns when it is durable.
// Entries that arrive while another is being written share the next transaction.
func (l *Log) AppendNow(ctx context.Context, e Entry) error {
	row, err := l.row(e)
	if err != nil {
		return err
	}
	return l.queue.Do(ctx, row, func(ctx context.Context, rows []store.AuditEntry) error {
		return l.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return appendRows(ctx, tx, rows) })
	})
}

// row is an entry with everything but its place in the log.
func (l *Log) row(e Entry) (store.AuditEntry, error) {
	r := store.AuditEntry{WorkspaceID: store.WorkspaceID(e.WorkspaceID), At: store.At(l.clock.Now()), ActorKind: e.Actor.Kind, ActorID: e.Actor.ID,
		Action: e.Action, Target: e.Target, Outcome: core.AuditEntryOutcome(e.Outcome), RequestID: e.RequestID, TraceID: e.TraceID}
	if e.Actor.OnBehalfOf != nil {
		r.OnBehalfOf = *e.Actor.OnBehalfOf
	}
	if r.Outcome == "" {
		r.Outcome = core.AuditEntryOutcomeOk
	}
	// The database would change such text by itself, and the leaf would no longer fit.
	for _, text := range []*string{&r.ActorID, &r.OnBehalfOf, &r.Action, &r.Target, &r.RequestID, &r.TraceID} {
		*text = clean(*text)
	}
	if r.Action == "" {
		return r, fmt.Errorf("audit: an entry without an action")
	}
	personal := map[string]any{}
	for k, v := range e.Personal {
		personal[k] = v
	}
	if e.Actor.Label != "" {
		personal["label"] = e.Actor.Label
	}
	if e.IP != "" {
		personal["ip"] = e.IP
	}
	var err error
	if r.Details, r.DetailsSalt, r.DetailsCommit, err = seal(e.Details); err != nil {
		return r, fmt.Errorf("audit: details of %s: %w", e.Action, err)
	}
	if r.Personal, r.PersonalSalt, r.PersonalCommit, err = seal(personal); err != nil {
		return r, fmt.Errorf("audit: personal details of %s: %w", e.Action, err)
	}
	return r, nil
}

// seal marshals fields and commits to them.
func seal(fields map[string]any) (doc store.JSON, salt, commit []byte, err error) {
	if fields == nil {
		fields = map[string]any{}
	}
	doc, err = json.Marshal(redact(fields))
	if err != nil {
		return nil, nil, nil, err
	}
	salt = make([]byte, sha256.Size)
	if _, err := rand.Read(salt); err != nil {
		return nil, nil, nil, err
	}
	return doc, salt, commitment(salt, doc), nil
}

// commitment binds a document without telling it: the salt keeps short values from
// being guessed. Its fixed length keeps salt and document apart.
func commitment(salt, doc []byte) []byte {
	h := sha256.New()
	h.Write(salt)
	h.Write(doc)
	return h.Sum(nil)
}

// appendRows gives rows their places, after the transaction's turn has come, and
// writes them with the nodes of the tree that they complete.
func appendRows(ctx context.Context, tx *store.Tx, rows []store.AuditEntry) error {
	head, err := tx.LockLogHead(ctx)
	if err != nil {
		return err
	}
	t, err := treeOf(head.AuditSize, head.Frontier)
	if err != nil {
		return err
	}
	var nodes []store.AuditHash
	for i := range rows {
		r := &rows[i]
		root := t.root()
		r.Seq, r.PrevRoot = t.size, root[:]
		r.Leaf = leaf(r)
		hash := tlog.RecordHash(r.Leaf)
		r.LeafHash = hash[:]
		first := tlog.StoredHashIndex(0, t.size)
		for j, node := range t.add(hash) {
			nodes = append(nodes, store.AuditHash{Idx: first + int64(j), Hash: node[:]})
		}
	}
	if err := tx.InsertAuditEntries(ctx, rows, nodes); err != nil {
		return err
	}
	head.AuditSize, head.Frontier = t.size, t.bytes()
	return tx.SaveLogHead(ctx)
}

// Erase removes what an entry says about persons and writes an entry that says so,
// without which verification would take the gap for tampering.
func (l *Log) Erase(ctx context.Context, tx *store.Tx, ws string, seq int64, by Entry) error {
	if err := tx.EraseAuditPersonal(ctx, store.WorkspaceID(ws), seq); err != nil {
		return err
	}
	by.Action, by.WorkspaceID = erased, ws
	by.Details = map[string]any{"seq": seq}
	_, err := l.Append(ctx, tx, by)
	return err
}

// List reads entries of a workspace, newest first. Status of the query selects an
// outcome, RunID a target.
func (l *Log) List(ctx context.Context, ws store.WorkspaceID, q core.Query) (core.Page[core.AuditEntry], error) {
	rows, err := l.db.ListAuditEntries(ctx, ws, q)
	if err != nil {
		return core.Page[core.AuditEntry]{}, err
	}
	page := core.Page[core.AuditEntry]{Items: make([]core.AuditEntry, 0, len(rows.Items)), NextCursor: rows.NextCursor}
	for i := range rows.Items {
		e, err := resource(&rows.Items[i])
		if err != nil {
			return core.Page[core.AuditEntry]{}, err
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

func resource(r *store.AuditEntry) (core.AuditEntry, error) {
	e := core.AuditEntry{Seq: int(r.Seq), At: r.At.Time, Action: r.Action, Target: r.Target, Outcome: r.Outcome, RequestID: r.RequestID,
		Actor: core.Actor{Kind: r.ActorKind, ID: r.ActorID}, Details: core.AuditEntryDetails{},
		Hash: hex.EncodeToString(r.LeafHash), PrevHash: hex.EncodeToString(r.PrevRoot)}
	if r.OnBehalfOf != "" {
		e.Actor.OnBehalfOf = &r.OnBehalfOf
	}
	if r.TraceID != "" {
		e.TraceID = &r.TraceID
	}
	if err := r.Details.Decode(&e.Details); err != nil {
		return e, err
	}
	var personal map[string]any
	if err := r.Personal.Decode(&personal); err != nil {
		return e, err
	}
	for k, v := range personal {
		text, _ := v.(string)
		switch k {
		case "label":
			e.Actor.Label = text
		case "ip":
			e.Ip = &text
		default:
			e.Details[k] = v
		}
	}
	return e, nil
}
