package plugin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/sallyport-dev/sallyport/core/tool"
)

// maxKept bounds the bytes of fetched bodies that one call keeps for checking quotes.
const maxKept = 32 << 20

// ticket is what one call may ask of the host. It dies with the call.
type ticket struct {
	scope *tool.Scope
	ctx   context.Context // ends with the call

	mu      sync.Mutex
	fetched map[string][]byte // evidence id → body
	kept    int
}

// keep remembers a fetched body, so that evidence may quote it.
func (t *ticket) keep(evidenceID string, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept+len(body) > maxKept {
		return // quotes of it cannot be vouched for; their trust is lowered
	}
	t.kept += len(body)
	t.fetched[evidenceID] = body
}

func (t *ticket) body(evidenceID string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fetched[evidenceID]
}

// desk issues the tickets of one process. A ticket is only good on the descriptor of the
// process it was issued for.
type desk struct {
	mu     sync.Mutex
	open   map[string]*ticket
	closed bool
}

func newDesk() *desk { return &desk{open: map[string]*ticket{}} }

// issue makes a ticket for a call; release ends it.
func (d *desk) issue(ctx context.Context, scope *tool.Scope) (id string, release func()) {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	id = hex.EncodeToString(b[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return "", func() {}
	}
	d.open[id] = &ticket{scope: scope, ctx: ctx, fetched: map[string][]byte{}}
	return id, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, id)
	}
}

var errTicket = errors.New("the ticket is not known or its call has ended")

// use finds the ticket of a request and gives the request a context that also ends with
// the call. done must be called.
func (d *desk) use(ctx context.Context, id string) (*ticket, context.Context, context.CancelFunc, error) {
	d.mu.Lock()
	t, ok := d.open[id]
	d.mu.Unlock()
	if !ok || t.ctx.Err() != nil {
		return nil, nil, nil, errTicket
	}
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return t, both, func() { stop(); cancel(nil) }, nil
}

// close ends every ticket and issues no more.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	clear(d.open)
}
