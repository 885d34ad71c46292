package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

// showLimit is the most that is shown of one request. What was not shown whole cannot
// be approved on the page.
const showLimit = 256 << 10

// actionView is an action as the review page shows it.
type actionView struct {
	core.Action
	Steps                                      []stepView
	ManualTask                                 *manualView
	Explanation                                string
	Warnings                                   []string
	Genericity                                 *core.GenericityRisk
	Evidence                                   []core.Evidence
	Fields                                     []fieldView
	Whole                                      bool // everything that leaves is on the page
	CanDecide, CanRevoke, CanFinish, CanSettle bool
	ApproveLabel                               string
}

// pairView is a name and a value.
type pairView struct{ Name, Value string }

// stepView is one request, exactly.
type stepView struct {
	Method, URL, Body, SHA256, Added, Note string
	Headers                                []pairView
	Bytes                                  int
	Mail                                   *mailView
}

// mailView is a mail as a reader would see it; the exact bytes stand beside it.
type mailView struct{ From, To, Subject, Text string }

type manualView struct {
	Title, Text, OpenURL string
	Fields               []pairView
	Checklist            []string
}

// fieldView is one text of an action's input that a person may edit.
type fieldView struct {
	ID, Name, Value string
	Long            bool
}

// preview is what core drew from the sealed bytes.
type preview struct {
	Warnings              []string
	UnverifiedExplanation string
	Manual                *manualView
	Steps                 []struct {
		Transport, Method, URL, Server, TLS, From, Subject, Text string
		Body, BodyEncoding, Message, MessageEncoding             string
		BodyBytes, MessageBytes                                  int
		To, AddedBySender                                        []string
		Headers                                                  []pairView
		ContentSha256                                            string
	}
}

// event is a line of the timeline.
type event struct {
	At   time.Time
	Text string
}

func (s *Site) review(w http.ResponseWriter, r *http.Request, p core.Principal) {
	s.showReview(w, r, p, chi.URLParam(r, "id"), http.StatusOK, nil)
}

// showReview shows a run for decision, with a problem above it when a decision failed.
func (s *Site) showReview(w http.ResponseWriter, r *http.Request, p core.Principal, runID string, status int, pr *problem) {
	ctx := r.Context()
	// Remember what is shown before reading it: a change in between makes the decision stale, never unseen.
	if _, err := s.Approval.Deliver(ctx, p, runID); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Runs.Get(ctx, p, runID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	actions, err := s.Approval.List(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	views, err := s.actionViews(r, p, runID, actions.Items)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	open, coverable := 0, 0
	for _, v := range views {
		if v.CanDecide {
			open++
			if v.Whole && v.Policy.Proof != core.ActionPolicyProofP3 {
				coverable++
			}
		}
	}
	if open > coverable { // approving all needs all on the page
		coverable = 0
	}
	data := map[string]any{"Run": run, "Actions": views, "Open": open, "Coverable": coverable, "MayDecide": p.Can(core.ScopeActionsApprove), "Timeline": timeline(run, actions.Items)}
	s.show(w, r, p, status, "review", page{Title: "Review", Problem: pr, Data: data})
}

func (s *Site) actionViews(r *http.Request, p core.Principal, runID string, actions []core.Action) ([]actionView, error) {
	ctx := r.Context()
	found, err := s.Runs.EvidenceOf(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		return nil, err
	}
	evidence := map[string]core.Evidence{}
	for _, e := range found.Items {
		evidence[e.ID] = e
	}
	assets, err := s.Runs.Assets(ctx, p, core.Query{RunID: runID, Limit: core.MaxLimit})
	if err != nil {
		return nil, err
	}
	risks := map[string]*core.GenericityRisk{}
	for _, a := range assets.Items {
		risks[a.ID] = a.GenericityRisk
	}
	views := make([]actionView, 0, len(actions))
	for _, a := range actions {
		v, err := viewOf(a)
		if err != nil {
			return nil, err
		}
		for _, id := range a.EvidenceIds {
			if e, ok := evidence[id]; ok {
				v.Evidence = append(v.Evidence, e)
			}
		}
		for _, ref := range a.AssetRefs {
			if risk := risks[ref.ID]; risk != nil && (v.Genericity == nil || risk.Score > v.Genericity.Score) {
				v.Genericity = risk
			}
		}
		views = append(views, v)
	}
	sort.SliceStable(views, func(i, j int) bool { return rank(views[i].Action) < rank(views[j].Action) })
	return views, nil
}

// rank puts what waits first, and there money, then what cannot be undone.
func rank(a core.Action) int {
	n := 0
	if !a.Status.IsWaiting() {
		n += 10
	}
	if a.Cost.Micros == 0 {
		n += 2
	}
	if a.Reversibility != core.ActionReversibilityIrreversible {
		n++
	}
	return n
}

// viewOf draws an action from the preview that core made of the sealed bytes.
func viewOf(a core.Action) (actionView, error) {
	v := actionView{Action: a, Whole: true, CanDecide: a.Status == core.ActionStatusPending, CanRevoke: a.Status == core.ActionStatusApproved || a.Status == core.ActionStatusClaimed,
		CanFinish: a.Status == core.ActionStatusApproved && a.Executor == core.ActionExecutorManual, CanSettle: a.Status == core.ActionStatusUnknown}
	raw, err := json.Marshal(a.Preview)
	if err != nil {
		return v, err
	}
	var pv preview
	if err := json.Unmarshal(raw, &pv); err != nil {
		return v, fmt.Errorf("preview of %s: %w", a.ID, err)
	}
	v.Explanation, v.ManualTask, v.Warnings = pv.UnverifiedExplanation, pv.Manual, pv.Warnings
	for _, st := range pv.Steps {
		step := stepView{Method: st.Method, URL: st.URL, Headers: st.Headers, Bytes: st.BodyBytes + st.MessageBytes, SHA256: st.ContentSha256, Added: strings.Join(st.AddedBySender, ", "), Body: st.Body}
		encoding := st.BodyEncoding
		if st.Transport == "smtp" {
			step.URL, step.Body, encoding = st.Server, st.Message, st.MessageEncoding
			step.Headers = nil // they stand in the message
			step.Mail = &mailView{From: st.From, To: strings.Join(st.To, ", "), Subject: st.Subject, Text: st.Text}
		}
		switch encoding {
		case "base64":
			step.Note = "These bytes are not text; they are shown in base64."
		case "escaped":
			step.Note = "Some characters cannot be seen; they are shown as escapes."
		}
		if len(step.Body) > showLimit {
			step.Body, step.Note, v.Whole = step.Body[:showLimit], fmt.Sprintf("Only the first %d KiB are shown.", showLimit>>10), false
		}
		v.Steps = append(v.Steps, step)
	}
	if v.ManualTask == nil && len(v.Steps) == 0 {
		v.Whole = false
	}
	v.ApproveLabel = label(a)
	v.Fields = fieldsOf(a)
	return v, nil
}

// label names the act on the button.
func label(a core.Action) string {
	switch {
	case a.Executor == core.ActionExecutorManual:
		return "Approve for posting by hand"
	case a.Kind == "email.send":
		return "Approve and send 1 e-mail"
	case a.Kind == "post.publish":
		return "Approve and publish 1 post"
	}
	return "Approve and send"
}

// fieldsOf lists the texts of the input, in order of their names.
func fieldsOf(a core.Action) []fieldView {
	var out []fieldView
	for name, value := range a.Input {
		if text, ok := value.(string); ok {
			out = append(out, fieldView{ID: "f-" + a.ID + "-" + base64.RawURLEncoding.EncodeToString([]byte(name)), Name: name, Value: text, Long: len(text) > 80 || strings.Contains(text, "\n")})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func timeline(run *core.Run, actions []core.Action) []event {
	out := []event{{run.CreatedAt, "Asked by " + run.CreatedBy.Label}}
	for _, a := range actions {
		out = append(out, event{a.CreatedAt, "Proposed: " + a.Title})
		for _, d := range a.Decisions {
			out = append(out, event{d.At, fmt.Sprintf("%s by %s: %s", d.Decision, d.By.Label, a.Title)})
		}
		if x := a.Execution; x != nil && x.FinishedAt != nil {
			out = append(out, event{*x.FinishedAt, fmt.Sprintf("%s: %s", a.Status, a.Title)})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}
