// Package run keeps runs with their assets and evidence, and computes where a run
// stands from its actions.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Deps is what the service works with; all but Clock are required.
type Deps struct {
	DB     *store.DB
	Audit  *audit.Log
	Events *event.Bus
	Clock  core.Clock
	// BaseURL is the address people reach this host at, for review addresses.
	BaseURL string
}

// Service creates, reads and changes runs. It is safe for concurrent use.
type Service struct{ d Deps }

// New makes the service.
func New(d Deps) *Service {
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	d.BaseURL = strings.TrimRight(d.BaseURL, "/")
	return &Service{d}
}

// Limits of what a caller writes into a run.
const (
	MaxGoal    = 8000 // characters
	MaxProject = 200
)

// Create is what a new run needs. WorkspaceID may be empty; otherwise it must be the
// caller's own. Tool and Args are the call that answers the goal in the background;
// without Tool the run waits for calls.
type Create struct {
	Goal        string
	WorkspaceID string
	ProjectID   string
	Operator    string
	Tool        string
	Args        json.RawMessage
}

// ReviewURL is the page on which a person decides about a run. It locates; it does not
// authorise.
func (s *Service) ReviewURL(runID string) string { return s.d.BaseURL + "/review/" + runID }

// Create opens a run.
func (s *Service) Create(ctx context.Context, p core.Principal, in Create) (*core.Run, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	if in.WorkspaceID != "" && in.WorkspaceID != p.WorkspaceID {
		return nil, core.Errf(core.KindNotFound, "not_found", "There is no workspace %s here.", in.WorkspaceID)
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var made *core.Run
	err := s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		row := &store.Run{ID: core.NewID(core.PrefixRun, now), WorkspaceID: store.WorkspaceID(p.WorkspaceID), ProjectID: in.ProjectID,
			Operator: in.Operator, Goal: in.Goal, Phase: core.PhaseCreated, Status: core.RunStatusCreated, Skills: []string{}, Currency: "USD",
			CreatedBy: p.Actor(), CreatedByID: p.ID, OriginTool: in.Tool, OriginArgs: store.JSON(in.Args), CreatedAt: store.At(now), UpdatedAt: store.At(now), Version: 1}
		if in.Tool != "" {
			row.Work = store.WorkWanted
		}
		if err := tx.InsertRun(ctx, row); err != nil {
			return err
		}
		if made, err = s.assemble(ctx, tx, row, now); err != nil {
			return err
		}
		if err := s.emit(ctx, tx, row, event.RunCreated, map[string]any{"status": made.Status}); err != nil {
			return err
		}
		return s.log(ctx, tx, p, "run.created", row, map[string]any{"operator": in.Operator, "tool": in.Tool})
	})
	return made, err
}

func (in *Create) check() error {
	in.Goal = strings.TrimSpace(in.Goal)
	var fields []core.FieldError
	if in.Goal == "" {
		fields = append(fields, core.FieldError{Pointer: "/goal", Message: "say what the run is to achieve"})
	}
	if utf8.RuneCountInString(in.Goal) > MaxGoal || !utf8.ValidString(in.Goal) {
		fields = append(fields, core.FieldError{Pointer: "/goal", Message: "must be UTF-8 text of at most 8000 characters"})
	}
	if utf8.RuneCountInString(in.ProjectID) > MaxProject || !utf8.ValidString(in.ProjectID) {
		fields = append(fields, core.FieldError{Pointer: "/projectId", Message: "must be UTF-8 text of at most 200 characters"})
	}
	if len(in.Args) > 0 && !json.Valid(in.Args) {
		fields = append(fields, core.FieldError{Pointer: "/arguments", Message: "must be JSON"})
	}
	if len(fields) == 0 {
		return nil
	}
	e := core.Errf(core.KindInvalid, "invalid", "The run cannot be opened: %s %s.", fields[0].Pointer, fields[0].Message)
	e.Fields = fields
	return e
}

// Get reads a run of the caller's workspace.
func (s *Service) Get(ctx context.Context, p core.Principal, id string) (*core.Run, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return nil, err
	}
	return s.Read(ctx, s.d.DB.Reader, p.WorkspaceID, id, now)
}

// Read reads a run of a workspace through the database or a transaction.
func (s *Service) Read(ctx context.Context, r reader, workspaceID, id string, now time.Time) (*core.Run, error) {
	row, err := r.Run(ctx, store.WorkspaceID(workspaceID), id)
	if err != nil {
		return nil, err
	}
	return s.assemble(ctx, r, row, now)
}

// List reads a page of runs of the caller's workspace, newest first.
func (s *Service) List(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.Run], error) {
	out := core.Page[core.Run]{Items: []core.Run{}}
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return out, err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	rows, err := s.d.DB.ListRuns(ctx, ws, q)
	if err != nil {
		return out, err
	}
	now, err := s.d.DB.Now(ctx)
	if err != nil {
		return out, err
	}
	if out.Items, err = s.assembleAll(ctx, s.d.DB.Reader, ws, rows.Items, now); err != nil {
		return core.Page[core.Run]{Items: []core.Run{}}, err
	}
	out.NextCursor = rows.NextCursor
	return out, nil
}

// Cancel ends a run: what was not handed to a provider yet is cancelled. Where
// something was sent already, the run keeps telling that.
func (s *Service) Cancel(ctx context.Context, p core.Principal, id string) (*core.Run, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	if p.Kind == core.ActorKindKey {
		if err := s.own(ctx, p, id); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		out, err := s.cancel(ctx, p, id)
		if !errors.Is(err, errGrew) || try == 5 {
			return out, err
		}
	}
}

// errGrew says that an action came to be between the locks on the others and on the run.
var errGrew = core.Errf(core.KindUnavailable, "run_grows", "Actions are being proposed in this run right now. Cancel it again in a moment.")

func (s *Service) cancel(ctx context.Context, p core.Principal, id string) (*core.Run, error) {
	ws := store.WorkspaceID(p.WorkspaceID)
	var out *core.Run
	err := s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		actions, err := tx.LockActionsOfRun(ctx, ws, id)
		if err != nil {
			return err
		}
		cancelled, handedOver := []store.Action{}, false
		for i := range actions {
			a := &actions[i]
			to, err := core.NextActionStatus(a.Status, core.EventCancel)
			if err != nil {
				handedOver = handedOver || handed(a.Status)
				continue
			}
			a.Status, a.StatusReason, a.LeaseOwner, a.LeaseUntil, a.UpdatedAt = to, "The run was cancelled.", "", store.Time{}, store.At(now)
			if err := tx.UpdateAction(ctx, a); err != nil {
				return err
			}
			cancelled = append(cancelled, *a)
		}
		row, err := s.Recompute(ctx, tx, p.WorkspaceID, id, func(r *store.Run) error {
			if r.Phase == core.PhaseCancelled || r.Phase == core.PhaseFailed {
				return core.Errf(core.KindConflict, "wrong_state", "The run is %s already.", r.Phase)
			}
			r.Phase, r.PhaseReason, r.Work = core.PhaseCancelled, "Cancelled by "+who(p)+".", ""
			if handedOver {
				r.Phase = core.PhaseInReview
			}
			return nil
		})
		if err != nil {
			return err
		}
		if briefs, err := tx.ActionBriefs(ctx, ws, id); err != nil {
			return err
		} else if len(briefs) != len(actions) {
			return errGrew
		}
		if out, err = s.assemble(ctx, tx, row, now); err != nil {
			return err
		}
		for i := range cancelled {
			if err := s.emitFor(ctx, tx, row, cancelled[i].ID, event.ActionUpdated, map[string]any{"status": cancelled[i].Status}); err != nil {
				return err
			}
		}
		for i := range cancelled {
			entry := s.entry(p, "action.cancelled", row, map[string]any{"digest": cancelled[i].Digest, "revision": cancelled[i].Revision, "runId": id})
			entry.Target = cancelled[i].ID
			if _, err := s.d.Audit.Append(ctx, tx, entry); err != nil {
				return err
			}
		}
		return s.log(ctx, tx, p, "run.cancelled", row, map[string]any{"actions": len(cancelled)})
	})
	return out, err
}

// handed reports whether a provider may have seen something of an action in this state.
func handed(s core.ActionStatus) bool {
	switch s {
	case core.ActionStatusSending, core.ActionStatusSucceeded, core.ActionStatusFailed, core.ActionStatusUnknown:
		return true
	}
	return false
}

// own refuses a key that did not open the run.
func (s *Service) own(ctx context.Context, p core.Principal, id string) error {
	row, err := s.d.DB.Run(ctx, store.WorkspaceID(p.WorkspaceID), id)
	if err != nil {
		return err
	}
	if row.CreatedByID != p.ID {
		return core.Errf(core.KindForbidden, "not_your_run", "A key may change only the runs that it opened itself; this one was opened by %s.", row.CreatedBy.Label)
	}
	return nil
}

func who(p core.Principal) string {
	if p.Label != "" {
		return p.Label
	}
	return p.ID
}

func (s *Service) entry(p core.Principal, action string, row *store.Run, details map[string]any) audit.Entry {
	return audit.Entry{Actor: p.Actor(), WorkspaceID: string(row.WorkspaceID), Action: action, Target: row.ID, Outcome: "ok",
		RequestID: p.RequestID, IP: p.IP, Details: details}
}

func (s *Service) log(ctx context.Context, tx *store.Tx, p core.Principal, action string, row *store.Run, details map[string]any) error {
	_, err := s.d.Audit.Append(ctx, tx, s.entry(p, action, row, details))
	return err
}

func (s *Service) emit(ctx context.Context, tx *store.Tx, row *store.Run, kind string, data map[string]any) error {
	return s.emitFor(ctx, tx, row, "", kind, data)
}

func (s *Service) emitFor(ctx context.Context, tx *store.Tx, row *store.Run, actionID, kind string, data map[string]any) error {
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	e := core.Event{ID: core.NewID(core.PrefixEvent, now), Type: kind, WorkspaceID: string(row.WorkspaceID), RunID: &row.ID, At: now, Data: data}
	if actionID != "" {
		e.ActionID = &actionID
	}
	return s.d.Events.Emit(ctx, tx, e)
}
