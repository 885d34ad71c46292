// Package replay remembers the answers to requests that carry an Idempotency-Key, so
// that a caller who lost the answer can ask again without doing the thing twice. It
// stands apart from package rest, which does not touch the database itself.
package replay

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

const (
	// Keep is how long an answer is remembered.
	Keep = 24 * time.Hour
	// Abandoned is how old an unfinished record must be to be taken for one of a host
	// that died. No request runs that long.
	Abandoned = 10 * time.Minute
	// MaxKey is the length of a key.
	MaxKey = 200
)

// Slot is one request of one principal under one key.
type Slot struct {
	WorkspaceID, Principal, Key string
	Request                     [32]byte // hash of method, address, condition and body
}

// Reply is what was answered.
type Reply struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Store keeps answers in the database, for all hosts.
type Store struct {
	db    *store.DB
	clock core.Clock
}

// New keeps answers in db.
func New(db *store.DB, clock core.Clock) *Store { return &Store{db: db, clock: clock} }

// Begin claims a slot. It returns the earlier answer if there is one, or nil: then the
// caller does the work and calls Finish or Abandon. The same key with another request
// is invalid; one whose first request still runs is a conflict.
func (s *Store) Begin(ctx context.Context, slot Slot) (*Reply, error) {
	if slot.Key == "" || len(slot.Key) > MaxKey || strings.ContainsFunc(slot.Key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, core.Errf(core.KindMalformed, "malformed_idempotency_key", "Idempotency-Key takes 1 to %d printable ASCII characters.", MaxKey)
	}
	now := s.clock.Now()
	hash := hex.EncodeToString(slot.Request[:])
	var before *store.Idempotency
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		row := store.Idempotency{WorkspaceID: store.WorkspaceID(slot.WorkspaceID), PrincipalID: slot.Principal, Key: slot.Key, BodyHash: hash, At: store.At(now)}
		var err error
		before, err = tx.BeginIdempotent(ctx, &row)
		if err != nil || before == nil || !stale(before, now) {
			return err
		}
		if err := tx.DropIdempotent(ctx, row.WorkspaceID, row.PrincipalID, row.Key); err != nil {
			return err
		}
		before, err = tx.BeginIdempotent(ctx, &row)
		return err
	})
	switch {
	case err != nil || before == nil:
		return nil, err
	case before.BodyHash != hash:
		return nil, core.Errf(core.KindInvalid, "idempotency_key_reused", "This Idempotency-Key was used for another request. Choose a new one for each thing to be done.")
	case !before.Done:
		e := core.Errf(core.KindConflict, "still_running", "The first request with this Idempotency-Key is still running. Ask again in a moment.")
		e.RetryAfter = time.Second
		return nil, e
	}
	return &Reply{Status: before.Status, Header: before.Headers, Body: before.Body}, nil
}

func stale(row *store.Idempotency, now time.Time) bool {
	age := now.Sub(row.At.Time)
	return age >= Keep || !row.Done && age >= Abandoned
}

// Finish stores the answer.
func (s *Store) Finish(ctx context.Context, slot Slot, r Reply) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.FinishIdempotent(ctx, &store.Idempotency{WorkspaceID: store.WorkspaceID(slot.WorkspaceID), PrincipalID: slot.Principal, Key: slot.Key,
			BodyHash: hex.EncodeToString(slot.Request[:]), Status: r.Status, Headers: r.Header, Body: r.Body, At: store.At(s.clock.Now())})
	})
}

// Abandon gives the key free after a failure that may be repeated.
func (s *Store) Abandon(ctx context.Context, slot Slot) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.DropIdempotent(ctx, store.WorkspaceID(slot.WorkspaceID), slot.Principal, slot.Key)
	})
}

// Purge removes answers that are no longer remembered.
func (s *Store) Purge(ctx context.Context) (removed int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		removed, err = tx.PurgeIdempotency(ctx, s.clock.Now().Add(-Keep))
		return err
	})
	return removed, err
}
