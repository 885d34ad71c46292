package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

// heartbeat keeps proxies from closing a silent stream.
const heartbeat = 15 * time.Second

func (s *server) eventRoutes() []route {
	return []route{{"GET /api/runs/{id}/events", "watchRun", s.watchRun}}
}

// watchRun streams the events of a run: first those after Last-Event-ID, then new ones.
func (s *server) watchRun(w http.ResponseWriter, r *http.Request) error {
	p := requestOf(r).principal
	after := int64(0)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return core.Errf(core.KindMalformed, "malformed_event_id", "Last-Event-ID is the id of an event of this stream, a whole number.")
		}
		after = n
	}
	found, err := s.Runs.Get(r.Context(), p, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // a stream outlives the server's limit; writers without one refuse
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := control.Flush(); err != nil {
		return nil
	}
	events := follow(r.Context(), p, found.ID, after, s.Events.Subscribe)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return nil
			}
			data, err := json.Marshal(e.Event)
			if err != nil {
				return nil
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Type, data); err != nil {
				return nil
			}
		case <-beat.C:
			if _, err := s.Auth.FromRequest(r); core.IsKind(err, core.KindUnauthenticated) {
				return nil // revoked or expired meanwhile: what happens next is not for this caller
			}
			if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil {
				return nil
			}
		}
		if err := control.Flush(); err != nil {
			return nil
		}
	}
}
