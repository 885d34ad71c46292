// Package tool is the one way to call a tool: a registry of what there is, and a
// dispatcher that checks, runs, meters and audits each call. Every surface enters here.
package tool

import (
	"sync"
	"sync/atomic"
)

// Registry holds the snapshot in force. Readers never wait; a swap replaces the whole.
type Registry struct {
	current atomic.Pointer[Snapshot]

	mu          sync.Mutex // orders swaps and their announcements
	subscribers []func(old, new *Snapshot)
}

// NewRegistry makes a registry that has core's own tools and no plugins yet.
func NewRegistry() *Registry {
	own, err := NewSnapshot(nil)
	if err != nil {
		panic(err) // the documents of core's own tools are part of this binary
	}
	r := &Registry{}
	r.current.Store(own)
	return r
}

// Snapshot is what is in force now. It never changes.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Swap puts another snapshot in force and tells the subscribers, one swap after the
// other. Calls that hold the old one finish on it.
func (r *Registry) Swap(next *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.current.Swap(next)
	for _, tell := range r.subscribers {
		tell(old, next)
	}
}

// Subscribe calls tell after each swap, in order, on the goroutine that swaps. tell must
// not swap.
func (r *Registry) Subscribe(tell func(old, new *Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, tell)
}
