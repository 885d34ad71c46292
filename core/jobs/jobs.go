// Package jobs wakes durable work through River, on both databases. A job says only that
// there is something to look at: what to do stands in the tables, so a job that is lost,
// repeated or late changes nothing but the time. Every job is tried once; what is still
// due after that is found again by the patrol.
package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Names of queues; each has its own workers, so that long drafting never delays a send.
const (
	queueExecute = "execute"
	queueAdvance = "advance"
)

const (
	// Neither driver is told of new rows by the database, so River looks for them.
	pollEvery   = 100 * time.Millisecond
	cooldown    = 20 * time.Millisecond
	executeTime = 5 * time.Minute // eight steps of half a minute, and room
	advanceTime = 15 * time.Minute
)

// Work is what jobs do. All of it is safe to repeat.
type Work struct {
	// Execute sends one approved action, if it is still due.
	Execute func(ctx context.Context, actionID string) error
	// Advance runs the operator of a run that works in the background.
	Advance func(ctx context.Context, workspaceID, runID string) error
	// Expire ends what waits although its deadline passed.
	Expire func(ctx context.Context) (int, error)
	// Sweep settles actions whose executor fell silent.
	Sweep func(ctx context.Context) error
	// Purge removes what nobody needs any more; it is called every hour. It may be nil.
	Purge func(ctx context.Context) error
	// Webhooks delivers events; nil leaves them in the outbox.
	Webhooks *Webhooks
}

// Jobs is the queue of one host.
type Jobs struct {
	db      *store.DB
	clock   core.Clock
	log     *slog.Logger
	driver  riverdriver.Driver[*sql.Tx]
	client  *river.Client[*sql.Tx]
	work    Work
	alarms  *alarms
	purging sync.Mutex
	purged  time.Time // of the last purge
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

type executeArgs struct {
	ActionID string `json:"actionId" river:"unique"`
}

func (executeArgs) Kind() string { return "execute_action" }

func (executeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueExecute, MaxAttempts: 1}
}

type advanceArgs struct {
	RunID string `json:"runId" river:"unique"`
}

func (advanceArgs) Kind() string { return "advance_run" }

func (advanceArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueAdvance, MaxAttempts: 1}
}

type executeWorker struct {
	river.WorkerDefaults[executeArgs]
	jobs *Jobs
}

func (w *executeWorker) Timeout(*river.Job[executeArgs]) time.Duration { return executeTime }

func (w *executeWorker) Work(ctx context.Context, job *river.Job[executeArgs]) error {
	return w.jobs.work.Execute(ctx, job.Args.ActionID)
}

type advanceWorker struct {
	river.WorkerDefaults[advanceArgs]
	jobs *Jobs
}

func (w *advanceWorker) Timeout(*river.Job[advanceArgs]) time.Duration { return advanceTime }

func (w *advanceWorker) Work(ctx context.Context, job *river.Job[advanceArgs]) error {
	run, err := w.jobs.db.SystemRun(ctx, job.Args.RunID)
	if core.IsKind(err, core.KindNotFound) {
		return nil // the run is gone, and with it the work
	}
	if err != nil {
		return err
	}
	return w.jobs.work.Advance(ctx, string(run.WorkspaceID), run.ID)
}

// New makes the queue on a database. It takes jobs in at once, and works them off after
// Start.
func New(db *store.DB, clock core.Clock, log *slog.Logger) (*Jobs, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if clock == nil {
		clock = core.SystemClock{}
	}
	j := &Jobs{db: db, clock: clock, log: log, alarms: newAlarms()}
	if db.Driver() == store.SQLite {
		j.driver = riversqlite.New(db.WriterSQL())
	} else {
		j.driver = riverdatabasesql.New(db.WriterSQL())
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &executeWorker{jobs: j}); err != nil {
		return nil, err
	}
	if err := river.AddWorkerSafely(workers, &advanceWorker{jobs: j}); err != nil {
		return nil, err
	}
	if err := river.AddWorkerSafely(workers, &deliverWorker{jobs: j}); err != nil {
		return nil, err
	}
	client, err := river.NewClient(j.driver, &river.Config{
		ID:                db.HostID(),
		Queues:            map[string]river.QueueConfig{queueExecute: {MaxWorkers: 8}, queueAdvance: {MaxWorkers: 4}, queueDeliver: {MaxWorkers: 8}},
		Workers:           workers,
		FetchCooldown:     cooldown,
		FetchPollInterval: pollEvery,
		PollOnly:          true,
		JobTimeout:        advanceTime,
		MaxAttempts:       1,
		Logger:            quiet(log),
	})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	j.client = client
	return j, nil
}

// quiet keeps what River reports as warning or worse.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(levelHandler{log.Handler()}) }

type levelHandler struct{ slog.Handler }

// Enabled cuts off River's reports of its routine.
func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// Migrate creates or updates the tables of the queue.
func (j *Jobs) Migrate(ctx context.Context) error {
	m, err := rivermigrate.New(j.driver, &rivermigrate.Config{Logger: quiet(j.log)})
	if err != nil {
		return fmt.Errorf("job queue: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}

// Start works jobs off until Stop. It may be called once.
func (j *Jobs) Start(ctx context.Context, w Work) error {
	j.work = w
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the job queue: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	j.stop = stop
	j.stopped.Go(func() { j.patrolLoop(running) })
	j.stopped.Go(func() { j.alarms.run(running, j.insertNow) })
	if w.Webhooks != nil {
		j.stopped.Go(func() { j.fanLoop(running) })
	}
	return nil
}

// Stop takes no new jobs and waits for those that run; when ctx ends first, they are
// told to stop.
func (j *Jobs) Stop(ctx context.Context) error {
	if j.stop == nil {
		return nil
	}
	j.stop()
	j.alarms.stop()
	j.stopped.Wait()
	if err := j.client.Stop(ctx); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return j.client.StopAndCancel(hard)
}

// EnqueueExecute wakes the sender for an action at a time, within a fraction of a second
// of it. It does so if and only if the transaction commits, and the action has to be due
// at that time by its row: when this host stops before, another host or the next start
// finds it there.
func (j *Jobs) EnqueueExecute(ctx context.Context, tx *store.Tx, actionID string, at time.Time) error {
	args := executeArgs{ActionID: actionID}
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	if wait := at.Sub(now); wait > 0 {
		tx.AfterCommit(func() { j.alarms.add(args, at, wait) })
		return nil
	}
	return j.insert(ctx, tx, args)
}

// EnqueueAdvance wakes the background work of a run.
func (j *Jobs) EnqueueAdvance(ctx context.Context, tx *store.Tx, runID string) error {
	return j.insert(ctx, tx, advanceArgs{RunID: runID})
}

func (j *Jobs) insert(ctx context.Context, tx *store.Tx, args river.JobArgs) error {
	if _, err := j.client.InsertTx(ctx, tx.SQL(), args, nil); err != nil {
		return fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return nil
}

// insertNow enqueues what an alarm was set for. What cannot be enqueued is found by the
// patrol.
func (j *Jobs) insertNow(ctx context.Context, jobs []river.JobArgs) {
	params := make([]river.InsertManyParams, len(jobs))
	for i, args := range jobs {
		params[i] = river.InsertManyParams{Args: args}
	}
	err := j.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := j.client.InsertManyTx(ctx, tx.SQL(), params)
		return err
	})
	if err != nil && ctx.Err() == nil {
		j.log.Warn("due jobs not enqueued; the patrol does it", "jobs", len(jobs), "error", err)
	}
}
