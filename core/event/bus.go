// Package event tells what happened: to clients that follow a run, and to webhooks.
// Events are rows of one outbox, written in the transaction of what they report, with
// numbers that rise in the order of commits; so a reader that stopped anywhere can go
// on there, on any host, and misses nothing.
package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Types of events.
const (
	RunCreated          = "run.created"
	RunUpdated          = "run.updated"
	RunAwaitingApproval = "run.awaiting_approval"
	ActionApproved      = "action.approved"
	ActionRejected      = "action.rejected"
	ActionExpired       = "action.expired"
	ActionSucceeded     = "action.succeeded"
	ActionFailed        = "action.failed"
	ActionUnknown       = "action.unknown"
	ActionUpdated       = "action.updated"
	NeedsReauth         = "connector.needs_reauth"
	PluginSwapped       = "plugin.swapped"
	BudgetExceeded      = "budget.exceeded"
	MeasurementClosed   = "measurement.closed"
)

// Times and sizes of reading.
const (
	// pollEvery is how often events of other hosts are looked for.
	pollEvery = time.Second
	readBatch = 200
)

// Keep is how long events can be replayed, and longer than a webhook delivery is tried.
const Keep = 30 * 24 * time.Hour

// FromNow as the number to go on after means: only what happens from now on.
const FromNow int64 = -1

// Stored is an event with its number, which is the SSE event id.
type Stored struct {
	Seq int64
	core.Event
}

// Bus writes and follows the outbox. It is safe for concurrent use.
type Bus struct {
	db    *store.DB
	clock core.Clock
	log   *slog.Logger

	mu        sync.Mutex
	changed   chan struct{} // closed when there may be news
	followers int
	stop      context.CancelFunc // of the poller, while anyone follows
}

// NewBus makes a Bus on a database.
func NewBus(db *store.DB, clock core.Clock, log *slog.Logger) *Bus {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Bus{db: db, clock: clock, log: log, changed: make(chan struct{})}
}

// Emit writes an event in the caller's transaction and wakes followers on this host
// once that is committed. Identifier and time are filled in when missing. Data holds
// identifiers and states only. It locks the log head, so call it late.
func (b *Bus) Emit(ctx context.Context, tx *store.Tx, e core.Event) error {
	if e.At.IsZero() {
		e.At = b.clock.Now()
	}
	if e.ID == "" {
		e.ID = core.NewID(core.PrefixEvent, e.At)
	}
	if e.Data == nil {
		e.Data = core.EventData{}
	}
	row := &store.Event{ID: e.ID, WorkspaceID: store.WorkspaceID(e.WorkspaceID), RunID: deref(e.RunID), ActionID: deref(e.ActionID),
		Type: e.Type, Data: store.JSONOf(e.Data), At: store.At(e.At)}
	if err := tx.InsertEvent(ctx, row); err != nil {
		return err
	}
	tx.AfterCommit(b.wake)
	return nil
}

// Purge removes events that are no longer kept, and tells how many there were.
func (b *Bus) Purge(ctx context.Context) (removed int, err error) {
	err = b.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		removed, err = tx.PurgeEvents(ctx, b.clock.Now().Add(-Keep))
		return err
	})
	return removed, err
}

// Subscribe sends the events of a workspace with a number above after, oldest first,
// and then new ones as they happen; those of one run where runID is not "". The channel
// is closed when ctx ends. A follower that does not read keeps only itself waiting.
func (b *Bus) Subscribe(ctx context.Context, ws store.WorkspaceID, runID string, after int64) <-chan Stored {
	out := make(chan Stored)
	go func() {
		defer close(out)
		b.follow()
		defer b.unfollow()
		b.send(ctx, out, ws, runID, after)
	}()
	return out
}

func (b *Bus) send(ctx context.Context, out chan<- Stored, ws store.WorkspaceID, runID string, after int64) {
	for ctx.Err() == nil {
		news := b.news() // before reading, so that nothing falls in between
		rows, next, err := b.read(ctx, ws, runID, after)
		if err != nil && ctx.Err() == nil {
			b.log.Warn("events could not be read; trying again", "error", err)
		}
		after = next
		for i := range rows {
			e, err := stored(&rows[i])
			if err != nil {
				b.log.Error("an event cannot be read and is left out", "seq", rows[i].Seq, "error", err)
				continue
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
		if len(rows) == readBatch {
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// read returns the events after a number and the number to go on after.
func (b *Bus) read(ctx context.Context, ws store.WorkspaceID, runID string, after int64) ([]store.Event, int64, error) {
	if after < 0 {
		head, err := b.db.LogHead(ctx)
		if err != nil {
			return nil, after, err
		}
		return nil, head.EventSeq, nil
	}
	rows, err := b.db.EventsAfter(ctx, ws, runID, after, readBatch)
	if err != nil || len(rows) == 0 {
		return nil, after, err
	}
	return rows, rows[len(rows)-1].Seq, nil
}

func stored(r *store.Event) (Stored, error) {
	e := Stored{Seq: r.Seq, Event: core.Event{ID: r.ID, WorkspaceID: string(r.WorkspaceID), Type: r.Type, At: r.At.Time, Data: core.EventData{}}}
	if r.RunID != "" {
		e.RunID = &r.RunID
	}
	if r.ActionID != "" {
		e.ActionID = &r.ActionID
	}
	return e, r.Data.Decode(&e.Data)
}

func (b *Bus) news() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *Bus) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

// follow has the poller run while there is a follower.
func (b *Bus) follow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers++
	if b.followers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		b.stop = cancel
		go b.poll(ctx)
	}
}

func (b *Bus) unfollow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers--
	if b.followers == 0 {
		b.stop()
	}
}

// poll wakes followers when another host has written events. It reads one row a
// second, however many follow. The first look always wakes: what happened while nobody
// polled may be news to who subscribed since.
func (b *Bus) poll(ctx context.Context) {
	last := int64(-1)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		head, err := b.db.LogHead(ctx)
		if err == nil && head.EventSeq != last {
			last = head.EventSeq
			b.wake()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
