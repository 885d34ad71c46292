// Package dataset keeps tables that people upload, so that tools can read their rows.
package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Limits of an upload.
const (
	MaxBytes   = 20 << 20
	MaxRows    = 200_000
	MaxColumns = 500
	MaxName    = 200 // characters
)

// readBatch is how many rows are held in memory while reading.
const readBatch = 500

// Service stores and reads datasets. It is safe for concurrent use.
type Service struct {
	db  *store.DB
	log *audit.Log
}

// New makes the service.
func New(db *store.DB, log *audit.Log) *Service { return &Service{db, log} }

// Create stores an upload. mediaType is text/csv (first line holds the column names) or
// application/json (an array of objects). Values of CSV stay text.
func (s *Service) Create(ctx context.Context, p core.Principal, name, mediaType string, body []byte) (*core.Dataset, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	if name = strings.TrimSpace(name); name == "" || utf8.RuneCountInString(name) > MaxName || !utf8.ValidString(name) {
		e := core.Errf(core.KindInvalid, "invalid", "The dataset needs a name of at most %d characters.", MaxName)
		e.Fields = []core.FieldError{{Pointer: "/name", Message: "must be 1 to 200 characters"}}
		return nil, e
	}
	if len(body) > MaxBytes {
		return nil, core.Errf(core.KindTooLarge, "too_large", "The dataset has %d bytes; at most %d are taken.", len(body), MaxBytes)
	}
	columns, rows, err := parse(mediaType, body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	d := &store.Dataset{WorkspaceID: store.WorkspaceID(p.WorkspaceID), Name: name, Columns: columns, Rows: len(rows), Bytes: int64(len(body)),
		Digest: hex.EncodeToString(sum[:]), CreatedBy: p.Actor()}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		d.ID, d.CreatedAt = core.NewID(core.PrefixDataset, now), store.At(now)
		if err := tx.InsertDataset(ctx, d, rows); err != nil {
			return err
		}
		entry := audit.By(p, "dataset.created", d.ID)
		entry.Details = map[string]any{"rows": d.Rows, "digest": d.Digest}
		_, err = s.log.Append(ctx, tx, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resource(d), nil
}

func parse(mediaType string, body []byte) (columns []string, rows []store.JSON, err error) {
	kind, _, _ := strings.Cut(mediaType, ";")
	if !utf8.Valid(body) {
		return nil, nil, core.Errf(core.KindMalformed, "malformed", "The dataset is not UTF-8 text. Save it as UTF-8 and upload it again.")
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/csv":
		columns, rows, err = fromCSV(body)
	case "application/json":
		columns, rows, err = fromJSON(body)
	default:
		return nil, nil, core.Errf(core.KindUnsupported, "unsupported_media_type", "A dataset is text/csv or application/json, not %q.", mediaType)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(columns) == 0 || len(columns) > MaxColumns || len(rows) > MaxRows {
		return nil, nil, core.Errf(core.KindInvalid, "invalid", "A dataset has 1 to %d columns and at most %d rows; this one has %d and %d.", MaxColumns, MaxRows, len(columns), len(rows))
	}
	return columns, rows, nil
}

func fromCSV(body []byte) ([]string, []store.JSON, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	columns, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, core.Errf(core.KindInvalid, "invalid", "The dataset is empty; its first line must hold the column names.")
	}
	if err != nil {
		return nil, nil, malformed(err)
	}
	seen := map[string]bool{}
	for i, c := range columns {
		if c == "" || seen[c] {
			return nil, nil, core.Errf(core.KindInvalid, "invalid", "Column %d has no name or one that stands twice: %q.", i+1, c)
		}
		seen[c] = true
	}
	rows := []store.JSON{}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return columns, rows, nil
		}
		if err != nil {
			return nil, nil, malformed(err)
		}
		row := make(map[string]string, len(columns))
		for i, c := range columns {
			row[c] = cells[i]
		}
		rows = append(rows, store.JSONOf(row))
	}
}

func fromJSON(body []byte) ([]string, []store.JSON, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, nil, malformed(err)
	}
	columns, seen, rows := []string{}, map[string]bool{}, []store.JSON{}
	for i, raw := range items {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			e := core.Errf(core.KindInvalid, "invalid", "Row %d is not an object.", i)
			e.Fields = []core.FieldError{{Pointer: fmt.Sprintf("/%d", i), Message: "must be an object"}}
			return nil, nil, e
		}
		for dec.More() { // in the order of the upload
			name, err := dec.Token()
			if err != nil {
				return nil, nil, malformed(err)
			}
			if key := fmt.Sprint(name); !seen[key] {
				seen[key] = true
				columns = append(columns, key)
			}
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				return nil, nil, malformed(err)
			}
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, nil, malformed(err)
		}
		rows = append(rows, store.JSON(compact.Bytes()))
	}
	return columns, rows, nil
}

func malformed(err error) error {
	return core.Errf(core.KindMalformed, "malformed", "The dataset cannot be read: %s.", err.Error())
}

// Get reads what is known of a dataset, without its rows.
func (s *Service) Get(ctx context.Context, p core.Principal, id string) (*core.Dataset, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	d, err := s.db.Dataset(ctx, store.WorkspaceID(p.WorkspaceID), id)
	if err != nil {
		return nil, err
	}
	return resource(d), nil
}

// List reads a page of datasets, newest first.
func (s *Service) List(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.Dataset], error) {
	out := core.Page[core.Dataset]{Items: []core.Dataset{}}
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return out, err
	}
	page, err := s.db.ListDatasets(ctx, store.WorkspaceID(p.WorkspaceID), q)
	if err != nil {
		return out, err
	}
	out.NextCursor = page.NextCursor
	for i := range page.Items {
		out.Items = append(out.Items, *resource(&page.Items[i]))
	}
	return out, nil
}

// Delete removes a dataset with its rows.
func (s *Service) Delete(ctx context.Context, p core.Principal, id string) error {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return err
	}
	if p.Kind == core.ActorKindKey {
		return core.Errf(core.KindForbidden, "person_required", "Only a person can delete a dataset.")
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.DeleteDataset(ctx, store.WorkspaceID(p.WorkspaceID), id); err != nil {
			return err
		}
		_, err := s.log.Append(ctx, tx, audit.By(p, "dataset.deleted", id))
		return err
	})
}

// Rows calls fn with the rows of a dataset of the workspace, in order and some hundred
// at a time, until fn fails. No rows, no call.
func (s *Service) Rows(ctx context.Context, workspaceID, id string, fn func(rows []json.RawMessage) error) error {
	for from := 0; ; from += readBatch {
		rows, err := s.db.DatasetRows(ctx, store.WorkspaceID(workspaceID), id, from, readBatch)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		batch := make([]json.RawMessage, len(rows))
		for i, r := range rows {
			batch[i] = json.RawMessage(r.Data)
		}
		if err := fn(batch); err != nil {
			return err
		}
	}
}

func resource(d *store.Dataset) *core.Dataset {
	return &core.Dataset{ID: d.ID, Name: d.Name, Columns: append([]string{}, d.Columns...), Rows: d.Rows, Bytes: int(d.Bytes), Digest: d.Digest, CreatedAt: d.CreatedAt.Time}
}
