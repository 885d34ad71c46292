package store

import (
	"context"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// ActionRevision is one content of an action, kept when another took its place.
type ActionRevision struct {
	bun.BaseModel `bun:"table:action_revisions"`

	ActionID       string      `bun:"action_id,pk"`
	Revision       int         `bun:"revision,pk"`
	WorkspaceID    WorkspaceID `bun:"workspace_id"`
	Digest         string      `bun:"digest"`
	Input          JSON        `bun:"input"`
	Sealed         JSON        `bun:"sealed"`
	Preview        JSON        `bun:"preview"`
	ContentSHA256  []string    `bun:"content_sha256"`
	PluginDigest   string      `bun:"plugin_digest"`
	ManifestDigest string      `bun:"manifest_digest"`
	ToolDigest     string      `bun:"tool_digest"`
	ConnectionID   string      `bun:"connection_id"`
	By             core.Actor  `bun:"by_actor"`
	At             Time        `bun:"at"`
}

// ActionRevision reads one revision of an action.
func (r Reader) ActionRevision(ctx context.Context, ws WorkspaceID, actionID string, revision int) (*ActionRevision, error) {
	return one[ActionRevision](ctx, r, "revision", actionID+" #"+strconv.Itoa(revision), func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("action_id = ?", actionID).Where("revision = ?", revision)
	})
}

// ActionRevisions reads all revisions of an action, oldest first.
func (r Reader) ActionRevisions(ctx context.Context, ws WorkspaceID, actionID string) ([]ActionRevision, error) {
	return all[ActionRevision](ctx, r, "revision", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("action_id = ?", actionID).Order("revision")
	})
}

// InsertActionRevision adds a revision; it is never changed.
func (tx *Tx) InsertActionRevision(ctx context.Context, v *ActionRevision) error {
	return insertLater(ctx, tx, "revision", v)
}

// Decision is a verdict on one revision of an action. MAC is core's own signature over
// it, made with a key that is not in the database.
type Decision struct {
	bun.BaseModel `bun:"table:decisions"`

	ID            string               `bun:"id,pk"`
	WorkspaceID   WorkspaceID          `bun:"workspace_id"`
	ActionID      string               `bun:"action_id"`
	RunID         string               `bun:"run_id"`
	Revision      int                  `bun:"revision"`
	Digest        string               `bun:"digest"`
	Decision      core.Verdict         `bun:"decision"`
	By            core.Actor           `bun:"by_actor"`
	ByID          string               `bun:"by_id"`
	Proof         core.Proof           `bun:"proof"`
	AuthTime      Time                 `bun:"auth_time"`
	SessionID     string               `bun:"session_id"`
	Channel       core.DecisionChannel `bun:"channel"`
	Reason        string               `bun:"reason"`
	ProofURL      string               `bun:"proof_url"` // of an action done by hand
	ViaServiceKey bool                 `bun:"via_service_key"`
	SoleApprover  bool                 `bun:"sole_approver"` // the rule against self-approval rested
	MAC           []byte               `bun:"mac"`
	Void          bool                 `bun:"void"` // the revision was replaced before it was sent
	At            Time                 `bun:"at"`
}

// DecisionsOf reads the decisions on some actions, oldest first, void ones too.
func (r Reader) DecisionsOf(ctx context.Context, ws WorkspaceID, actionIDs ...string) ([]Decision, error) {
	actionIDs = fresh(actionIDs)
	if len(actionIDs) == 0 {
		return []Decision{}, nil
	}
	if len(actionIDs) == 1 {
		return lookups[Decision](ctx, r, "decision", "workspace_id = ? AND action_id = ?", "id", ws, actionIDs[0])
	}
	return all[Decision](ctx, r, "decision", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("action_id IN (?)", bun.List(actionIDs)).Order("id")
	})
}

// InsertDecision adds a decision.
func (tx *Tx) InsertDecision(ctx context.Context, d *Decision) error {
	return insertLater(ctx, tx, "decision", d)
}

// VoidDecisions marks every decision on an action as void, when its content changes.
func (tx *Tx) VoidDecisions(ctx context.Context, ws WorkspaceID, actionID string) error {
	_, err := tx.w(ctx).NewUpdate().Model((*Decision)(nil)).Set("void = ?", true).
		Where("workspace_id = ?", ws).Where("action_id = ?", actionID).Exec(ctx)
	if err != nil {
		return failed("void decisions", err)
	}
	return nil
}

// DeliveredAction is what a principal was shown of one action.
type DeliveredAction struct {
	ID       string `json:"id"`
	Revision int    `json:"revision"`
	Digest   string `json:"digest"`
}

// Delivery remembers which content of a run a principal was shown last.
type Delivery struct {
	bun.BaseModel `bun:"table:deliveries"`

	WorkspaceID WorkspaceID       `bun:"workspace_id,pk"`
	PrincipalID string            `bun:"principal_id,pk"`
	RunID       string            `bun:"run_id,pk"`
	PackDigest  string            `bun:"pack_digest"`
	Actions     []DeliveredAction `bun:"actions"`
	At          Time              `bun:"at"`
}

// Delivery reads what a principal was shown last of a run.
func (r Reader) Delivery(ctx context.Context, ws WorkspaceID, principalID, runID string) (*Delivery, error) {
	return lookup[Delivery](ctx, r, "delivery", runID, "workspace_id = ? AND principal_id = ? AND run_id = ?", ws, principalID, runID)
}

// PutDelivery writes what a principal is shown now, in place of what was before.
func (tx *Tx) PutDelivery(ctx context.Context, d *Delivery) error {
	_, err := tx.w(ctx).NewInsert().Model(d).On("CONFLICT (workspace_id, principal_id, run_id) DO UPDATE").
		Set("pack_digest = EXCLUDED.pack_digest").Set("actions = EXCLUDED.actions").Set("at = EXCLUDED.at").Exec(ctx)
	if err != nil {
		return failed("write a delivery", err)
	}
	return nil
}
