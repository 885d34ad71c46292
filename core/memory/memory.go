// Package memory keeps what a workspace remembers between runs, such as its brand DNA.
package memory

import (
	"context"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// MaxValue is the largest value in bytes.
const MaxValue = 256 << 10

// keyForm is what keys look like, for example brand_dna or brand_dna.en-GB.
var keyForm = regexp.MustCompile(`^[a-z][a-z0-9_]*([./-][A-Za-z0-9_]+)*$`)

// maxKey is the longest key in bytes.
const maxKey = 120

// Service reads and writes memory. It is safe for concurrent use.
type Service struct {
	db    *store.DB
	clock core.Clock
}

// New makes a Service on a database.
func New(db *store.DB, clock core.Clock) *Service { return &Service{db: db, clock: clock} }

// Get reads what is remembered under a key; not_found if nothing is.
func (s *Service) Get(ctx context.Context, ws store.WorkspaceID, key string) (json.RawMessage, error) {
	m, err := s.db.Memory(ctx, ws, key)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(m.Value), nil
}

// Keys lists the keys under which something is remembered.
func (s *Service) Keys(ctx context.Context, ws store.WorkspaceID) ([]string, error) {
	return s.db.MemoryKeys(ctx, ws)
}

// Put remembers a JSON value under a key, in place of an earlier one; null forgets it.
// by is the identifier of who said so: a person, a key, or the tool that found out.
func (s *Service) Put(ctx context.Context, ws store.WorkspaceID, key string, value json.RawMessage, by string) error {
	switch {
	case len(key) > maxKey || !keyForm.MatchString(key):
		return invalid("/key", "Memory keys are lower-case words joined by _ . / or -, at most 120 characters.")
	case len(value) > MaxValue:
		return core.Errf(core.KindTooLarge, "memory_too_large", "A remembered value has at most %d KiB; this one has %d.", MaxValue>>10, len(value)>>10)
	case !json.Valid(value) || !utf8.Valid(value):
		return invalid("/value", "A remembered value must be JSON in UTF-8.")
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if string(value) == "null" {
			err := tx.DeleteMemory(ctx, ws, key)
			if core.IsKind(err, core.KindNotFound) {
				return nil
			}
			return err
		}
		return tx.PutMemory(ctx, &store.Memory{WorkspaceID: ws, Key: key, Value: store.JSON(value), UpdatedBy: by, UpdatedAt: store.At(s.clock.Now())})
	})
}

func invalid(pointer, detail string) error {
	e := core.Errf(core.KindInvalid, "invalid", "%s", detail)
	e.Fields = []core.FieldError{{Pointer: pointer, Message: detail}}
	return e
}
