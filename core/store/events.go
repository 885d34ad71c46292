package store

import (
	"context"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Event is one message of the outbox. Its number rises in the order of commits.
type Event struct {
	bun.BaseModel `bun:"table:events"`

	Seq         int64       `bun:"seq,pk"`
	ID          string      `bun:"id"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	RunID       string      `bun:"run_id"`
	ActionID    string      `bun:"action_id"`
	Type        string      `bun:"type"`
	Data        JSON        `bun:"data"`
	At          Time        `bun:"at"`
}

// EventsAfter reads up to limit events of the workspace with a larger number, oldest
// first; of one run where runID is not "".
func (r Reader) EventsAfter(ctx context.Context, ws WorkspaceID, runID string, after int64, limit int) ([]Event, error) {
	return all[Event](ctx, r, "event", func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("workspace_id = ?", ws).Where("seq > ?", after)
		if runID != "" {
			q = q.Where("run_id = ?", runID)
		}
		return q.Order("seq").Limit(int64(limit))
	})
}

// AllEventsAfter reads up to limit events of all workspaces with a larger number.
func (r Reader) AllEventsAfter(ctx context.Context, after int64, limit int) ([]Event, error) {
	return all[Event](ctx, r, "event", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("seq > ?", after).Order("seq").Limit(int64(limit))
	})
}

// InsertEvent adds an event and gives it its number. It locks the log head.
func (tx *Tx) InsertEvent(ctx context.Context, e *Event) error {
	head, err := tx.LockLogHead(ctx)
	if err != nil {
		return err
	}
	head.EventSeq++
	e.Seq = head.EventSeq
	if err := tx.SaveLogHead(ctx); err != nil {
		return err
	}
	return insertLater(ctx, tx, "event", e)
}

// PurgeEvents removes events older than a moment.
func (tx *Tx) PurgeEvents(ctx context.Context, before time.Time) (int, error) {
	return purge(ctx, "event", tx.w(ctx).NewDelete().Model((*Event)(nil)).Where("at < ?", At(before)))
}

// Webhook is a subscription to events. Its signing secret is sealed.
type Webhook struct {
	bun.BaseModel `bun:"table:webhooks"`

	ID          string      `bun:"id,pk"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	URL         string      `bun:"url"`
	Events      []string    `bun:"events"`
	SecretID    string      `bun:"secret_id"`
	Disabled    bool        `bun:"disabled"`
	CreatedBy   core.Actor  `bun:"created_by"`
	CreatedAt   Time        `bun:"created_at"`
	Version     int64       `bun:"version"`
}

func (w *Webhook) ref() (string, string, *int64) { return "webhook", w.ID, &w.Version }

// Webhook reads a subscription.
func (r Reader) Webhook(ctx context.Context, ws WorkspaceID, id string) (*Webhook, error) {
	return byID[Webhook](ctx, r, "webhook", ws, id)
}

// ListWebhooks lists subscriptions, newest first.
func (r Reader) ListWebhooks(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Webhook], error) {
	l := listing[Webhook]{noun: "webhook", key: "id", since: "created_at", keyOf: func(w *Webhook) string { return w.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("workspace_id = ?", ws) })
}

// InsertWebhook adds a subscription.
func (tx *Tx) InsertWebhook(ctx context.Context, w *Webhook) error {
	return insert(ctx, tx, "webhook", w)
}

// UpdateWebhook writes w if it was not changed since it was read.
func (tx *Tx) UpdateWebhook(ctx context.Context, w *Webhook) error {
	return swap(ctx, tx, w, "workspace_id", "created_by")
}

// DeleteWebhook removes a subscription and what it still had to deliver.
func (tx *Tx) DeleteWebhook(ctx context.Context, ws WorkspaceID, id string) error {
	if err := remove(ctx, "webhook", id, tx.w(ctx).NewDelete().Model((*Webhook)(nil)).Where("id = ?", id).Where("workspace_id = ?", ws)); err != nil {
		return err
	}
	_, err := purge(ctx, "delivery", tx.w(ctx).NewDelete().Model((*WebhookDelivery)(nil)).Where("webhook_id = ?", id))
	return err
}

// WebhookDelivery is one event on its way to one subscription.
type WebhookDelivery struct {
	bun.BaseModel `bun:"table:webhook_deliveries"`

	ID          string      `bun:"id,pk"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	WebhookID   string      `bun:"webhook_id"`
	EventSeq    int64       `bun:"event_seq"`
	Status      string      `bun:"status"` // pending, delivered or failed
	Attempt     int         `bun:"attempt"`
	NextTryAt   Time        `bun:"next_try_at"`
	ReplyStatus int         `bun:"reply_status"`
	Error       string      `bun:"error"`
	CreatedAt   Time        `bun:"created_at"`
	Version     int64       `bun:"version"`
}

func (d *WebhookDelivery) ref() (string, string, *int64) { return "delivery", d.ID, &d.Version }

// SystemDueDeliveries reads deliveries of all workspaces that are to be tried now.
func (r Reader) SystemDueDeliveries(ctx context.Context, now time.Time, limit int) ([]WebhookDelivery, error) {
	return all[WebhookDelivery](ctx, r, "delivery", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status = ?", "pending").Where("next_try_at <= ?", At(now)).Order("next_try_at").Limit(int64(limit))
	})
}

// InsertWebhookDelivery adds a delivery.
func (tx *Tx) InsertWebhookDelivery(ctx context.Context, d *WebhookDelivery) error {
	return insert(ctx, tx, "delivery", d)
}

// UpdateWebhookDelivery writes d if it was not changed since it was read.
func (tx *Tx) UpdateWebhookDelivery(ctx context.Context, d *WebhookDelivery) error {
	return swap(ctx, tx, d, "workspace_id")
}
