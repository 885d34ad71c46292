package event

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
)

// MaxHooks is how many webhooks a workspace may have.
const MaxHooks = 20

const (
	maxHookURL  = 2000
	secretBytes = 32
	secretClass = "event_webhook"
)

// Types lists what webhooks can be told, in the order of a run's life.
func Types() []string {
	return []string{RunCreated, RunUpdated, RunAwaitingApproval, ActionApproved, ActionRejected, ActionExpired, ActionSucceeded, ActionFailed, ActionUnknown, ActionUpdated,
		NeedsReauth, PluginSwapped, BudgetExceeded, MeasurementClosed}
}

// HookDeps is what webhooks stand on. All of it is needed.
type HookDeps struct {
	DB    *store.DB
	Bus   *Bus
	Audit *audit.Log
	Keys  *secret.Keeper
	Clock core.Clock
	// Check refuses addresses that events must not go to.
	Check func(address string) error
}

// Hooks keeps the webhooks of workspaces and what is still to be delivered to them.
// Package jobs delivers. It is safe for concurrent use.
type Hooks struct {
	d HookDeps

	mu    sync.Mutex
	quiet int64 // no webhook wants an event up to this number, of those after the stored one
}

// NewHooks makes the service.
func NewHooks(d HookDeps) *Hooks { return &Hooks{d: d} }

// mayManage asks for the scope, and of people for a recent sign-in: a webhook tells
// another place what happens here.
func (h *Hooks) mayManage(p core.Principal) error {
	if err := p.Require(core.ScopeConnectorsManage); err != nil {
		return err
	}
	if p.Kind == core.ActorKindPerson && p.ProofAt(h.d.Clock.Now()) == core.ProofP1 {
		return core.Errf(core.KindForbidden, "weak_proof", "Webhooks ask for a sign-in not older than five minutes. Sign in again.")
	}
	return nil
}

// Create subscribes an address to events of the principal's workspace, from now on. The
// signing secret stands in the answer and nowhere else.
func (h *Hooks) Create(ctx context.Context, p core.Principal, address string, types []string) (*core.WebhookSubscription, error) {
	if err := h.mayManage(p); err != nil {
		return nil, err
	}
	if err := h.check(address, types); err != nil {
		return nil, err
	}
	key := make([]byte, secretBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	signing := "whsec_" + base64.StdEncoding.EncodeToString(key)
	ws := store.WorkspaceID(p.WorkspaceID)
	var made *store.Webhook
	err := h.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		have, err := tx.ListWebhooks(ctx, ws, core.Query{Limit: core.MaxLimit})
		if err != nil {
			return err
		}
		if len(have.Items) >= MaxHooks {
			return core.Errf(core.KindConflict, "too_many_webhooks", "The workspace has %d webhooks, which is the limit. Delete one first.", MaxHooks)
		}
		made = &store.Webhook{ID: core.NewID(core.PrefixHook, now), WorkspaceID: ws, URL: address, Events: slices.Clone(types), CreatedBy: p.Actor(), CreatedAt: store.At(now)}
		if made.SecretID, err = h.d.Keys.Seal(ctx, tx, ws, secretClass, made.ID, []byte(signing)); err != nil {
			return err
		}
		if err := tx.InsertWebhook(ctx, made); err != nil {
			return err
		}
		return h.record(ctx, tx, audit.By(p, "webhook.created", made.ID), made)
	})
	if err != nil {
		return nil, err
	}
	out := subscription(made)
	out.Secret = &signing
	return &out, nil
}

func (h *Hooks) check(address string, types []string) error {
	refuse := func(pointer, message string) error {
		e := core.Errf(core.KindInvalid, "invalid", "The webhook does not fit: %s %s.", pointer, message)
		e.Fields = []core.FieldError{{Pointer: pointer, Message: message}}
		return e
	}
	if len(address) > maxHookURL {
		return refuse("/url", fmt.Sprintf("must have at most %d characters", maxHookURL))
	}
	if err := h.d.Check(address); err != nil {
		e := *core.AsError(err)
		e.Fields = []core.FieldError{{Pointer: "/url", Message: "cannot be delivered to"}}
		return &e
	}
	if len(types) == 0 {
		return refuse("/events", "needs at least one type")
	}
	known := Types()
	for i, t := range types {
		if !slices.Contains(known, t) {
			return refuse(fmt.Sprintf("/events/%d", i), "is not a type of event")
		}
		if slices.Contains(types[:i], t) {
			return refuse(fmt.Sprintf("/events/%d", i), "stands twice")
		}
	}
	return nil
}

// record notes a change of a webhook. Its address may hold a token, so only the host is
// noted.
func (h *Hooks) record(ctx context.Context, tx *store.Tx, e audit.Entry, w *store.Webhook) error {
	e.Details = map[string]any{"events": w.Events}
	if u, err := url.Parse(w.URL); err == nil {
		e.Details["host"] = u.Host
	}
	_, err := h.d.Audit.Append(ctx, tx, e)
	return err
}

// List reads a page of webhooks, newest first, without their secrets.
func (h *Hooks) List(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.WebhookSubscription], error) {
	out := core.Page[core.WebhookSubscription]{Items: []core.WebhookSubscription{}}
	if err := p.Require(core.ScopeConnectorsManage); err != nil {
		return out, err
	}
	page, err := h.d.DB.ListWebhooks(ctx, store.WorkspaceID(p.WorkspaceID), q)
	if err != nil {
		return out, err
	}
	out.NextCursor = page.NextCursor
	for i := range page.Items {
		out.Items = append(out.Items, subscription(&page.Items[i]))
	}
	return out, nil
}

// Delete ends a subscription. What was not delivered yet is not delivered any more.
func (h *Hooks) Delete(ctx context.Context, p core.Principal, id string) error {
	if err := h.mayManage(p); err != nil {
		return err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	return h.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.Webhook(ctx, ws, id)
		if err != nil {
			return err
		}
		if err := tx.DeleteWebhook(ctx, ws, id); err != nil {
			return err
		}
		if err := tx.DeleteSecret(ctx, ws, w.SecretID); err != nil {
			return err
		}
		return h.record(ctx, tx, audit.By(p, "webhook.deleted", id), w)
	})
}

func subscription(w *store.Webhook) core.WebhookSubscription {
	return core.WebhookSubscription{ID: w.ID, URL: w.URL, Events: append([]string{}, w.Events...), CreatedAt: w.CreatedAt.Time, Disabled: w.Disabled}
}

// wants reports whether a webhook is to be told of an event.
func wants(w *store.Webhook, e *store.Event) bool {
	return !w.Disabled && slices.Contains(w.Events, e.Type) && !e.At.Before(w.CreatedAt.Time.Truncate(time.Millisecond))
}
