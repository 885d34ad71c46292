package loop

import (
	"context"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

type openApproval struct {
	RunID     string `json:"runId"`
	ActionID  string `json:"actionId"`
	Channel   string `json:"channel"`
	Kind      string `json:"kind"`
	ReviewURL string `json:"reviewUrl"`
	ExpiresAt string `json:"expiresAt"`
}

type pending struct {
	RunID    string `json:"runId"`
	ActionID string `json:"actionId"`
	Channel  string `json:"channel"`
	Status   string `json:"status"`
	Executor string `json:"executor"`
}

type window struct {
	RunID    string `json:"runId"`
	OpensAt  string `json:"opensAt"`
	ClosesAt string `json:"closesAt"`
	State    string `json:"state"`
}

type move struct {
	RunID  string `json:"runId"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

type stale struct {
	RunID  string `json:"runId"`
	Reason string `json:"reason"`
}

type healthAnswer struct {
	OpenApprovals      []openApproval `json:"openApprovals"`
	BlockedChannels    []Blocked      `json:"blockedChannels"`
	PendingExecution   []pending      `json:"pendingExecution"`
	MeasurementWindows []window       `json:"measurementWindows"`
	NextMoves          []move         `json:"nextMoves"`
	StaleEvidence      []stale        `json:"staleEvidence"`
	Verdict            string         `json:"verdict"`
	UserMessage        string         `json:"userMessage"`
}

// maxRuns bounds how many launches the health of a workspace looks at.
const maxRuns = 50

// Health looks at one launch, or at all of the workspace, and says what is open. It changes nothing.
func Health(ctx context.Context, c *sdk.Call) (any, error) {
	var in struct {
		RunID       string `json:"runId"`
		WorkspaceID string `json:"workspaceId"`
	}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	if in.WorkspaceID != "" && in.WorkspaceID != c.WorkspaceID {
		return nil, sdk.Fail("not_found", "There is no such workspace.")
	}
	runs, actions, err := survey(ctx, c, in.RunID)
	if err != nil {
		return nil, err
	}
	out := healthAnswer{OpenApprovals: []openApproval{}, BlockedChannels: []Blocked{}, PendingExecution: []pending{}, MeasurementWindows: []window{}, NextMoves: []move{}, StaleEvidence: []stale{}}
	byRun := map[string][]actionState{}
	for _, a := range actions {
		byRun[a.RunID] = append(byRun[a.RunID], a)
		switch a.Status {
		case "proposed", "pending":
			out.OpenApprovals = append(out.OpenApprovals, openApproval{a.RunID, a.ID, a.Channel, a.Kind, a.ReviewURL, a.ExpiresAt})
		case "approved", "claimed", "sending":
			out.PendingExecution = append(out.PendingExecution, pending{a.RunID, a.ID, a.Channel, a.Status, a.Executor})
		case "failed", "unknown":
			out.BlockedChannels = append(out.BlockedChannels, Blocked{a.Channel, a.StatusReason, "Look at it on the review page: " + a.ReviewURL})
		case "expired":
			out.StaleEvidence = append(out.StaleEvidence, stale{a.RunID, "A proposal expired before anybody decided; what it rests on may be old."})
		}
	}
	for _, r := range runs {
		if r.Measurement.Status == "open" || r.Measurement.Status == "closed" {
			out.MeasurementWindows = append(out.MeasurementWindows, window{r.ID, r.Measurement.OpensAt, r.Measurement.ClosesAt, r.Measurement.Status})
		}
		if stage := stageOf(r, byRun[r.ID]); stage == stageNextMove {
			out.NextMoves = append(out.NextMoves, move{r.ID, continueTool, "The 24 hours are over."})
		}
	}
	blockedConnections(ctx, c, &out)
	out.judge()
	return out, nil
}

func survey(ctx context.Context, c *sdk.Call, runID string) ([]runView, []actionState, error) {
	if runID != "" {
		run, actions, err := readRun(ctx, c, runID)
		return []runView{run}, actions, err
	}
	var page struct {
		Runs []runView `json:"runs"`
	}
	if err := c.Host.CallTool(ctx, listRuns, map[string]any{"limit": maxRuns}, &page); err != nil {
		return nil, nil, err
	}
	actions, err := readActions(ctx, c, map[string]any{"limit": 200})
	return page.Runs, actions, err
}

// blockedConnections adds the connections that a launch uses and that do not work.
func blockedConnections(ctx context.Context, c *sdk.Call, out *healthAnswer) {
	list, err := c.Host.Connections(ctx)
	if err != nil {
		c.Log.Debug("connections not read", "error", err)
		return
	}
	for _, conn := range list {
		if conn.Status == "error" || conn.Status == "needs_reauth" || conn.Status == "disabled" {
			name := conn.Provider
			if conn.Name != "" {
				name += " " + conn.Name
			}
			out.BlockedChannels = append(out.BlockedChannels, Blocked{channelOf(conn.Provider), "the connection " + name + " is in state " + conn.Status, "Connect it again."})
		}
	}
}

func channelOf(provider string) string {
	switch provider {
	case "smtp":
		return "email"
	case "webhook":
		return "webhook"
	}
	return provider
}

func (h *healthAnswer) judge() {
	open := 0
	for _, w := range h.MeasurementWindows {
		if w.State == "open" {
			open++
		}
	}
	switch {
	case len(h.BlockedChannels) > 0:
		h.Verdict = "blocked"
		h.UserMessage = draft.Plural(len(h.BlockedChannels), "channel") + " cannot go on as things stand."
	case len(h.OpenApprovals) > 0:
		h.Verdict = "waiting_on_human"
		h.UserMessage = draft.AreWaiting(len(h.OpenApprovals)) + " waiting for your decision."
	case open > 0:
		h.Verdict = "measuring"
		h.UserMessage = draft.Plural(open, "launch") + " in the first 24 hours."
		if open > 1 {
			h.UserMessage = "Several launches are in their first 24 hours."
		}
	default:
		h.Verdict = "healthy"
		h.UserMessage = "Nothing is open."
	}
}
