package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Host is one running serve process. Its heartbeat tells others that it lives.
type Host struct {
	bun.BaseModel `bun:"table:hosts"`

	ID          string `bun:"id,pk"`
	Name        string `bun:"name"` // of the machine
	PID         int    `bun:"pid"`
	StartedAt   Time   `bun:"started_at"`
	HeartbeatAt Time   `bun:"heartbeat_at"`
	StoppedAt   Time   `bun:"stopped_at"`
}

// Heartbeats of hosts.
const (
	HeartbeatEvery = 10 * time.Second
	// HostDeadAfter is how long a host may be silent before it counts as dead.
	HostDeadAfter = 6 * HeartbeatEvery
	// hostKept is how long a silent host stays in the list, for people who look back.
	hostKept = 30 * 24 * time.Hour
)

// SystemHosts reads every host that was ever started on this database, newest first.
func (r Reader) SystemHosts(ctx context.Context) ([]Host, error) {
	return all[Host](ctx, r, "host", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("started_at DESC", "id DESC") })
}

// HostAlive reports whether a host was neither stopped nor silent for HostDeadAfter at
// a moment of database time. A host that is not known does not live.
func (r Reader) HostAlive(ctx context.Context, id string, now time.Time) (bool, error) {
	n, err := r.q(ctx).NewSelect().Model((*Host)(nil)).Where("id = ?", id).Where("stopped_at IS NULL").
		Where("heartbeat_at > ?", At(now.Add(-HostDeadAfter))).Count(ctx)
	if err != nil {
		return false, failed("look for a host", err)
	}
	return n > 0, nil
}

// LockHost registers this process as a running host and keeps its heartbeat until
// release is called. On SQLite it also takes an exclusive lock on a file beside the
// database: a second host gets the conflict host_running. The lock belongs to the
// process, so it goes with it, however that ends. On Postgres hosts work side by side.
func (db *DB) LockHost(ctx context.Context) (release func(), err error) {
	unlock := func() {}
	if db.driver == SQLite {
		unlock, err = lockFile(db.path + ".host.lock")
		if errors.Is(err, errLocked) {
			return nil, core.Errf(core.KindConflict, "host_running",
				"Another sallyport serve is running on the database %s. Stop it first, or give this one another --data directory.", db.path)
		}
		if err != nil {
			return nil, &core.Error{Kind: core.KindUnavailable, Code: "host_lock_failed",
				Detail: "The lock file beside the database could not be taken. Check that the data directory can be written.", Err: err}
		}
	}
	if err := db.registerHost(ctx); err != nil {
		unlock()
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go db.heartbeat(stop, done)
	var once sync.Once
	return func() {
		once.Do(func() {
			close(stop)
			<-done
			db.beat(func(now Time) (string, Time) { return "stopped_at", now })
			unlock()
		})
	}, nil
}

func (db *DB) registerHost(ctx context.Context) error {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return db.InTx(ctx, func(ctx context.Context, tx *Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		h := &Host{ID: db.hostID, Name: name, PID: os.Getpid(), StartedAt: At(now), HeartbeatAt: At(now)}
		_, err = tx.w(ctx).NewInsert().Model(h).On("CONFLICT (id) DO UPDATE").Set("heartbeat_at = EXCLUDED.heartbeat_at").
			Set("stopped_at = NULL").Exec(ctx)
		if err != nil {
			return failed("register the host", err)
		}
		_, err = purge(ctx, "host", tx.w(ctx).NewDelete().Model((*Host)(nil)).Where("heartbeat_at < ?", At(now.Add(-hostKept))))
		return err
	})
}

func (db *DB) heartbeat(stop, done chan struct{}) {
	defer close(done)
	t := time.NewTicker(HeartbeatEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			db.beat(func(now Time) (string, Time) { return "heartbeat_at", now })
		}
	}
}

func (db *DB) beat(what func(now Time) (column string, at Time)) {
	ctx, cancel := context.WithTimeout(context.Background(), HeartbeatEvery/2)
	defer cancel()
	err := db.InTx(ctx, func(ctx context.Context, tx *Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		column, at := what(At(now))
		return set(ctx, "host", db.hostID, tx.w(ctx).NewUpdate().Model((*Host)(nil)).
			Set("? = ?", bun.Ident(column), at).Where("id = ?", db.hostID))
	})
	if err != nil {
		db.log.Warn("the heartbeat of this host could not be written", "error", err)
	}
}

type instanceValue struct {
	bun.BaseModel `bun:"table:instance"`

	Key   string `bun:"key,pk"`
	Value string `bun:"value"`
}

// instanceID is the key of the identifier that the first migration gives the database.
const instanceID = "installation_id"

// InstallationID names the database for ever; digests bind it.
func (r Reader) InstallationID(ctx context.Context) (string, error) {
	if id := r.db.installation.Load(); id != nil {
		return *id, nil
	}
	id, err := r.InstanceValue(ctx, instanceID)
	if err == nil {
		r.db.installation.Store(&id)
	}
	return id, err
}

// InstanceValue reads a value that belongs to the whole installation.
func (r Reader) InstanceValue(ctx context.Context, key string) (string, error) {
	v, err := one[instanceValue](ctx, r, "instance value", key, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("key = ?", key) })
	if err != nil {
		return "", err
	}
	return v.Value, nil
}

// PutInstanceValue writes a value that belongs to the whole installation.
func (tx *Tx) PutInstanceValue(ctx context.Context, key, value string) error {
	_, err := tx.w(ctx).NewInsert().Model(&instanceValue{Key: key, Value: value}).On("CONFLICT (key) DO UPDATE").Set("value = EXCLUDED.value").Exec(ctx)
	if err != nil {
		return failed("write an instance value", err)
	}
	return nil
}

// InsertInstanceValue writes a value unless there is one; the one that stands is returned.
func (tx *Tx) InsertInstanceValue(ctx context.Context, key, value string) (string, error) {
	_, err := tx.w(ctx).NewInsert().Model(&instanceValue{Key: key, Value: value}).On("CONFLICT (key) DO NOTHING").Exec(ctx)
	if err != nil {
		return "", failed("write an instance value", err)
	}
	return tx.InstanceValue(ctx, key)
}
