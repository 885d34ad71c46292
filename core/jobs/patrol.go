package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/sallyport-dev/sallyport/core/store"
)

const (
	patrolEvery = 5 * time.Second
	// ahead is how far the patrol looks into the future: further than to the next one.
	ahead = 2 * patrolEvery
	// forgotten is how long something may be due before the patrol wakes it again.
	forgotten   = 15 * time.Second
	patrolBatch = 200
	purgeEvery  = time.Hour
)

// patrolLoop looks regularly for what no job stands for. Every host does it: all of it
// is compare-and-swap, so that two patrols find nothing twice.
func (j *Jobs) patrolLoop(ctx context.Context) {
	ticker := time.NewTicker(patrolEvery)
	defer ticker.Stop()
	for {
		if err := j.Patrol(ctx); err != nil && ctx.Err() == nil {
			j.log.Error("patrol failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Patrol expires, sweeps, sets the alarms of the next seconds and wakes again what was
// forgotten, once. Every hour it purges as well.
func (j *Jobs) Patrol(ctx context.Context) error {
	var errs []error
	if _, err := j.work.Expire(ctx); err != nil {
		errs = append(errs, fmt.Errorf("expire: %w", err))
	}
	if err := j.work.Sweep(ctx); err != nil {
		errs = append(errs, fmt.Errorf("sweep: %w", err))
	}
	if err := j.purge(ctx); err != nil {
		errs = append(errs, fmt.Errorf("purge: %w", err))
	}
	if err := j.lookAround(ctx); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// purge removes what nobody needs any more. One that failed is tried by the next patrol.
func (j *Jobs) purge(ctx context.Context) error {
	j.purging.Lock()
	defer j.purging.Unlock()
	now := j.clock.Now()
	if j.work.Purge == nil || !j.purged.IsZero() && now.Sub(j.purged) < purgeEvery {
		return nil
	}
	if err := j.work.Purge(ctx); err != nil {
		return err
	}
	j.purged = now
	return nil
}

// lookAround finds in the tables what is due, or will be before the next patrol.
func (j *Jobs) lookAround(ctx context.Context) error {
	now, err := j.db.Now(ctx)
	if err != nil {
		return err
	}
	actions, err := j.db.SystemDueActions(ctx, now.Add(ahead), patrolBatch)
	if err != nil {
		return err
	}
	runs, err := j.db.SystemRunsToAdvance(ctx, now, patrolBatch)
	if err != nil {
		return err
	}
	var late []river.InsertManyParams
	for _, a := range actions {
		late = j.wake(late, executeArgs{ActionID: a.ID}, queueExecute, latest(a.ExecuteAt, a.NextTryAt, a.NotBefore), now)
	}
	for _, r := range runs {
		if now.Sub(r.UpdatedAt.Time) > forgotten {
			late = append(late, again(advanceArgs{RunID: r.ID}, queueAdvance))
		}
	}
	if late, err = j.lookAtDeliveries(ctx, late, now); err != nil || len(late) == 0 {
		return err
	}
	return j.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := j.client.InsertManyTx(ctx, tx.SQL(), late)
		return err
	})
}

// wake sets the alarm of what comes due, and adds to late what should have been done
// long ago. What came due a moment ago has its job.
func (j *Jobs) wake(late []river.InsertManyParams, args river.JobArgs, queue string, due, now time.Time) []river.InsertManyParams {
	wait := due.Sub(now)
	switch {
	case wait > 0:
		j.alarms.add(args, due, wait)
	case -wait > forgotten:
		return append(late, again(args, queue))
	}
	return late
}

// again is a job that stands once a minute at most, however many patrols ask for it.
func again(args river.JobArgs, queue string) river.InsertManyParams {
	return river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: time.Minute}}}
}

func latest(times ...store.Time) time.Time {
	last := times[0].Time
	for _, t := range times[1:] {
		if t.After(last) {
			last = t.Time
		}
	}
	return last
}
