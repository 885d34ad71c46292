package core

import "time"

// Limits of lists.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Query selects a page of a list, newest first.
type Query struct {
	Limit  int    // 0 means DefaultLimit; more than MaxLimit is refused
	Cursor string // opaque; from the page before
	RunID  string
	Status string
	Since  time.Time
}

// Page is one page of a list.
type Page[T any] struct {
	Items      []T
	NextCursor string // empty on the last page
}
