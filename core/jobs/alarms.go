package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

// alarm is a job that is to start at a time.
type alarm struct {
	args river.JobArgs
	due  time.Time
}

// alarms starts jobs when their time comes. River moves jobs with a time only every five
// seconds, which is long after an undo window or a pause between tries. Alarms live in
// memory: the rows say what is due and when, and the patrol of every host looks some
// seconds ahead and sets them anew.
type alarms struct {
	mu     sync.Mutex
	set    map[alarm]*time.Timer
	rung   []river.JobArgs
	bell   chan struct{}
	closed bool
}

func newAlarms() *alarms {
	return &alarms{set: map[alarm]*time.Timer{}, bell: make(chan struct{}, 1)}
}

// add has a job start when wait is over. The same job for the same time is one alarm.
func (a *alarms) add(args river.JobArgs, due time.Time, wait time.Duration) {
	key := alarm{args, due.UTC().Truncate(time.Millisecond)} // rows keep less of a time than callers have
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.set[key] != nil {
		return
	}
	a.set[key] = time.AfterFunc(max(wait, 0), func() { a.ring(key) })
}

func (a *alarms) ring(key alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.set, key)
	a.rung = append(a.rung, key.args)
	select {
	case a.bell <- struct{}{}:
	default: // it rings already
	}
}

// run hands over what rang, as much as there is at a time, until ctx ends.
func (a *alarms) run(ctx context.Context, start func(ctx context.Context, jobs []river.JobArgs)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.bell:
		}
		a.mu.Lock()
		jobs := a.rung
		a.rung = nil
		a.mu.Unlock()
		if len(jobs) > 0 {
			start(ctx, jobs)
		}
	}
}

func (a *alarms) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for key, timer := range a.set {
		timer.Stop()
		delete(a.set, key)
	}
}
