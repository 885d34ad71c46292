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
	patrolEvery = 5 * time.Second
	// forgotten is how long something may be due before the patrol wakes it again.
	forgotten   = 15 * time.Second
	executeTime = 5 * time.Minute // eight steps of half a minute, and room
	advanceTime = 15 * time.Minute
	patrolBatch = 200
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
}

// Jobs is the queue of one host.
type Jobs struct {
	db      *store.DB
	clock   core.Clock
	log     *slog.Logger
	driver  riverdriver.Driver[*sql.Tx]
	client  *river.Client[*sql.Tx]
	work    Work
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
	j := &Jobs{db: db, clock: clock, log: log}
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
	client, err := river.NewClient(j.driver, &river.Config{
		ID:                db.HostID(),
		Queues:            map[string]river.QueueConfig{queueExecute: {MaxWorkers: 8}, queueAdvance: {MaxWorkers: 4}},
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
	patrol, stop := context.WithCancel(context.WithoutCancel(ctx))
	j.stop = stop
	j.stopped.Go(func() { j.patrolLoop(patrol) })
	return nil
}

// Stop takes no new jobs and waits for those that run; when ctx ends first, they are
// told to stop.
func (j *Jobs) Stop(ctx context.Context) error {
	if j.stop == nil {
		return nil
	}
	j.stop()
	j.stopped.Wait()
	if err := j.client.Stop(ctx); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return j.client.StopAndCancel(hard)
}

// EnqueueExecute wakes the sender for an action at a time. The job exists if and only if
// the transaction commits.
func (j *Jobs) EnqueueExecute(ctx context.Context, tx *store.Tx, actionID string, at time.Time) error {
	return j.insert(ctx, tx, executeArgs{ActionID: actionID}, &river.InsertOpts{ScheduledAt: j.later(at)})
}

// EnqueueAdvance wakes the background work of a run.
func (j *Jobs) EnqueueAdvance(ctx context.Context, tx *store.Tx, runID string) error {
	return j.insert(ctx, tx, advanceArgs{RunID: runID}, nil)
}

// later leaves out times that have come: a job without a time is worked off at once, one
// with a time waits for River's scheduler.
func (j *Jobs) later(at time.Time) time.Time {
	if !at.After(j.clock.Now()) {
		return time.Time{}
	}
	return at
}

func (j *Jobs) insert(ctx context.Context, tx *store.Tx, args river.JobArgs, opts *river.InsertOpts) error {
	if _, err := j.client.InsertTx(ctx, tx.SQL(), args, opts); err != nil {
		return fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return nil
}

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

// Patrol expires, sweeps and wakes again what was forgotten, once.
func (j *Jobs) Patrol(ctx context.Context) error {
	if _, err := j.work.Expire(ctx); err != nil {
		return fmt.Errorf("expire: %w", err)
	}
	if err := j.work.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	now, err := j.db.Now(ctx)
	if err != nil {
		return err
	}
	actions, err := j.db.SystemDueActions(ctx, now.Add(-forgotten), patrolBatch)
	if err != nil {
		return err
	}
	runs, err := j.db.SystemRunsToAdvance(ctx, now, patrolBatch)
	if err != nil {
		return err
	}
	var args []river.InsertManyParams
	once := func(queue string) *river.InsertOpts {
		return &river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: time.Minute}}
	}
	for _, a := range actions {
		args = append(args, river.InsertManyParams{Args: executeArgs{ActionID: a.ID}, InsertOpts: once(queueExecute)})
	}
	for _, r := range runs {
		if now.Sub(r.UpdatedAt.Time) > forgotten {
			args = append(args, river.InsertManyParams{Args: advanceArgs{RunID: r.ID}, InsertOpts: once(queueAdvance)})
		}
	}
	if len(args) == 0 {
		return nil
	}
	return j.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := j.client.InsertManyTx(ctx, tx.SQL(), args)
		return err
	})
}
