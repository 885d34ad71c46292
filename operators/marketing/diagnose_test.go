package marketing

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/operators/marketing/intent"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest/records"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

type diagnosed struct {
	Intent        intent.Result     `json:"intent"`
	SkillsRun     []skillRun        `json:"skillsRun"`
	Actions       []actionView      `json:"actions"`
	Assets        []draft.AssetView `json:"assets"`
	Questions     []draft.Gap       `json:"questions"`
	EvidencePlan  []need            `json:"evidencePlan"`
	UserMessage   string            `json:"userMessage"`
	NextToolCalls []nextCall        `json:"nextToolCalls"`
	Scores        draft.Scores      `json:"scores"`
}

func ask(t *testing.T, input map[string]any, opts ...sdktest.Option) (diagnosed, *sdktest.Result) {
	t.Helper()
	r := sdktest.New(t, Plugin(), append([]sdktest.Option{skills()}, opts...)...).Call(toolDiagnose, input)
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var out diagnosed
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	lint(t, r.Structured)
	return out, r
}

func ran(out diagnosed, tool string) bool {
	return slices.ContainsFunc(out.SkillsRun, func(s skillRun) bool { return s.Skill == tool && s.Error == "" })
}

func channelsOf(out diagnosed) []string {
	var list []string
	for _, a := range out.Actions {
		if !slices.Contains(list, a.Channel) {
			list = append(list, a.Channel)
		}
	}
	return list
}

func TestEachGoalGetsItsSkill(t *testing.T) {
	b := brandtest.All()[0]
	cases := []struct {
		goal    string
		intent  string
		skill   string
		channel string
	}{
		{"Find out from our website how we talk and who our audience is", intent.Brand, toolBrand, ""},
		{"Write LinkedIn posts about the CSV export", intent.Social, toolSocial, chLinkedIn},
		{"Write copy for our landing page", intent.Landing, toolLanding, "landing"},
		{"Write Google ads headlines for freelancers", intent.Ads, toolAds, "google_ads"},
		{"Write a launch email to our list about the export", intent.Email, toolEmail, chEmail},
		{"I just shipped this, launch it and get users", intent.Launch, toolSocial, chHN},
	}
	for _, c := range cases {
		t.Run(c.intent, func(t *testing.T) {
			out, _ := ask(t, map[string]any{"goal": c.goal, "url": b.URL(), "repoContext": b.RepoContext()}, connections(), sdktest.WithPage(b.URL(), b.HTML()))
			if out.Intent.Top[0].Name != c.intent {
				t.Errorf("%q is taken for %v", c.goal, out.Intent.Top)
			}
			if !ran(out, c.skill) {
				t.Errorf("%s did not run: %+v", c.skill, out.SkillsRun)
			}
			if c.channel != "" && c.channel != chHN && !slices.Contains(channelsOf(out), c.channel) {
				t.Errorf("nothing was staged for %s: %v", c.channel, channelsOf(out))
			}
			if c.intent == intent.Social && slices.Contains(channelsOf(out), chX) {
				t.Error("a goal that names LinkedIn is served on X")
			}
			if out.Scores.GroundedShare < 0.95 {
				t.Errorf("scores %+v", out.Scores)
			}
		})
	}
}

func TestGoalOutsideMarketingIsHandedOver(t *testing.T) {
	out, r := ask(t, map[string]any{"goal": "When do we run out of cash?"})
	if len(out.Assets) != 0 || len(r.Assets()) != 0 || len(out.Actions) != 0 {
		t.Error("something was drafted for a goal of another operator")
	}
	if !strings.Contains(out.UserMessage, "finance_diagnose") || out.NextToolCalls[0].Tool != toolOperators {
		t.Errorf("%q, next %+v", out.UserMessage, out.NextToolCalls)
	}
}

func TestGoalAboutARunningLaunchNamesTheLoop(t *testing.T) {
	out, _ := ask(t, map[string]any{"goal": "I approved everything, what is next for the launch " + sdktest.RunID})
	if out.NextToolCalls[0].Tool != toolContinue || out.NextToolCalls[0].Arguments["runId"] != sdktest.RunID {
		t.Errorf("next %+v", out.NextToolCalls)
	}
}

func TestWhatIsNotInstalledIsSaid(t *testing.T) {
	b := brandtest.All()[0]
	out, _ := ask(t, map[string]any{"goal": "Why did our sign-ups drop by 30% since Tuesday?", "url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	if !slices.ContainsFunc(out.SkillsRun, func(s skillRun) bool { return s.Error == "not_installed" }) || !strings.Contains(out.UserMessage, "not among the skills") {
		t.Errorf("%+v %q", out.SkillsRun, out.UserMessage)
	}
}

func TestUnclearGoalAsksOneQuestion(t *testing.T) {
	b := brandtest.All()[0]
	out, _ := ask(t, map[string]any{"goal": "please help us", "url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	if !out.Intent.Abstained || len(out.Questions) == 0 || out.Questions[0].Role != "goal" {
		t.Errorf("%+v %+v", out.Intent, out.Questions)
	}
	if !ran(out, toolBrand) || len(out.Actions) != 0 {
		t.Error("an unclear goal gets the brand and no action")
	}
}

func TestNothingKnownGivesQuestions(t *testing.T) {
	out, _ := ask(t, map[string]any{"goal": "Write LinkedIn posts for us"})
	if len(out.Assets) != 0 || len(out.Actions) != 0 || len(out.Questions) < 2 {
		t.Errorf("%d drafts, %d actions, questions %+v", len(out.Assets), len(out.Actions), out.Questions)
	}
}

func TestRememberedBrandIsEnough(t *testing.T) {
	b := brandtest.All()[6]
	record := records.Of(b, "run_01K00000000000000000000777") // read in an earlier run
	out, _ := ask(t, map[string]any{"goal": "Write Instagram posts about the meter"}, sdktest.WithMemory(brand.NewestKey, record), sdktest.WithMemory(brand.Key(record.ID), record))
	if len(out.Assets) == 0 || !slices.Contains(channelsOf(out), chInstagram) {
		t.Errorf("%d drafts for %v; %+v", len(out.Assets), channelsOf(out), out.SkillsRun)
	}
}

func TestOneFailingSkillDoesNotEndTheRun(t *testing.T) {
	b := brandtest.All()[0]
	h := sdktest.New(t, Plugin(), sdktest.WithTool(toolBrand, func(any) any { return errString("broken") }), sdktest.WithTool(toolSocial, func(any) any { return errString("broken") }),
		sdktest.WithTool(toolEmail, func(any) any { return errString("broken") }))
	r := h.Call(toolAfter, launchInputFor(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var out launchAnswer
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if len(out.LaunchPack.Assets) == 0 || len(out.PublishActions) == 0 {
		t.Error("the texts of the operator itself are missing")
	}
	for _, s := range out.SkillsRun {
		if s.Error == "" {
			t.Errorf("%s is reported as fine", s.Skill)
		}
	}
}

type errString string

func (e errString) Error() string { return string(e) }

func TestSameInputSameAnswer(t *testing.T) {
	b := brandtest.All()[3]
	var first json.RawMessage
	for range 2 {
		_, r := ask(t, map[string]any{"goal": "Launch what we just built and get users", "repoContext": b.RepoContext()}, connections())
		if first != nil && string(first) != string(r.Structured) {
			t.Error("two equal calls differ")
		}
		first = r.Structured
	}
}
