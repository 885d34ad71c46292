package store

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Action is a sealed effect that waits for a person, with everything its digest rests on.
type Action struct {
	bun.BaseModel `bun:"table:actions"`

	ID           string              `bun:"id,pk"`
	WorkspaceID  WorkspaceID         `bun:"workspace_id"`
	RunID        string              `bun:"run_id"`
	Status       core.ActionStatus   `bun:"status"`
	StatusReason string              `bun:"status_reason"`
	Executor     core.ActionExecutor `bun:"executor"`
	Revision     int                 `bun:"revision"`
	Version      int64               `bun:"version"`
	Digest       string              `bun:"digest"`

	// What was asked for and what it was compiled to.
	Tool      string `bun:"tool"`
	Plugin    string `bun:"plugin"`
	Connector string `bun:"connector"`
	Channel   string `bun:"channel"`
	Kind      string `bun:"kind"`
	Input     JSON   `bun:"input"`
	Sealed    JSON   `bun:"sealed"`
	Endpoints JSON   `bun:"endpoints"` // write endpoints of the manifest when it was compiled

	// What the digest binds beside the steps.
	PluginDigest   string          `bun:"plugin_digest"`
	ManifestDigest string          `bun:"manifest_digest"`
	ToolDigest     string          `bun:"tool_digest"`
	ConnectionID   string          `bun:"connection_id"`
	Connection     JSON            `bun:"connection"` // id, account and address when it was compiled
	Account        string          `bun:"account"`
	AssetRefs      []core.AssetRef `bun:"asset_refs"`
	EvidenceIDs    []string        `bun:"evidence_ids"`
	DependsOn      []string        `bun:"depends_on"`
	CostMicros     int64           `bun:"cost_micros"`
	Currency       string          `bun:"currency"`
	Credits        float64         `bun:"credits"`
	NotBefore      Time            `bun:"not_before"`
	ExpiresAt      Time            `bun:"expires_at"`
	Proof          core.Proof      `bun:"proof"`
	Needed         int             `bun:"needed"`

	// What people see.
	Title         string                   `bun:"title"`
	TargetAccount string                   `bun:"target_account"`
	TargetLabel   string                   `bun:"target_label"`
	Preview       JSON                     `bun:"preview"`
	ContentSHA256 []string                 `bun:"content_sha256"`
	Reversibility core.ActionReversibility `bun:"reversibility"`
	Reach         int                      `bun:"reach"`

	Supersedes   string     `bun:"supersedes"`
	SupersededBy string     `bun:"superseded_by"`
	CreatedBy    core.Actor `bun:"created_by"`
	CreatedByID  string     `bun:"created_by_id"`
	EditedBy     core.Actor `bun:"edited_by"` // of this revision; the creator at first
	EditedByID   string     `bun:"edited_by_id"`

	// Claim: who sends it, and until when others keep away.
	Generation   int    `bun:"generation"`
	ClaimedOnce  bool   `bun:"claimed_once"`
	LeaseOwner   string `bun:"lease_owner"`
	LeaseUntil   Time   `bun:"lease_until"`
	ConnectTries int    `bun:"connect_tries"`
	NextTryAt    Time   `bun:"next_try_at"`
	ApprovedAt   Time   `bun:"approved_at"`
	ExecuteAt    Time   `bun:"execute_at"` // end of the undo window

	// Execution.
	Attempt        int                  `bun:"attempt"`
	IdempotencyKey string               `bun:"idempotency_key"`
	StepsDone      int                  `bun:"steps_done"`
	Steps          JSON                 `bun:"steps"` // what is known of each step
	StartedAt      Time                 `bun:"started_at"`
	SendingAt      Time                 `bun:"sending_at"`
	FinishedAt     Time                 `bun:"finished_at"`
	Outcome        string               `bun:"outcome"` // core.ActionExecutionOutcome; empty until known
	ExternalID     string               `bun:"external_id"`
	ExternalURL    string               `bun:"external_url"`
	SentSHA256     []string             `bun:"sent_sha256"` // content hashes of what was handed to the wire
	ExecError      *core.ExecutionError `bun:"exec_error"`

	CreatedAt Time `bun:"created_at"`
	UpdatedAt Time `bun:"updated_at"`
}

func (a *Action) ref() (string, string, *int64) { return "action", a.ID, &a.Version }

// Action reads an action.
func (r Reader) Action(ctx context.Context, ws WorkspaceID, id string) (*Action, error) {
	return byID[Action](ctx, r, "action", ws, id)
}

// SystemAction reads an action of any workspace, for jobs, which carry only its identifier.
func (r Reader) SystemAction(ctx context.Context, id string) (*Action, error) {
	return lookup[Action](ctx, r, "action", id, "id = ?", id)
}

// ListActions lists actions, newest first. RunID, Status and Since of the query apply.
func (r Reader) ListActions(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Action], error) {
	l := listing[Action]{noun: "action", key: "id", since: "created_at", keyOf: func(a *Action) string { return a.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return ofRun(s.Where("workspace_id = ?", ws), q) })
}

// ActionsOfRun reads every action of a run, oldest first.
func (r Reader) ActionsOfRun(ctx context.Context, ws WorkspaceID, runID string) ([]Action, error) {
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("run_id = ?", runID).Order("id")
	})
}

// ActionBrief is what the state of a run depends on.
type ActionBrief struct {
	bun.BaseModel `bun:"table:actions"`

	ID            string                   `bun:"id"`
	RunID         string                   `bun:"run_id"`
	Status        core.ActionStatus        `bun:"status"`
	Revision      int                      `bun:"revision"`
	Digest        string                   `bun:"digest"`
	Proof         core.Proof               `bun:"proof"`
	Reversibility core.ActionReversibility `bun:"reversibility"`
	Reach         int                      `bun:"reach"`
	CostMicros    int64                    `bun:"cost_micros"`
	Currency      string                   `bun:"currency"`
	ExpiresAt     Time                     `bun:"expires_at"`
	FinishedAt    Time                     `bun:"finished_at"`
}

// ActionBriefs reads the briefs of all actions of some runs, oldest first.
func (r Reader) ActionBriefs(ctx context.Context, ws WorkspaceID, runIDs ...string) ([]ActionBrief, error) {
	runIDs = fresh(runIDs)
	if len(runIDs) == 0 {
		return []ActionBrief{}, nil
	}
	if len(runIDs) == 1 {
		return lookups[ActionBrief](ctx, r, "action", "workspace_id = ? AND run_id = ?", "id", ws, runIDs[0])
	}
	return all[ActionBrief](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("run_id IN (?)", bun.List(runIDs)).Order("id")
	})
}

// ActionBriefs is Reader.ActionBriefs with what this transaction itself wrote; it does
// not wait for that to be sent. Of a run that it holds it reads them once.
func (tx *Tx) ActionBriefs(ctx context.Context, ws WorkspaceID, runIDs ...string) ([]ActionBrief, error) {
	var held *lockedRun
	if len(runIDs) == 1 {
		held = tx.runs[runIDs[0]]
	}
	if held != nil && held.briefs != nil && held.row.WorkspaceID == ws {
		return tx.overlay(slices.Clone(held.briefs), ws, runIDs), nil
	}
	briefs, err := tx.beside("").ActionBriefs(ctx, ws, runIDs...)
	if err != nil {
		return nil, err
	}
	if held != nil && held.row.WorkspaceID == ws {
		held.briefs = slices.Clone(briefs)
	}
	return tx.overlay(briefs, ws, runIDs), nil
}

// CountActions counts the actions of the workspace by status.
func (r Reader) CountActions(ctx context.Context, ws WorkspaceID) (map[core.ActionStatus]int, error) {
	var rows []struct {
		Status core.ActionStatus `bun:"status"`
		N      int               `bun:"n"`
	}
	err := r.q(ctx).NewSelect().Model((*Action)(nil)).Column("status").ColumnExpr("count(*) AS n").
		Where("workspace_id = ?", ws).Group("status").Scan(ctx, &rows)
	if err != nil {
		return nil, failed("count actions", err)
	}
	counts := make(map[core.ActionStatus]int, len(rows))
	for _, row := range rows {
		counts[row.Status] = row.N
	}
	return counts, nil
}

// SystemDueActions reads approved actions of all workspaces whose undo window and
// back-off are over, longest due first. Manual actions never become due.
func (r Reader) SystemDueActions(ctx context.Context, now time.Time, limit int) ([]Action, error) {
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status = ?", core.ActionStatusApproved).Where("executor <> ?", core.ActionExecutorManual).
			Where("execute_at <= ?", At(now)).Where("next_try_at IS NULL OR next_try_at <= ?", At(now)).
			Where("not_before IS NULL OR not_before <= ?", At(now)).Order("execute_at").Limit(int64(limit))
	})
}

// SystemEndedLeases reads claimed and sending actions of all workspaces whose lease is over.
func (r Reader) SystemEndedLeases(ctx context.Context, now time.Time, limit int) ([]Action, error) {
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status IN (?)", bun.List([]core.ActionStatus{core.ActionStatusClaimed, core.ActionStatusSending})).
			Where("lease_until <= ?", At(now)).Order("lease_until").Limit(int64(limit))
	})
}

// SystemOverdueActions reads actions of all workspaces that wait or are approved
// although their deadline passed.
func (r Reader) SystemOverdueActions(ctx context.Context, now time.Time, limit int) ([]Action, error) {
	open := []core.ActionStatus{core.ActionStatusProposed, core.ActionStatusPending, core.ActionStatusApproved}
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status IN (?)", bun.List(open)).Where("expires_at <= ?", At(now)).Order("expires_at").Limit(int64(limit))
	})
}

// SystemActionsIn reads actions of all workspaces in one of some states, oldest first,
// from after the given identifier on.
func (r Reader) SystemActionsIn(ctx context.Context, after string, limit int, states ...core.ActionStatus) ([]Action, error) {
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("status IN (?)", bun.List(states)).Where("id > ?", after).Order("id").Limit(int64(limit))
	})
}

// SystemActionsOfPlugin reads actions of all workspaces that a plugin compiled and that
// can still change, for example because its manifest did.
func (r Reader) SystemActionsOfPlugin(ctx context.Context, plugin string) ([]Action, error) {
	open := []core.ActionStatus{core.ActionStatusProposed, core.ActionStatusPending, core.ActionStatusApproved}
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("plugin = ?", plugin).Where("status IN (?)", bun.List(open)).Order("id")
	})
}

// ActionsOfConnection reads actions of the workspace that rest on a connection and can
// still change.
func (r Reader) ActionsOfConnection(ctx context.Context, ws WorkspaceID, connectionID string) ([]Action, error) {
	open := []core.ActionStatus{core.ActionStatusProposed, core.ActionStatusPending, core.ActionStatusApproved}
	return all[Action](ctx, r, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("connection_id = ?", connectionID).Where("status IN (?)", bun.List(open)).Order("id")
	})
}

// LockAction reads an action and keeps others from changing it until the transaction
// ends. Lock actions in the order of their identifiers, before their run.
func (tx *Tx) LockAction(ctx context.Context, ws WorkspaceID, id string) (*Action, error) {
	a, err := lookupIn[Action](ctx, tx.Reader, "action", id, tx.locked, "id = ? AND workspace_id = ?", id, ws)
	if err == nil {
		tx.hold(a)
	}
	return a, err
}

// LockActionsOfRun reads and locks every action of a run, oldest first.
func (tx *Tx) LockActionsOfRun(ctx context.Context, ws WorkspaceID, runID string) ([]Action, error) {
	rows, err := all[Action](ctx, tx.Reader, "action", func(q *bun.SelectQuery) *bun.SelectQuery {
		return tx.locked(q.Where("workspace_id = ?", ws).Where("run_id = ?", runID).Order("id"))
	})
	for i := range rows {
		tx.hold(&rows[i])
	}
	return rows, err
}

// InsertAction adds an action.
func (tx *Tx) InsertAction(ctx context.Context, a *Action) error {
	if err := insertLater(ctx, tx, "action", a); err != nil {
		return err
	}
	tx.hold(a)
	tx.wrote(a)
	return nil
}

// UpdateAction writes a if it was not changed since it was read. It is the only way an
// action moves, so that of two hosts which both want to, one is told changed_meanwhile.
func (tx *Tx) UpdateAction(ctx context.Context, a *Action) error {
	if err := swap(ctx, tx, a, "workspace_id", "run_id", "created_by", "created_by_id"); err != nil {
		return err
	}
	tx.hold(a)
	tx.wrote(a)
	return nil
}
