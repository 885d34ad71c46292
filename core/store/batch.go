package store

import (
	"context"
	"sync"
	"time"
)

// Limits of one shared transaction.
const (
	maxBatch    = 200
	batchWithin = 15 * time.Second
	// gather is how long a transaction waits for more, when the last one had several:
	// a commit costs as much for one as for many.
	gather = time.Millisecond
)

// Batch lets callers that wait for the same kind of write share a transaction: whoever
// finds no writer at work has one started, and what arrives while it writes goes into
// the next transaction together. The zero Batch is ready; it must not be copied.
type Batch[T any] struct {
	mu      sync.Mutex
	waiting []*batched[T]
	writing bool
	crowd   int // how many shared the last transaction
}

type batched[T any] struct {
	item T
	done chan error // one value, buffered
}

// Do hands item to write, together with what others handed over, and returns when
// write has returned. All items of one call of write share its error. If ctx ends
// first the item may still be written; its caller alone no longer waits.
func (b *Batch[T]) Do(ctx context.Context, item T, write func(context.Context, []T) error) error {
	if InTransaction(ctx) {
		return ErrNested
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &batched[T]{item: item, done: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	if !b.writing {
		b.writing = true
		go b.drain(context.WithoutCancel(ctx), write)
	}
	b.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Batch[T]) drain(ctx context.Context, write func(context.Context, []T) error) {
	for {
		b.mu.Lock()
		if n := len(b.waiting); 0 < n && n < b.crowd {
			b.mu.Unlock()
			<-time.After(gather) // others are on their way: one commit serves them all
			b.mu.Lock()
		}
		batch := b.waiting[:min(len(b.waiting), maxBatch)]
		b.waiting = b.waiting[len(batch):]
		if len(batch) == 0 {
			b.writing = false
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		b.crowd = len(batch)
		b.mu.Unlock()
		items := make([]T, len(batch))
		for i, w := range batch {
			items[i] = w.item
		}
		ctx, cancel := context.WithTimeout(ctx, batchWithin)
		err := write(ctx, items)
		cancel()
		for _, w := range batch {
			w.done <- err
		}
	}
}
