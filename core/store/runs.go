package store

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Run is a goal and where its answer stands. Identifiers of its assets, evidence and
// actions are read from their own tables.
type Run struct {
	bun.BaseModel `bun:"table:runs"`

	ID          string         `bun:"id,pk"`
	WorkspaceID WorkspaceID    `bun:"workspace_id"`
	ProjectID   string         `bun:"project_id"`
	Operator    string         `bun:"operator"`
	Goal        string         `bun:"goal"`
	Phase       core.RunPhase  `bun:"phase"`
	PhaseReason string         `bun:"phase_reason"`
	Status      core.RunStatus `bun:"status"` // as last computed; lists filter by it, nothing else trusts it
	Intent      core.Intent    `bun:"intent"`
	Skills      []string       `bun:"skills"`
	Next        *core.NextCall `bun:"next"`
	Credits     float64        `bun:"credits"`
	CostMicros  int64          `bun:"cost_micros"`
	Currency    string         `bun:"currency"`
	CreatedBy   core.Actor     `bun:"created_by"`
	CreatedByID string         `bun:"created_by_id"`

	// OriginTool and OriginArgs are the call that answers the goal, for runs that work
	// in the background. Work is empty, wanted, running, done or failed.
	OriginTool string `bun:"origin_tool"`
	OriginArgs JSON   `bun:"origin_args"`
	Work       string `bun:"work"`
	WorkTries  int    `bun:"work_tries"`
	LeaseOwner string `bun:"lease_owner"`
	LeaseUntil Time   `bun:"lease_until"`

	CreatedAt Time  `bun:"created_at"`
	UpdatedAt Time  `bun:"updated_at"`
	Version   int64 `bun:"version"`
}

// States of background work.
const (
	WorkWanted  = "wanted"
	WorkRunning = "running"
	WorkDone    = "done"
	WorkFailed  = "failed"
)

func (r *Run) ref() (string, string, *int64) { return "run", r.ID, &r.Version }

// Run reads a run.
func (r Reader) Run(ctx context.Context, ws WorkspaceID, id string) (*Run, error) {
	return byID[Run](ctx, r, "run", ws, id)
}

// SystemRun reads a run of any workspace, for jobs, which carry only its identifier.
func (r Reader) SystemRun(ctx context.Context, id string) (*Run, error) {
	return lookup[Run](ctx, r, "run", id, "id = ?", id)
}

// ListRuns lists runs, newest first. Status and Since of the query apply; Since
// compares the creation.
func (r Reader) ListRuns(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Run], error) {
	l := listing[Run]{noun: "run", key: "id", since: "created_at", keyOf: func(r *Run) string { return r.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery {
		s = s.Where("workspace_id = ?", ws)
		if q.Status != "" {
			s = s.Where("status = ?", q.Status)
		}
		return s
	})
}

// SystemRunsToAdvance reads runs of all workspaces whose background work is wanted, or
// whose worker fell silent, oldest first.
func (r Reader) SystemRunsToAdvance(ctx context.Context, now time.Time, limit int) ([]Run, error) {
	return all[Run](ctx, r, "run", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("work = ? OR (work = ? AND lease_until <= ?)", WorkWanted, WorkRunning, At(now)).Order("id").Limit(int64(limit))
	})
}

// SystemRunsMeasuring reads runs of all workspaces whose status was last computed as
// measuring, and that may have ended by the passing of time alone.
func (r Reader) SystemRunsMeasuring(ctx context.Context, limit int) ([]Run, error) {
	return all[Run](ctx, r, "run", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status = ?", core.RunStatusMeasuring).Order("updated_at").Limit(int64(limit))
	})
}

// lockedRun is a run that a transaction holds, with the actions that it had then: who
// changes what a brief tells of an action locks its run before committing.
type lockedRun struct {
	row    *Run
	briefs []ActionBrief // nil until read
}

// LockRun reads a run and keeps others from changing it, and the state of its actions,
// until the transaction ends. Asked again, it answers with the same row, including what
// was changed in it since.
func (tx *Tx) LockRun(ctx context.Context, ws WorkspaceID, id string) (*Run, error) {
	if l := tx.runs[id]; l != nil && l.row.WorkspaceID == ws {
		return l.row, nil
	}
	r, err := lookupIn[Run](ctx, tx.beside("run"), "run", id, tx.locked, "id = ? AND workspace_id = ?", id, ws)
	if err != nil {
		return nil, err
	}
	tx.hold(r)
	if tx.runs == nil {
		tx.runs = map[string]*lockedRun{}
	}
	tx.runs[id] = &lockedRun{row: r}
	return r, nil
}

// InsertRun adds a run.
func (tx *Tx) InsertRun(ctx context.Context, r *Run) error { return insert(ctx, tx, "run", r) }

// UpdateRun writes r if it was not changed since it was read.
func (tx *Tx) UpdateRun(ctx context.Context, r *Run) error {
	if err := swap(ctx, tx, r, "workspace_id"); err != nil {
		return err
	}
	tx.hold(r)
	if l := tx.runs[r.ID]; l != nil {
		l.row = r
	}
	return nil
}

// Asset is a draft of a run. Data is the whole resource; the columns serve lists.
type Asset struct {
	bun.BaseModel `bun:"table:assets"`

	ID             string           `bun:"id,pk"`
	WorkspaceID    WorkspaceID      `bun:"workspace_id"`
	RunID          string           `bun:"run_id"`
	Skill          string           `bun:"skill"`
	Kind           string           `bun:"kind"`
	Channel        string           `bun:"channel"`
	Title          string           `bun:"title"`
	Status         core.AssetStatus `bun:"status"`
	Digest         string           `bun:"digest"`
	Revision       int              `bun:"revision"`
	ParentRevision int              `bun:"parent_revision"`
	Genericity     float64          `bun:"genericity"` // score of its risk; 0 where it has none
	Data           JSON             `bun:"data"`
	CreatedAt      Time             `bun:"created_at"`
	Version        int64            `bun:"version"`
}

func (a *Asset) ref() (string, string, *int64) { return "asset", a.ID, &a.Version }

// Asset reads an asset.
func (r Reader) Asset(ctx context.Context, ws WorkspaceID, id string) (*Asset, error) {
	return byID[Asset](ctx, r, "asset", ws, id)
}

// ListAssets lists assets, newest first. RunID, Status and Since of the query apply.
func (r Reader) ListAssets(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Asset], error) {
	l := listing[Asset]{noun: "asset", key: "id", since: "created_at", keyOf: func(a *Asset) string { return a.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return ofRun(s.Where("workspace_id = ?", ws), q) })
}

// InsertAsset adds an asset.
func (tx *Tx) InsertAsset(ctx context.Context, a *Asset) error { return insert(ctx, tx, "asset", a) }

// UpdateAsset writes a if it was not changed since it was read.
func (tx *Tx) UpdateAsset(ctx context.Context, a *Asset) error {
	return swap(ctx, tx, a, "workspace_id", "run_id")
}

func ofRun(s *bun.SelectQuery, q core.Query) *bun.SelectQuery {
	if q.RunID != "" {
		s = s.Where("run_id = ?", q.RunID)
	}
	if q.Status != "" {
		s = s.Where("status = ?", q.Status)
	}
	return s
}

// Evidence is one thing that was read or stated. Its identifier is a hash of the run
// and the content, so the same evidence of a run is one row. Data is the resource.
type Evidence struct {
	bun.BaseModel `bun:"table:evidence"`

	WorkspaceID WorkspaceID       `bun:"workspace_id,pk"`
	ID          string            `bun:"id,pk"`
	Ord         string            `bun:"ord"` // rises with insertion; set by InsertEvidence
	RunID       string            `bun:"run_id"`
	Kind        core.EvidenceKind `bun:"kind"`
	Source      string            `bun:"source"`
	Digest      string            `bun:"digest"`
	Data        JSON              `bun:"data"`
	CapturedAt  Time              `bun:"captured_at"`
}

// Evidence reads a piece of evidence.
func (r Reader) Evidence(ctx context.Context, ws WorkspaceID, id string) (*Evidence, error) {
	return byID[Evidence](ctx, r, "evidence", ws, id)
}

// ListEvidence lists evidence, newest first. RunID and Since of the query apply; Since
// compares when it was captured.
func (r Reader) ListEvidence(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Evidence], error) {
	l := listing[Evidence]{noun: "evidence", key: "ord", since: "captured_at", keyOf: func(e *Evidence) string { return e.Ord }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery {
		return ofRun(s.Where("workspace_id = ?", ws), core.Query{RunID: q.RunID})
	})
}

// Content is one draft or piece of evidence of a run, without what it says.
type Content struct {
	RunID      string  `bun:"run_id"`
	ID         string  `bun:"id"`
	Evidence   bool    `bun:"evidence"`
	Genericity float64 `bun:"genericity"` // of a draft
}

// ContentsOf names the drafts and the evidence of some runs, each in the order in which
// the run's own lists have them.
func (r Reader) ContentsOf(ctx context.Context, ws WorkspaceID, runIDs ...string) ([]Content, error) {
	rows := []Content{}
	if runIDs = fresh(runIDs); len(runIDs) == 0 {
		return rows, nil
	}
	if r.tx != nil {
		r = r.tx.beside("asset")
	}
	assets := r.q(ctx).NewSelect().Model((*Asset)(nil)).Column("run_id", "id").ColumnExpr("? AS evidence", false).ColumnExpr("genericity, id AS ord")
	evidence := r.q(ctx).NewSelect().Model((*Evidence)(nil)).Column("run_id", "id").ColumnExpr("?, 0, ord", true)
	for _, q := range []*bun.SelectQuery{assets, evidence} {
		q.Where("workspace_id = ?", ws).Where("run_id IN (?)", bun.List(runIDs))
	}
	both := r.q(ctx).NewSelect().TableExpr("(? UNION ALL ?) AS c", assets, evidence).Column("run_id", "id", "evidence", "genericity").Order("evidence", "ord")
	if err := both.Scan(ctx, &rows); err != nil {
		return nil, failed("read contents of runs", err)
	}
	return rows, nil
}

// InsertEvidence adds evidence; what the workspace has already is left as it is.
func (tx *Tx) InsertEvidence(ctx context.Context, rows []Evidence) error {
	if len(rows) == 0 {
		return nil
	}
	ord := core.NewID("o", tx.db.clock.Now())
	for i := range rows {
		rows[i].Ord = fmt.Sprintf("%s.%06d", ord, i)
	}
	if _, err := tx.w(ctx).NewInsert().Model(&rows).On("CONFLICT (workspace_id, id) DO NOTHING").Exec(ctx); err != nil {
		return failed("add evidence", err)
	}
	return nil
}
