package run

import (
	"context"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func assetRow(a *core.Asset, now time.Time, old *store.Asset) *store.Asset {
	row := &store.Asset{ID: a.ID, WorkspaceID: store.WorkspaceID(a.WorkspaceID), RunID: a.RunID, Skill: a.Skill, Kind: a.Kind, Channel: a.Channel,
		Title: a.Title, Status: a.Status, Digest: a.Digest, Revision: a.Revision, ParentRevision: a.ParentRevision, Data: store.JSONOf(a), CreatedAt: store.At(now), Version: 1}
	if a.GenericityRisk != nil {
		row.Genericity = a.GenericityRisk.Score
	}
	if old != nil {
		row.Version = old.Version
	}
	return row
}

func assetOf(row *store.Asset) (*core.Asset, error) {
	a := &core.Asset{}
	if err := row.Data.Decode(a); err != nil {
		return nil, err
	}
	a.Status = row.Status
	return a, nil
}

// Update tells what a run is about; empty fields leave things as they are.
type Update struct {
	Intent     string
	Confidence float64
	Skills     []string // added to those that ran before
	Goal       string
	Next       *core.NextCall
	Operator   string
}

// Describe writes what became known about a run.
func (s *Service) Describe(ctx context.Context, workspaceID, runID string, u Update) error {
	return s.change(ctx, workspaceID, runID, func(r *store.Run) error {
		if u.Intent != "" {
			r.Intent = core.Intent{Name: u.Intent, Confidence: min(max(u.Confidence, 0), 1)}
		}
		for _, skill := range u.Skills {
			if skill != "" && !slices.Contains(r.Skills, skill) {
				r.Skills = append(r.Skills, skill)
			}
		}
		if u.Goal != "" {
			r.Goal = u.Goal
		}
		if u.Next != nil {
			next := *u.Next
			if next.Arguments == nil {
				next.Arguments = core.RunNextArguments{}
			}
			r.Next = &next
		}
		if u.Operator != "" {
			r.Operator = u.Operator
		}
		return nil
	})
}

// SetPhase moves a run to a phase. A run that ended stays where it is; reason is shown
// to people where it failed.
func (s *Service) SetPhase(ctx context.Context, workspaceID, runID string, phase core.RunPhase, reason string) error {
	return s.change(ctx, workspaceID, runID, func(r *store.Run) error {
		if r.Phase == core.PhaseFailed || r.Phase == core.PhaseCancelled {
			if r.Phase == phase {
				return nil
			}
			return core.Errf(core.KindConflict, "run_ended", "The run is %s and takes nothing more. Open a new run.", r.Phase)
		}
		r.Phase, r.PhaseReason = phase, reason
		return nil
	})
}

func (s *Service) change(ctx context.Context, workspaceID, runID string, edit func(*store.Run) error) error {
	return s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := s.Recompute(ctx, tx, workspaceID, runID, edit)
		return err
	})
}

// Settle brings the stored status of runs up to date that changed by the passing of
// time alone: measurement windows that closed. It returns how many changed.
func (s *Service) Settle(ctx context.Context) (int, error) {
	rows, err := s.d.DB.SystemRunsMeasuring(ctx, 200)
	if err != nil {
		return 0, err
	}
	changed := 0
	for _, r := range rows {
		now, err := s.d.DB.Now(ctx)
		if err != nil {
			return changed, err
		}
		briefs, err := s.d.DB.ActionBriefs(ctx, r.WorkspaceID, r.ID)
		if err != nil {
			return changed, err
		}
		if status, _ := standing(r.Phase, briefs, now); status == r.Status {
			continue
		}
		if err := s.change(ctx, string(r.WorkspaceID), r.ID, nil); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}
