package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// WorkspaceID names the workspace whose rows a read may return. It is a type of its
// own so that it cannot be forgotten or mixed up with another identifier.
type WorkspaceID string

// Time is a moment in UTC with microseconds, kept as an integer so that both
// databases compare it alike. The zero Time is NULL.
type Time struct{ time.Time }

// At is t as the database keeps it: UTC, cut to microseconds.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{time.UnixMicro(t.UnixMicro()).UTC()}
}

// AtPtr is *t as the database keeps it; nil is NULL.
func AtPtr(t *time.Time) Time {
	if t == nil {
		return Time{}
	}
	return At(*t)
}

// Ptr is the time for resources: nil when NULL.
func (t Time) Ptr() *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.Time
	return &u
}

// Value is the number of microseconds since 1970, or NULL.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan reads what Value wrote.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = Time{}
	case int64:
		*t = Time{time.UnixMicro(v).UTC()}
	default:
		return fmt.Errorf("store: a time is stored as %T", src)
	}
	return nil
}

// JSON is a document kept as the very text it was given, so that digests over it stay
// true. Empty is NULL.
type JSON []byte

// JSONOf marshals v; it panics on values that cannot be marshalled, which only a
// programming error produces.
func JSONOf(v any) JSON {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: %T as JSON: %v", v, err))
	}
	return b
}

// Value refuses text that is not UTF-8: the database would change it silently.
func (j JSON) Value() (driver.Value, error) {
	if len(j) == 0 {
		return nil, nil
	}
	if !utf8.Valid(j) {
		return nil, fmt.Errorf("store: a JSON document is not UTF-8")
	}
	return string(j), nil
}

// Scan reads what Value wrote.
func (j *JSON) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*j = nil
	case string:
		*j = JSON(v)
	case []byte:
		*j = append(JSON(nil), v...)
	default:
		return fmt.Errorf("store: a JSON document is stored as %T", src)
	}
	return nil
}

// MarshalJSON returns the document itself.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps a copy of the document.
func (j *JSON) UnmarshalJSON(b []byte) error {
	*j = append(JSON(nil), b...)
	return nil
}

// Decode unmarshals the document into v; NULL leaves v as it is.
func (j JSON) Decode(v any) error {
	if len(j) == 0 {
		return nil
	}
	if err := json.Unmarshal(j, v); err != nil {
		return fmt.Errorf("decode a stored document: %w", err)
	}
	return nil
}
