package event

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
)

// States of a delivery.
const (
	deliveryPending   = "pending"
	deliveryDelivered = "delivered"
	deliveryFailed    = "failed"
)

const (
	// keyFanned names the number of the last event that was handed to webhooks, keyFanning
	// the host that does it: writing it makes others wait for the end of the transaction.
	keyFanned  = "webhooks.fanned"
	keyFanning = "webhooks.fanning"
	fanBatch   = 200
	// quietMost is how many events nobody wants may pass before that is stored, so that a
	// start need not read the whole outbox. Storing it each time would cost a commit each.
	quietMost = 2000
	// attemptTime is how long an attempt may take; after it another host takes it for lost.
	attemptTime = time.Minute
	// together is how long a webhook that just failed is left alone with its other events.
	together = time.Minute
	gone     = 410
)

// pauses are the times between attempts; after the last the delivery has failed.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour}

// Changed is closed when this host has written events after the call.
func (h *Hooks) Changed() <-chan struct{} { return h.d.Bus.news() }

// FanOut notes which new events go to which webhooks, and calls wake in the transaction
// for every webhook that has something to be delivered. It reports whether there may be
// more.
func (h *Hooks) FanOut(ctx context.Context, wake func(ctx context.Context, tx *store.Tx, workspaceID, hookID string) error) (more bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fanned, err := fannedUpTo(ctx, h.d.DB.InstanceValue)
	if err != nil {
		return false, err
	}
	events, err := h.d.DB.AllEventsAfter(ctx, max(fanned, h.quiet), fanBatch)
	if err != nil || len(events) == 0 {
		return false, err
	}
	last := events[len(events)-1].Seq
	wanted, err := h.wanted(ctx, events)
	if err != nil {
		return false, err
	}
	if len(wanted) == 0 && last-fanned < quietMost {
		h.quiet = last
		return len(events) == fanBatch, nil
	}
	err = h.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		more = len(events) == fanBatch
		if err := tx.PutInstanceValue(ctx, keyFanning, h.d.DB.HostID()); err != nil {
			return err
		}
		current, err := fannedUpTo(ctx, tx.InstanceValue)
		if err != nil {
			return err
		}
		if current != fanned { // another host was faster: begin again after what it did
			more = true
			return nil
		}
		if err := insertDeliveries(ctx, tx, wanted, wake); err != nil {
			return err
		}
		return tx.PutInstanceValue(ctx, keyFanned, strconv.FormatInt(last, 10))
	})
	return more, err
}

func fannedUpTo(ctx context.Context, value func(ctx context.Context, key string) (string, error)) (int64, error) {
	text, err := value(ctx, keyFanned)
	if core.IsKind(err, core.KindNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// wanting is an event and a webhook that is to be told of it.
type wanting struct {
	hook *store.Webhook
	seq  int64
}

func (h *Hooks) wanted(ctx context.Context, events []store.Event) ([]wanting, error) {
	hooks := map[store.WorkspaceID][]store.Webhook{}
	var out []wanting
	for i := range events {
		ws := events[i].WorkspaceID
		if _, read := hooks[ws]; !read {
			page, err := h.d.DB.ListWebhooks(ctx, ws, core.Query{Limit: core.MaxLimit})
			if err != nil {
				return nil, err
			}
			hooks[ws] = page.Items
		}
		for k := range hooks[ws] {
			if wants(&hooks[ws][k], &events[i]) {
				out = append(out, wanting{&hooks[ws][k], events[i].Seq})
			}
		}
	}
	return out, nil
}

func insertDeliveries(ctx context.Context, tx *store.Tx, wanted []wanting, wake func(ctx context.Context, tx *store.Tx, workspaceID, hookID string) error) error {
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	woken := map[string]bool{}
	for _, w := range wanted {
		row := &store.WebhookDelivery{ID: core.NewID("dlv", now), WorkspaceID: w.hook.WorkspaceID, WebhookID: w.hook.ID, EventSeq: w.seq, Status: deliveryPending,
			NextTryAt: store.At(now), CreatedAt: store.At(now)}
		if err := tx.InsertWebhookDelivery(ctx, row); err != nil {
			return err
		}
		if woken[w.hook.ID] {
			continue
		}
		woken[w.hook.ID] = true
		if err := wake(ctx, tx, string(w.hook.WorkspaceID), w.hook.ID); err != nil {
			return err
		}
	}
	return nil
}

// Message is what one attempt sends, by the rules of Standard Webhooks.
type Message struct {
	ID     string // the same in every attempt and for every webhook
	URL    string
	Body   []byte
	Secret secret.Value // whsec_…
}

// Begin takes a due delivery for one attempt and returns what is to be sent; nil when
// another host has it, or when there is nothing to be sent any more. An attempt that is
// not settled is repeated after a minute.
func (h *Hooks) Begin(ctx context.Context, d *store.WebhookDelivery) (*Message, error) {
	var hook *store.Webhook
	var told *store.Event
	err := h.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		row := *d // the transaction may run twice
		if hook, err = tx.Webhook(ctx, d.WorkspaceID, d.WebhookID); err != nil {
			return err
		}
		events, err := tx.AllEventsAfter(ctx, d.EventSeq-1, 1)
		if err != nil {
			return err
		}
		told = nil
		if len(events) == 1 && events[0].Seq == d.EventSeq {
			told = &events[0]
		}
		row.Attempt, row.NextTryAt = row.Attempt+1, store.At(now.Add(attemptTime))
		switch {
		case hook.Disabled:
			row.Status, row.Error = deliveryFailed, "webhook_disabled"
		case told == nil:
			row.Status, row.Error = deliveryFailed, "event_purged"
		}
		if err := tx.UpdateWebhookDelivery(ctx, &row); err != nil {
			return err
		}
		*d = row
		return nil
	})
	if store.IsChanged(err) || core.IsKind(err, core.KindNotFound) {
		return nil, nil
	}
	if err != nil || d.Status != deliveryPending {
		return nil, err
	}
	m := &Message{ID: told.ID, URL: hook.URL}
	if m.Body, err = body(told); err != nil {
		return nil, err
	}
	m.Secret, err = h.d.Keys.Unseal(ctx, h.d.DB, hook.WorkspaceID, hook.SecretID, secretClass, hook.ID)
	return m, err
}

// body is a thin message: who wants to know more asks for it with a credential.
func body(row *store.Event) ([]byte, error) {
	e, err := stored(row)
	if err != nil {
		return nil, err
	}
	data := map[string]any{}
	maps.Copy(data, e.Data)
	data["workspaceId"] = e.WorkspaceID
	if e.RunID != nil {
		data["runId"] = *e.RunID
	}
	if e.ActionID != nil {
		data["actionId"] = *e.ActionID
	}
	return json.Marshal(struct {
		Type      string         `json:"type"`
		Timestamp time.Time      `json:"timestamp"`
		Data      map[string]any `json:"data"`
	}{e.Type, e.At.UTC(), data})
}

// Settle records how an attempt ended: the status of the reply, 0 when there was none,
// and for the log a code of what failed. rest are other deliveries of the same webhook
// that are due; after a failure they wait with it. It returns when to try again, or the
// zero time. A webhook whose receiver is gone (410) is disabled.
func (h *Hooks) Settle(ctx context.Context, d *store.WebhookDelivery, status int, code string, rest []store.WebhookDelivery) (next time.Time, err error) {
	err = h.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		row := *d
		row.ReplyStatus, row.Error, next = status, code, time.Time{}
		switch {
		case status >= 200 && status < 300:
			row.Status, row.Error = deliveryDelivered, ""
			return tx.UpdateWebhookDelivery(ctx, &row)
		case status == gone:
			row.Status = deliveryFailed
			if err := tx.UpdateWebhookDelivery(ctx, &row); err != nil {
				return err
			}
			return h.disable(ctx, tx, d)
		case row.Attempt > len(pauses):
			row.Status = deliveryFailed
		default:
			next = now.Add(pauses[row.Attempt-1])
			row.NextTryAt = store.At(next)
		}
		if err := tx.UpdateWebhookDelivery(ctx, &row); err != nil {
			return err
		}
		return putOff(ctx, tx, rest, now, next)
	})
	if store.IsChanged(err) || core.IsKind(err, core.KindNotFound) {
		return time.Time{}, nil // deleted meanwhile, or given to another host after a minute
	}
	return next, err
}

// putOff has other deliveries wait with one that failed, so that a receiver that is down
// is asked once and not for every event. It is no attempt of theirs.
func putOff(ctx context.Context, tx *store.Tx, rest []store.WebhookDelivery, now, next time.Time) error {
	until := now.Add(together)
	if !next.IsZero() && next.Before(until) {
		until = next
	}
	for _, other := range rest {
		other.NextTryAt = store.At(until)
		if err := tx.UpdateWebhookDelivery(ctx, &other); err != nil && !store.IsChanged(err) {
			return err
		}
	}
	return nil
}

func (h *Hooks) disable(ctx context.Context, tx *store.Tx, d *store.WebhookDelivery) error {
	w, err := tx.Webhook(ctx, d.WorkspaceID, d.WebhookID)
	if err != nil || w.Disabled {
		return err
	}
	w.Disabled = true
	if err := tx.UpdateWebhook(ctx, w); err != nil {
		return err
	}
	return h.record(ctx, tx, audit.Entry{Actor: core.Actor{Kind: core.ActorKindJob, ID: "webhooks", Label: "webhooks"}, WorkspaceID: string(w.WorkspaceID), Action: "webhook.disabled", Target: w.ID}, w)
}
