package loop_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/operators/marketing"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

type answer struct {
	Stage      string `json:"stage"`
	NextAction struct {
		Tool, Human, Title, Reason string
		Arguments                  map[string]any
	} `json:"nextAction"`
	RetryAfterSeconds int `json:"retryAfterSeconds"`
	Progress          struct{ Done, Total int }
	Measurement       *struct {
		State   string
		Marks   []struct{ State string }
		Verdict *struct {
			Result string
			PValue float64
		}
	} `json:"measurement"`
	UserMessage string `json:"userMessage"`
}

// world answers the two reading tools with a run in a given state.
func world(status, measuring string, actions ...map[string]any) []sdktest.Option {
	m := map[string]any{"status": measuring}
	if measuring != "not_started" {
		m["opensAt"], m["closesAt"] = "2026-01-01T01:00:00Z", "2026-01-02T01:00:00Z"
	}
	run := map[string]any{"id": sdktest.RunID, "status": status, "goal": "Get users", "reviewUrl": sdktest.ReviewURL, "expiresAt": "2026-01-05T00:00:00Z", "measurement": m}
	list := []any{}
	for i, a := range actions {
		a["id"], a["runId"], a["reviewUrl"] = fmt.Sprintf("act_%d", i), sdktest.RunID, sdktest.ReviewURL
		list = append(list, a)
	}
	return []sdktest.Option{
		sdktest.WithTool("mkt_get_run", func(any) any { return map[string]any{"run": run} }),
		sdktest.WithTool("mkt_list_runs", func(any) any { return map[string]any{"runs": []any{run}} }),
		sdktest.WithTool("mkt_list_actions", func(any) any { return map[string]any{"actions": list} }),
	}
}

func act(status, executor string) map[string]any {
	return map[string]any{"status": status, "executor": executor, "title": "Post on X", "channel": "x", "kind": "manual.task", "statusReason": "because"}
}

func resume(t *testing.T, input map[string]any, opts []sdktest.Option) answer {
	t.Helper()
	input["runId"] = sdktest.RunID
	r := sdktest.New(t, marketing.Plugin(), opts...).Call("mkt_continue_launch_loop", input)
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var out answer
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryStageHasOneNextAction(t *testing.T) {
	cases := []struct {
		name    string
		options []sdktest.Option
		stage   string
		next    string // tool or human
	}{
		{"drafting", world("drafting", "not_started"), "collecting", "mkt_continue_launch_loop"},
		{"waiting", world("awaiting_approval", "not_started", act("pending", "connector")), "awaiting_approval", "review"},
		{"some approved, some waiting", world("partially_approved", "not_started", act("approved", "connector"), act("pending", "manual")), "awaiting_approval", "review"},
		{"approved by hand", world("approved", "not_started", act("approved", "manual")), "executing", "by_hand"},
		{"sending", world("executing", "not_started", act("sending", "connector")), "executing", "mkt_continue_launch_loop"},
		{"lost answer", world("needs_attention", "open", act("unknown", "connector"), act("approved", "manual")), "executing", "settle"},
		{"measuring", world("measuring", "open", act("succeeded", "connector"), act("rejected", "connector")), "measuring", "mkt_continue_launch_loop"},
		{"measured", world("completed", "closed", act("succeeded", "connector")), "next_move", "measure"},
		{"rejected", world("rejected", "not_started", act("rejected", "connector")), "closed", "mkt_diagnose_marketing"},
		{"nothing staged", world("completed", "not_started"), "closed", "mkt_diagnose_marketing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := resume(t, map[string]any{}, c.options)
			if out.Stage != c.stage || out.NextAction.Tool+out.NextAction.Human != c.next {
				t.Errorf("stage %s with next %q%q, want %s with %s", out.Stage, out.NextAction.Tool, out.NextAction.Human, c.stage, c.next)
			}
			if out.NextAction.Tool != "" && out.NextAction.Human != "" || out.NextAction.Title == "" || out.NextAction.Reason == "" {
				t.Errorf("not exactly one next action: %+v", out.NextAction)
			}
			if out.RetryAfterSeconds < 300 || out.UserMessage == "" || len(out.UserMessage) > 600 {
				t.Errorf("retry after %d, message %q", out.RetryAfterSeconds, out.UserMessage)
			}
			if again := resume(t, map[string]any{}, c.options); fmt.Sprint(again) != fmt.Sprint(out) && again.NextAction.Title != out.NextAction.Title {
				t.Error("the same state gives another answer")
			}
			if strings.Contains(out.NextAction.Tool, "approve") {
				t.Error("the next action approves")
			}
		})
	}
}

func TestTheVerdictNeedsANumberThatTells(t *testing.T) {
	closed := func() []sdktest.Option { return world("completed", "closed", act("succeeded", "connector")) }
	for _, c := range []struct {
		before, after int
		want          string
	}{{3, 5, "too_small_to_tell"}, {10, 40, "up"}, {40, 12, "down"}, {0, 0, "too_small_to_tell"}, {500, 520, "too_small_to_tell"}, {500, 640, "up"}, {0, 6, "up"}} {
		out := resume(t, map[string]any{"observed": map[string]any{"metric": "sign-ups", "before": c.before, "after": c.after}}, closed())
		if out.Measurement == nil || out.Measurement.Verdict == nil || out.Measurement.Verdict.Result != c.want {
			t.Errorf("%d to %d: %+v, want %s", c.before, c.after, out.Measurement, c.want)
			continue
		}
		if out.NextAction.Tool != "mkt_diagnose_marketing" {
			t.Errorf("next %+v", out.NextAction)
		}
		if len(out.Measurement.Marks) != 3 {
			t.Errorf("%d marks", len(out.Measurement.Marks))
		}
	}
}

func TestAnotherRunIsNotFound(t *testing.T) {
	h := sdktest.New(t, marketing.Plugin(), sdktest.WithTool("mkt_get_run", func(any) any { return sdk.Fail("not_found", "There is no such run.") }))
	if r := h.Call("mkt_continue_launch_loop", map[string]any{"runId": sdktest.RunID}); r.Failure == nil || r.Failure.Code != "not_found" {
		t.Errorf("%+v", r.Failure)
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		options []sdktest.Option
		verdict string
	}{
		{world("awaiting_approval", "not_started", act("pending", "manual")), "waiting_on_human"},
		{world("measuring", "open", act("succeeded", "connector")), "measuring"},
		{world("needs_attention", "open", act("failed", "connector")), "blocked"},
		{world("completed", "closed", act("succeeded", "connector")), "healthy"},
		{append(world("completed", "closed", act("succeeded", "connector")), sdktest.WithConnections(sdk.Connection{Provider: "smtp", Status: "needs_reauth"})), "blocked"},
	} {
		for _, input := range []map[string]any{{}, {"runId": sdktest.RunID}} {
			r := sdktest.New(t, marketing.Plugin(), c.options...).Call("mkt_launch_health", input)
			var out struct {
				Verdict   string
				NextMoves []any
			}
			if err := r.Decode(&out); err != nil {
				t.Fatal(err)
			}
			if out.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s", out.Verdict, c.verdict)
			}
		}
	}
	if r := sdktest.New(t, marketing.Plugin()).Call("mkt_launch_health", map[string]any{"workspaceId": "ws_other"}); r.Failure == nil || r.Failure.Code != "not_found" {
		t.Errorf("another workspace: %+v", r.Failure)
	}
}

// An agent that always follows the next action reaches nothing but readings and questions to a person.
func TestGreedyAgentReachesNoSideEffect(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	statuses := []string{"pending", "approved", "claimed", "sending", "succeeded", "failed", "unknown", "rejected", "expired", "revoked", "cancelled", "superseded"}
	runs := []string{"drafting", "awaiting_approval", "partially_approved", "approved", "executing", "needs_attention", "measuring", "completed", "rejected", "expired", "failed", "cancelled"}
	harmless := []string{"mkt_continue_launch_loop", "mkt_diagnose_marketing"}
	var run, list any
	h := sdktest.New(t, marketing.Plugin(), sdktest.WithTool("mkt_get_run", func(any) any { return run }), sdktest.WithTool("mkt_list_actions", func(any) any { return list }))
	for range 400 {
		actions := []any{}
		for n := random.Intn(4); n > 0; n-- {
			a := act(statuses[random.Intn(len(statuses))], []string{"manual", "connector"}[random.Intn(2)])
			a["id"], a["runId"] = "act_1", sdktest.RunID
			actions = append(actions, a)
		}
		measured := map[string]any{"status": []string{"not_started", "open", "closed"}[random.Intn(3)], "opensAt": "2026-01-01T01:00:00Z", "closesAt": "2026-01-02T01:00:00Z"}
		run = map[string]any{"run": map[string]any{"id": sdktest.RunID, "status": runs[random.Intn(len(runs))], "goal": "Get users", "reviewUrl": sdktest.ReviewURL, "measurement": measured}}
		list = map[string]any{"actions": actions}
		r := h.Call("mkt_continue_launch_loop", map[string]any{"runId": sdktest.RunID})
		var out answer
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
		if tool := out.NextAction.Tool; tool != "" && !slices.Contains(harmless, tool) {
			t.Fatalf("the next action is %s", tool)
		}
		if len(r.Proposals()) != 0 {
			t.Fatal("the loop staged something")
		}
	}
}
