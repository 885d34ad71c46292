package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/store"
)

const (
	queueDeliver = "deliver"
	// fanEvery bounds how often events are handed to webhooks on this host: together they
	// cost one commit. Events of other hosts are looked for every second.
	fanEvery = 100 * time.Millisecond
	fanOther = time.Second
	// deliverBatch is how many due deliveries are looked at together.
	deliverBatch = 500
	deliverTime  = 5 * time.Minute
)

// Webhooks is what deliveries need.
type Webhooks struct {
	Hooks  *event.Hooks
	Egress *egress.Egress
}

type deliverArgs struct {
	WorkspaceID string `json:"workspaceId" river:"unique"`
	WebhookID   string `json:"webhookId" river:"unique"`
}

func (deliverArgs) Kind() string { return "deliver_events" }

func (deliverArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueDeliver, MaxAttempts: 1}
}

type deliverWorker struct {
	river.WorkerDefaults[deliverArgs]
	jobs *Jobs
	busy busy
}

func (w *deliverWorker) Timeout(*river.Job[deliverArgs]) time.Duration { return deliverTime }

// Work delivers what is due for one webhook. A webhook has one delivery at a time on a
// host, so that it gets events in their order as long as it takes them, and a slow one
// holds up nobody else.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[deliverArgs]) error {
	if w.jobs.work.Webhooks == nil || !w.busy.enter(job.Args) {
		return nil
	}
	for {
		err := w.jobs.deliver(ctx, job.Args)
		if again := w.busy.leave(job.Args, err != nil || ctx.Err() != nil); !again {
			return err
		}
	}
}

// busy notes which webhooks are being delivered to, and which were asked for meanwhile.
type busy struct {
	mu    sync.Mutex
	hooks map[deliverArgs]bool
}

// enter reports whether the caller is to deliver; else somebody does, and looks once
// more before ending.
func (b *busy) enter(hook deliverArgs) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, is := b.hooks[hook]; is {
		b.hooks[hook] = true
		return false
	}
	if b.hooks == nil {
		b.hooks = map[deliverArgs]bool{}
	}
	b.hooks[hook] = false
	return true
}

// leave reports whether to go round again, which it never is when giving up.
func (b *busy) leave(hook deliverArgs, giveUp bool) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hooks[hook] && !giveUp {
		b.hooks[hook] = false
		return true
	}
	delete(b.hooks, hook)
	return false
}

// deliver sends what is due for a webhook until nothing is, or one failed.
func (j *Jobs) deliver(ctx context.Context, hook deliverArgs) error {
	for ctx.Err() == nil {
		now, err := j.db.Now(ctx)
		if err != nil {
			return err
		}
		all, err := j.db.SystemDueDeliveries(ctx, now, deliverBatch)
		if err != nil {
			return err
		}
		due := all[:0]
		for _, d := range all {
			if d.WebhookID == hook.WebhookID {
				due = append(due, d)
			}
		}
		if len(due) == 0 {
			return nil
		}
		slices.SortFunc(due, func(a, b store.WebhookDelivery) int { return cmp.Compare(a.EventSeq, b.EventSeq) })
		for i := range due {
			if ok, err := j.attempt(ctx, &due[i], due[i+1:]); !ok || err != nil {
				return err
			}
		}
	}
	return nil // what is left is found by the patrol
}

// attempt tries one delivery and reports whether to go on with the next.
func (j *Jobs) attempt(ctx context.Context, d *store.WebhookDelivery, rest []store.WebhookDelivery) (ok bool, err error) {
	m, err := j.work.Webhooks.Hooks.Begin(ctx, d)
	if m == nil || err != nil {
		return err == nil, err
	}
	code := ""
	status, err := j.work.Webhooks.Egress.PostEvent(ctx, m.URL, m.ID, m.Body, m.Secret.Reveal())
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err() // we stop; the attempt is repeated
	}
	if err != nil {
		code = core.AsError(err).Code
	}
	ok = status >= 200 && status < 300
	if !ok {
		j.log.Warn("event not delivered", "webhook", d.WebhookID, "event", m.ID, "attempt", d.Attempt, "status", status, "code", code)
	}
	next, err := j.work.Webhooks.Hooks.Settle(ctx, d, status, code, rest)
	if err != nil {
		return false, err
	}
	if !next.IsZero() {
		now, err := j.db.Now(ctx)
		if err != nil {
			return false, err
		}
		j.alarms.add(deliverArgs{string(d.WorkspaceID), d.WebhookID}, next, next.Sub(now))
	}
	return ok, nil
}

// fanLoop hands new events to webhooks.
func (j *Jobs) fanLoop(ctx context.Context) {
	hooks := j.work.Webhooks.Hooks
	ticker := time.NewTicker(fanOther)
	defer ticker.Stop()
	for {
		changed := hooks.Changed() // before looking, so that nothing falls in between
		more, err := hooks.FanOut(ctx, func(ctx context.Context, tx *store.Tx, workspaceID, hookID string) error {
			return j.insert(ctx, tx, deliverArgs{workspaceID, hookID})
		})
		if err != nil && ctx.Err() == nil {
			j.log.Warn("events not handed to webhooks; trying again", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-changed:
			pause(ctx, fanEvery)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// lookAtDeliveries adds what webhooks wait for to what the patrol wakes.
func (j *Jobs) lookAtDeliveries(ctx context.Context, late []river.InsertManyParams, now time.Time) ([]river.InsertManyParams, error) {
	if j.work.Webhooks == nil {
		return late, nil
	}
	rows, err := j.db.SystemDueDeliveries(ctx, now.Add(ahead), deliverBatch)
	if err != nil {
		return late, err
	}
	type moment struct {
		args deliverArgs
		due  int64
	}
	seen := map[moment]bool{} // one alarm or job serves all that a webhook waits for at a time
	for _, d := range rows {
		args := deliverArgs{string(d.WorkspaceID), d.WebhookID}
		m := moment{args, max(d.NextTryAt.UnixMilli(), now.Add(-forgotten).UnixMilli()-1)}
		if !seen[m] {
			late = j.wake(late, args, queueDeliver, d.NextTryAt.Time, now)
			seen[m] = true
		}
	}
	return late, nil
}
