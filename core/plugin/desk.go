package plugin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// maxKept bounds the bytes of fetched bodies that one call keeps for checking quotes.
const maxKept = 32 << 20

// ticket is what one call may ask of the host. It dies with the call.
type ticket struct {
	scope *tool.Scope
	ctx   context.Context // ends with the call

	mu      sync.Mutex
	fetched map[string]fetched // by evidence id
	kept    int
}

// fetched is one reply: what it said, and the hosts that may be named as its source.
type fetched struct {
	body  []byte
	hosts []string
}

// keep remembers a fetched body and where it came from, so that evidence may quote it.
func (t *ticket) keep(evidenceID string, body []byte, addresses ...string) {
	f := fetched{body: body}
	for _, a := range addresses {
		f.hosts = append(f.hosts, hostOf(a))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept+len(body) > maxKept {
		return // quotes of it cannot be vouched for; their trust is lowered
	}
	t.kept += len(body)
	t.fetched[evidenceID] = f
}

// vouches reports whether the host itself saw what an item says: its quote and its value
// both stand in what was fetched, and it names no other place as its source.
func (t *ticket) vouches(fetchID string, e core.Evidence) bool {
	t.mu.Lock()
	f := t.fetched[fetchID]
	t.mu.Unlock()
	texts := []string{pluginpb.TextOf(e.Value)}
	places := []string{e.Source, e.Locator}
	if e.Quote != nil {
		texts = append(texts, *e.Quote)
	}
	if e.URL != nil {
		places = append(places, *e.URL)
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	for _, text := range texts {
		if !pluginpb.Vouches(f.body, text) {
			return false
		}
	}
	for _, place := range places {
		if host := hostOf(place); host != "" && !slices.Contains(f.hosts, host) {
			return false
		}
	}
	return len(texts) > 0
}

// hostOf is the host of a web address, empty for text that is none. What only looks like
// an address is its own host, which nothing was fetched from.
func hostOf(place string) string {
	if !strings.Contains(place, "//") {
		return ""
	}
	u, err := url.Parse(place)
	if err != nil || u.Host == "" {
		return place
	}
	return strings.ToLower(u.Host)
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
	d.open[id] = &ticket{scope: scope, ctx: ctx, fetched: map[string]fetched{}}
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
