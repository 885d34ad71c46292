// Package loop resumes launches: it reads where a run stands and names the one next step. It changes nothing.
package loop

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// Tools that the loop calls or names.
const (
	getRun       = "mkt_get_run"
	listRuns     = "mkt_list_runs"
	listActions  = "mkt_list_actions"
	continueTool = "mkt_continue_launch_loop"
	diagnoseTool = "mkt_diagnose_marketing"
)

// Blocked is a channel that cannot go on as things stand.
type Blocked struct {
	Channel string `json:"channel"`
	Reason  string `json:"reason"`
	Unblock string `json:"unblock"`
}

// runView is the part of a run that the loop needs.
type runView struct {
	ID          string         `json:"id"`
	Status      string         `json:"status"`
	Goal        string         `json:"goal"`
	ReviewURL   string         `json:"reviewUrl"`
	Counts      map[string]int `json:"counts"`
	ExpiresAt   string         `json:"expiresAt"`
	CreatedAt   string         `json:"createdAt"`
	Measurement struct {
		OpensAt  string `json:"opensAt"`
		ClosesAt string `json:"closesAt"`
		Status   string `json:"status"`
	} `json:"measurement"`
	Intent struct {
		Name string `json:"name"`
	} `json:"intent"`
}

// actionState is the part of an action that the loop needs.
type actionState struct {
	ID           string `json:"id"`
	RunID        string `json:"runId"`
	Title        string `json:"title"`
	Channel      string `json:"channel"`
	Kind         string `json:"kind"`
	Status       string `json:"status"`
	StatusReason string `json:"statusReason"`
	Executor     string `json:"executor"`
	ReviewURL    string `json:"reviewUrl"`
	ExpiresAt    string `json:"expiresAt"`
}

// observation is what the caller counted: the same event over equally long times before and after.
type observation struct {
	Metric string `json:"metric"`
	Before *int   `json:"before"`
	After  *int   `json:"after"`
}

// step is the exact next action: a tool to call, or something a person does.
type step struct {
	Tool      string         `json:"tool,omitempty"`
	Human     string         `json:"human,omitempty"`
	Title     string         `json:"title"`
	Arguments map[string]any `json:"arguments"`
	Reason    string         `json:"reason"`
	BlockedBy string         `json:"blockedBy,omitempty"`
}

type progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

type mark struct {
	At    string `json:"at"`
	What  string `json:"what"`
	State string `json:"state"` // due, open
}

type measurement struct {
	OpensAt  string   `json:"opensAt,omitempty"`
	ClosesAt string   `json:"closesAt,omitempty"`
	State    string   `json:"state"`
	Marks    []mark   `json:"marks"`
	Verdict  *verdict `json:"verdict,omitempty"`
}

type loopAnswer struct {
	RunID             string           `json:"runId"`
	Stage             string           `json:"stage"`
	NextAction        step             `json:"nextAction"`
	WaitingFor        string           `json:"waitingFor"`
	DueAt             string           `json:"dueAt"`
	Progress          progress         `json:"progress"`
	Measurement       *measurement     `json:"measurement,omitempty"`
	Blocked           []Blocked        `json:"blocked"`
	RetryAfterSeconds int              `json:"retryAfterSeconds"`
	ReviewURL         string           `json:"reviewUrl"`
	UserMessage       string           `json:"userMessage"`
	AgentGuide        draft.AgentGuide `json:"agentGuide"`
}

// Stages of a launch, computed from the run, its actions and the clock.
const (
	stageCollecting = "collecting"
	stageAwaiting   = "awaiting_approval"
	stageExecuting  = "executing"
	stageMeasuring  = "measuring"
	stageNextMove   = "next_move"
	stageClosed     = "closed"
)

// pollAfter is how long a caller should wait before asking again, in seconds: asking more often changes nothing.
const pollAfter = 300

// Continue says where a launch stands and names exactly one next step. It changes nothing, so that the same state
// always gives the same answer.
func Continue(ctx context.Context, c *sdk.Call) (any, error) {
	var in struct {
		RunID    string       `json:"runId"`
		Observed *observation `json:"observed"`
	}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	run, actions, err := readRun(ctx, c, in.RunID)
	if err != nil {
		return nil, err
	}
	out := loopAnswer{RunID: run.ID, ReviewURL: run.ReviewURL, Blocked: []Blocked{}, RetryAfterSeconds: pollAfter}
	for _, a := range actions {
		if settled(a.Status) {
			out.Progress.Done++
		}
		if a.Status == "failed" || a.Status == "unknown" {
			out.Blocked = append(out.Blocked, Blocked{a.Channel, a.StatusReason, "Look at it on the review page."})
		}
	}
	out.Progress.Total = len(actions)
	out.Measurement = measure(run, c.Now, in.Observed)
	out.Stage = stageOf(run, actions)
	decideNext(&out, run, actions)
	guided := *c
	guided.RunID, guided.ReviewURL = run.ID, run.ReviewURL
	out.AgentGuide = draft.Guide(&guided, out.UserMessage)
	out.AgentGuide.MustWait = out.Stage == stageAwaiting || out.NextAction.Human != ""
	return out, nil
}

func readRun(ctx context.Context, c *sdk.Call, id string) (runView, []actionState, error) {
	var run struct {
		Run runView `json:"run"`
	}
	if err := c.Host.CallTool(ctx, getRun, map[string]any{"runId": id}, &run); err != nil {
		return runView{}, nil, err
	}
	actions, err := readActions(ctx, c, map[string]any{"runId": id, "limit": 200})
	return run.Run, actions, err
}

func readActions(ctx context.Context, c *sdk.Call, input map[string]any) ([]actionState, error) {
	var page struct {
		Actions []actionState `json:"actions"`
	}
	err := c.Host.CallTool(ctx, listActions, input, &page)
	live := page.Actions[:0]
	for _, a := range page.Actions {
		if a.Status != "superseded" { // its successor speaks for it
			live = append(live, a)
		}
	}
	return live, err
}

func settled(status string) bool {
	switch status {
	case "succeeded", "failed", "rejected", "expired", "revoked", "cancelled":
		return true
	}
	return false
}

func stageOf(run runView, actions []actionState) string {
	switch run.Status {
	case "created", "gathering", "drafting":
		return stageCollecting
	case "rejected", "expired", "cancelled", "failed":
		return stageClosed
	}
	waiting, moving, succeeded := 0, 0, 0
	for _, a := range actions {
		switch a.Status {
		case "proposed", "pending":
			waiting++
		case "approved", "claimed", "sending", "unknown":
			moving++
		case "succeeded":
			succeeded++
		}
	}
	switch {
	case waiting > 0:
		return stageAwaiting
	case moving > 0:
		return stageExecuting
	case succeeded > 0 && run.Measurement.Status == "closed":
		return stageNextMove
	case succeeded > 0:
		return stageMeasuring
	}
	return stageClosed
}

// decideNext fills in the one next step of a stage.
func decideNext(out *loopAnswer, run runView, actions []actionState) {
	count := func(status ...string) (n int) {
		for _, a := range actions {
			for _, s := range status {
				if a.Status == s {
					n++
				}
			}
		}
		return n
	}
	again := map[string]any{"runId": run.ID}
	switch out.Stage {
	case stageCollecting:
		out.NextAction = step{Tool: continueTool, Title: "Wait until drafting is done", Arguments: again, Reason: "The run is still being drafted."}
		out.WaitingFor = "drafting"
		out.UserMessage = "The run is still being drafted. Nothing has been published."
	case stageAwaiting:
		n := count("proposed", "pending")
		out.NextAction = step{Human: "review", Title: "Review and decide on the review page", Arguments: map[string]any{"reviewUrl": run.ReviewURL}, Reason: fmt.Sprintf("%s waiting for a person.", draft.AreWaiting(n))}
		out.WaitingFor, out.DueAt = "a person's decision", run.ExpiresAt
		out.UserMessage = fmt.Sprintf("Still waiting: %s open. Nothing of it is published before you decide here: %s", draft.AreWaiting(n), run.ReviewURL)
	case stageExecuting:
		executing(out, run, actions)
	case stageMeasuring:
		out.DueAt = run.Measurement.ClosesAt
		out.NextAction = step{Tool: continueTool, Title: "Come back when the 24 hours are over", Arguments: again, Reason: "The measurement window is open until " + run.Measurement.ClosesAt + "."}
		out.WaitingFor = "the end of the measurement window"
		out.UserMessage = fmt.Sprintf("%d actions are done. The first 24 hours are being measured until %s.", count("succeeded"), run.Measurement.ClosesAt)
	case stageNextMove:
		nextMove(out, run)
	default:
		out.NextAction = step{Tool: diagnoseTool, Title: "Open a new run", Arguments: map[string]any{"goal": run.Goal}, Reason: "This run is closed (" + run.Status + ")."}
		out.WaitingFor = "nothing"
		out.UserMessage = "This run is closed (" + run.Status + "). A new run can be opened for the same goal."
	}
}

// executing names what stands in the way of the approved actions: work by hand first, then what needs a look.
func executing(out *loopAnswer, run runView, actions []actionState) {
	for _, a := range actions {
		if a.Status == "unknown" {
			out.NextAction = step{Human: "settle", Title: "Say whether it happened: " + a.Title, Arguments: map[string]any{"actionId": a.ID, "reviewUrl": run.ReviewURL}, Reason: "The answer was lost on the way, so only a look at the channel can tell.", BlockedBy: a.StatusReason}
			out.WaitingFor = "a person who looks it up"
			out.UserMessage = fmt.Sprintf("For one approved action (%s) it is not known whether it arrived. Please look it up and note the result here: %s", a.Channel, run.ReviewURL)
			return
		}
	}
	for _, a := range actions {
		if a.Status == "approved" && a.Executor == "manual" {
			out.NextAction = step{Human: "by_hand", Title: "Do it by hand and note the address of the result: " + a.Title, Arguments: map[string]any{"actionId": a.ID, "reviewUrl": run.ReviewURL}, Reason: "This channel is served by a person."}
			out.WaitingFor = "a person's work by hand"
			out.UserMessage = fmt.Sprintf("Approved and yours to do: %s. The text to copy is on the review page; note there where the result stands: %s", a.Channel, run.ReviewURL)
			return
		}
	}
	out.NextAction = step{Tool: continueTool, Title: "Wait until the approved actions are sent", Arguments: map[string]any{"runId": run.ID}, Reason: "The platform is sending what was approved."}
	out.WaitingFor = "sending"
	out.UserMessage = "The approved actions are on their way."
}

// nextMove closes the loop: with numbers it judges them, without it asks for them.
func nextMove(out *loopAnswer, run runView) {
	if v := out.Measurement.Verdict; v != nil {
		out.NextAction = step{Tool: diagnoseTool, Title: "Plan the next move", Arguments: map[string]any{"goal": v.goal(run.Goal)}, Reason: v.Text}
		out.WaitingFor = "nothing"
		out.UserMessage = "The first 24 hours are over. " + v.Text
		return
	}
	out.NextAction = step{
		Human: "measure", Title: "Count the result of the 24 hours before and after, and hand both numbers over", Reason: "The window is closed and no numbers were given.",
		Arguments: map[string]any{"runId": run.ID, "observed": map[string]any{"metric": "sign-ups", "before": nil, "after": nil}},
	}
	out.WaitingFor = "two numbers"
	out.UserMessage = "The first 24 hours are over. How many sign-ups came in the 24 hours before and in the 24 hours after?"
}

// measure says where the 24 hours stand and, when both counts are given, what they mean.
func measure(run runView, now time.Time, seen *observation) *measurement {
	if run.Measurement.Status == "" || run.Measurement.Status == "not_started" {
		return nil
	}
	out := &measurement{OpensAt: run.Measurement.OpensAt, ClosesAt: run.Measurement.ClosesAt, State: run.Measurement.Status, Marks: []mark{}}
	opens, err := time.Parse(time.RFC3339, run.Measurement.OpensAt)
	if err != nil {
		return out
	}
	for _, m := range []struct {
		after time.Duration
		what  string
	}{{time.Hour, "Is anything counted at all?"}, {6 * time.Hour, "First signal"}, {24 * time.Hour, "Verdict"}} {
		at := opens.Add(m.after)
		state := "open"
		if !now.Before(at) {
			state = "due"
		}
		out.Marks = append(out.Marks, mark{at.UTC().Format(time.RFC3339), m.what, state})
	}
	if seen != nil && seen.Before != nil && seen.After != nil {
		out.Verdict = judge(seen.Metric, *seen.Before, *seen.After)
	}
	return out
}

// verdict is what two counts over equally long times say.
type verdict struct {
	Metric string  `json:"metric"`
	Before int     `json:"before"`
	After  int     `json:"after"`
	PValue float64 `json:"pValue"`
	Result string  `json:"result"` // up, down, too_small_to_tell
	Text   string  `json:"text"`
}

// judge compares two counts by the exact conditional test: if nothing changed, each event is as likely to fall before as after.
func judge(metric string, before, after int) *verdict {
	v := &verdict{Metric: metric, Before: before, After: after, PValue: round4(twoSided(before, after)), Result: "too_small_to_tell"}
	if v.Metric == "" {
		v.Metric = "events"
	}
	if v.PValue < 0.05 {
		v.Result = "up"
		if after < before {
			v.Result = "down"
		}
	}
	v.Text = map[string]string{
		"up":                fmt.Sprintf("%s rose from %d to %d; chance alone would do that in %.1f %% of cases.", draft.Capital(v.Metric), before, after, 100*v.PValue),
		"down":              fmt.Sprintf("%s fell from %d to %d; chance alone would do that in %.1f %% of cases.", draft.Capital(v.Metric), before, after, 100*v.PValue),
		"too_small_to_tell": fmt.Sprintf("%s went from %d to %d, which is too small a difference to tell from chance.", draft.Capital(v.Metric), before, after),
	}[v.Result]
	return v
}

func (v *verdict) goal(launched string) string {
	switch v.Result {
	case "up":
		return draft.Clip("Write more posts on what worked after this launch: "+launched, 4000)
	case "down":
		return draft.Clip("Find out what kept people away after this launch: "+launched, 4000)
	}
	return draft.Clip("Reach more of the right people after this launch: "+launched, 4000)
}

// twoSided is the probability of a split at least as uneven as a:b among a+b fair coins.
func twoSided(a, b int) float64 {
	n, low := a+b, min(a, b)
	if n == 0 {
		return 1
	}
	tail := 0.0
	for i := 0; i <= low; i++ {
		tail += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func round4(f float64) float64 { return math.Round(f*1e4) / 1e4 }
