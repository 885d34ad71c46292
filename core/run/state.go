package run

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Recompute locks a run, applies edit (which may be nil), computes its status from its
// actions, raises its version and tells subscribers of a new status. Every change of an
// action calls it in the same transaction, after the action was written, so that the
// order of locks is the same everywhere: actions, run, head of the log.
func (s *Service) Recompute(ctx context.Context, tx *store.Tx, workspaceID, runID string, edit func(*store.Run) error) (*store.Run, error) {
	ws := store.WorkspaceID(workspaceID)
	row, err := tx.LockRun(ctx, ws, runID)
	if err != nil {
		return nil, err
	}
	if edit != nil {
		if err := edit(row); err != nil {
			return nil, err
		}
	}
	briefs, err := tx.ActionBriefs(ctx, ws, runID)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	before := row.Status
	row.Status, _ = standing(row.Phase, briefs, now)
	row.UpdatedAt = store.At(now)
	if err := tx.UpdateRun(ctx, row); err != nil {
		return nil, err
	}
	if row.Status == before {
		return row, nil
	}
	kind := event.RunUpdated
	switch {
	case row.Status == core.RunStatusAwaitingApproval:
		kind = event.RunAwaitingApproval
	case before == core.RunStatusMeasuring && row.Status == core.RunStatusCompleted:
		kind = event.MeasurementClosed
	}
	return row, s.emit(ctx, tx, row, kind, map[string]any{"status": row.Status, "was": before})
}

// standing is the status of a run and its measurement window at a moment.
func standing(phase core.RunPhase, briefs []store.ActionBrief, now time.Time) (core.RunStatus, *core.Measurement) {
	states, done := []core.ActionStatus{}, []time.Time{}
	for _, b := range briefs {
		states = append(states, b.Status)
		if b.Status == core.ActionStatusSucceeded && !b.FinishedAt.IsZero() {
			done = append(done, b.FinishedAt.Time)
		}
	}
	m := core.MeasurementOf(done, now)
	return core.RunStatusOf(phase, states, m), m
}

// PackItem is one action of a pack.
type PackItem struct {
	ID       string
	Revision int
	Digest   string
}

// PackDigest is the hash over actions in order: what a reviewer says yes to.
func PackDigest(items []PackItem) string {
	h := sha256.New()
	h.Write([]byte("sallyport pack\x00"))
	number := func(n int) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	number(len(items))
	for _, i := range items {
		for _, text := range []string{i.ID, i.Digest} {
			number(len(text))
			h.Write([]byte(text))
		}
		number(i.Revision)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Pack lists the actions of a run that wait, in order.
func Pack(briefs []store.ActionBrief) []PackItem {
	items := []PackItem{}
	for _, b := range briefs {
		if b.Status.IsWaiting() {
			items = append(items, PackItem{b.ID, b.Revision, b.Digest})
		}
	}
	return items
}

// reader is what a run is assembled from: the database or a transaction.
type reader interface {
	Run(ctx context.Context, ws store.WorkspaceID, id string) (*store.Run, error)
	ActionBriefs(ctx context.Context, ws store.WorkspaceID, runIDs ...string) ([]store.ActionBrief, error)
	ContentsOf(ctx context.Context, ws store.WorkspaceID, runIDs ...string) ([]store.Content, error)
}

// Show is the resource of a run that a transaction recomputed, as it will be committed.
func (s *Service) Show(ctx context.Context, tx *store.Tx, row *store.Run) (*core.Run, error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	return s.assemble(ctx, tx, row, now)
}

func (s *Service) assemble(ctx context.Context, r reader, row *store.Run, now time.Time) (*core.Run, error) {
	out, err := s.assembleAll(ctx, r, row.WorkspaceID, []store.Run{*row}, now)
	if err != nil {
		return nil, err
	}
	return &out[0], nil
}

// assembleAll builds the resources of runs of one workspace from their rows and what
// belongs to them.
func (s *Service) assembleAll(ctx context.Context, r reader, ws store.WorkspaceID, rows []store.Run, now time.Time) ([]core.Run, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	briefs, err := r.ActionBriefs(ctx, ws, ids...)
	if err != nil {
		return nil, err
	}
	contents, err := r.ContentsOf(ctx, ws, ids...)
	if err != nil {
		return nil, err
	}
	actionsOf, contentsOf := map[string][]store.ActionBrief{}, map[string][]store.Content{}
	for _, b := range briefs {
		actionsOf[b.RunID] = append(actionsOf[b.RunID], b)
	}
	for _, c := range contents {
		contentsOf[c.RunID] = append(contentsOf[c.RunID], c)
	}
	out := []core.Run{}
	for i := range rows {
		out = append(out, *s.resource(&rows[i], actionsOf[rows[i].ID], contentsOf[rows[i].ID], now))
	}
	return out, nil
}

func (s *Service) resource(row *store.Run, briefs []store.ActionBrief, contents []store.Content, now time.Time) *core.Run {
	out := &core.Run{ID: row.ID, WorkspaceID: string(row.WorkspaceID), ProjectID: row.ProjectID, Operator: row.Operator, Goal: row.Goal,
		Intent: row.Intent, Skills: append([]string{}, row.Skills...), Next: row.Next, CreatedBy: row.CreatedBy, ReviewURL: s.ReviewURL(row.ID),
		Cost:      core.RunCost{Credits: row.Credits, Micros: int(row.CostMicros), Currency: row.Currency},
		CreatedAt: row.CreatedAt.Time, UpdatedAt: row.UpdatedAt.Time, Version: int(row.Version),
		ActionIds: []string{}, AssetIds: []string{}, EvidenceIds: []string{}, Counts: core.RunCounts{}}
	if out.Cost.Currency == "" {
		out.Cost.Currency = "USD"
	}
	for _, c := range contents {
		if c.Evidence {
			out.EvidenceIds = append(out.EvidenceIds, c.ID)
			continue
		}
		out.AssetIds = append(out.AssetIds, c.ID)
		out.Risk.Genericity = max(out.Risk.Genericity, c.Genericity)
	}
	status, m := standing(row.Phase, briefs, now)
	out.Status, out.Measurement, out.PackDigest = status, *m, PackDigest(Pack(briefs))
	for _, b := range briefs {
		out.ActionIds = append(out.ActionIds, b.ID)
		out.Counts[string(b.Status)]++
		weigh(out, b)
	}
	out.StatusReason = reason(out, row.PhaseReason)
	return out
}

// weigh adds an action that may still have an effect, or had one, to the run's risk.
func weigh(out *core.Run, b store.ActionBrief) {
	switch b.Status {
	case core.ActionStatusRejected, core.ActionStatusExpired, core.ActionStatusRevoked, core.ActionStatusCancelled, core.ActionStatusSuperseded:
		return
	}
	out.Risk.Reach += b.Reach
	out.Risk.Spend += int(b.CostMicros)
	if b.Reversibility == core.ActionReversibilityIrreversible {
		out.Risk.Irreversible++
	}
	if b.Status.IsWaiting() && !b.ExpiresAt.IsZero() && (out.ExpiresAt == nil || b.ExpiresAt.Before(*out.ExpiresAt)) {
		t := b.ExpiresAt.Time
		out.ExpiresAt = &t
	}
}

// reason says in one sentence why the run is where it is.
func reason(r *core.Run, stored string) string {
	n := func(states ...core.ActionStatus) (sum int) {
		for _, s := range states {
			sum += r.Counts[string(s)]
		}
		return sum
	}
	waiting := n(core.ActionStatusPending, core.ActionStatusProposed)
	switch r.Status {
	case core.RunStatusCreated:
		return "The run is open; no work has begun."
	case core.RunStatusGathering:
		return "Evidence is being gathered."
	case core.RunStatusDrafting:
		return "Drafts are being written."
	case core.RunStatusAwaitingApproval:
		return fmt.Sprintf("%s for a person's decision; nothing has been sent.", counted(waiting, "action waits", "actions wait"))
	case core.RunStatusPartiallyApproved:
		return fmt.Sprintf("%s; the rest is decided.", counted(waiting, "action still waits", "actions still wait"))
	case core.RunStatusApproved:
		return fmt.Sprintf("%s approved and not sent yet.", counted(n(core.ActionStatusApproved), "action is", "actions are"))
	case core.RunStatusExecuting:
		return "Approved actions are being carried out."
	case core.RunStatusNeedsAttention:
		if u := n(core.ActionStatusUnknown); u > 0 {
			return fmt.Sprintf("%s an unknown outcome: look at the provider, then say whether it happened.", counted(u, "action has", "actions have"))
		}
		return fmt.Sprintf("%s; retry or leave it.", counted(n(core.ActionStatusFailed), "action failed", "actions failed"))
	case core.RunStatusMeasuring:
		return fmt.Sprintf("%s done; results are measured until 24 hours after the last one.", counted(n(core.ActionStatusSucceeded), "action is", "actions are"))
	case core.RunStatusRejected:
		return "A person rejected or revoked what was proposed."
	case core.RunStatusExpired:
		return "Nobody decided before the deadline."
	case core.RunStatusFailed, core.RunStatusCancelled:
		if stored != "" {
			return stored
		}
		return "The run ended without a result."
	}
	if len(r.ActionIds) == 0 {
		return "The drafts are ready; nothing was proposed that needs a decision."
	}
	return "Everything that was approved is done."
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
