package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
)

func (s *server) runRoutes() []route {
	return []route{
		{"GET /api/runs", "listRuns", s.listRuns},
		{"POST /api/runs", "createRun", s.createRun},
		{"GET /api/runs/{id}", "getRun", s.getRun},
		{"POST /api/runs/{id}/cancel", "cancelRun", s.cancelRun},
	}
}

func (s *server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	page, err := s.Runs.List(r.Context(), requestOf(r).principal, q)
	if err != nil {
		return err
	}
	return replyPage(w, r, s, "runs", page)
}

func (s *server) createRun(w http.ResponseWriter, r *http.Request) error {
	var in struct{ Goal, WorkspaceID, ProjectID string }
	if err := decode(r, &in); err != nil {
		return err
	}
	wait, asked, err := waitOf(r)
	if err != nil {
		return err
	}
	p := requestOf(r).principal
	created, err := s.Dispatcher.CreateRun(r.Context(), p, run.Create{Goal: in.Goal, WorkspaceID: in.WorkspaceID, ProjectID: in.ProjectID})
	if err != nil {
		return err
	}
	if asked {
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
		if err := s.waitForPack(r.Context(), p, created.ID, wait); err != nil {
			return err
		}
	}
	w.Header().Set("Location", s.BaseURL+"/api/runs/"+created.ID)
	return s.showRun(w, r, created.ID)
}

func (s *server) getRun(w http.ResponseWriter, r *http.Request) error {
	return s.showRun(w, r, chi.URLParam(r, "id"))
}

// showRun writes a run and remembers that its pack was shown to the caller: a decision
// that names no digest means what was shown last. It is remembered before it is read,
// so that a change in between makes such a decision stale instead of blind.
func (s *server) showRun(w http.ResponseWriter, r *http.Request, id string) error {
	p := requestOf(r).principal
	if shows(r) {
		if _, err := s.Approval.Deliver(r.Context(), p, id); err != nil {
			return err
		}
	}
	found, err := s.Runs.Get(r.Context(), p, id)
	if err != nil {
		return err
	}
	return replyTagged(w, r, found.PackDigest, found)
}

// shows reports whether the reply puts something before the eyes of somebody who may
// decide about it. A HEAD has no body, so that nobody sees anything.
func shows(r *http.Request) bool {
	return r.Method != http.MethodHead && requestOf(r).principal.Can(core.ScopeActionsApprove)
}

func (s *server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	cancelled, err := s.Runs.Cancel(r.Context(), requestOf(r).principal, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return replyTagged(w, r, cancelled.PackDigest, cancelled)
}

// maxWait is the longest that Prefer: wait=N waits.
const maxWait = 60 * time.Second

// waitOf reads the preference to wait; others are ignored, as preferences are.
func waitOf(r *http.Request) (wait time.Duration, asked bool, err error) {
	for _, header := range r.Header.Values("Prefer") {
		for preference := range strings.FieldsFuncSeq(header, func(c rune) bool { return c == ',' || c == ';' }) {
			value, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(preference)), "wait=")
			if !ok {
				continue
			}
			seconds, err := strconv.Atoi(value)
			if err != nil || seconds < 0 {
				return 0, false, core.Errf(core.KindMalformed, "malformed_prefer", "Prefer takes wait=N with whole seconds.")
			}
			return min(time.Duration(seconds)*time.Second, maxWait), true, nil
		}
	}
	return 0, false, nil
}

// waitForPack waits until drafting is over or the time is up. Events wake it; the run
// is always read anew.
func (s *server) waitForPack(ctx context.Context, p core.Principal, id string, wait time.Duration) error {
	timed, stop := context.WithTimeout(ctx, wait)
	defer stop()
	events := follow(timed, p, id, 0, s.Events.Subscribe)
	for {
		current, err := s.Runs.Get(ctx, p, id)
		if err != nil {
			return err
		}
		switch current.Status {
		case core.RunStatusCreated, core.RunStatusGathering, core.RunStatusDrafting:
		default:
			return nil
		}
		if _, open := <-events; !open {
			return nil
		}
	}
}
