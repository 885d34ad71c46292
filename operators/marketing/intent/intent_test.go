package intent

import (
	"testing"
)

// Goals that are not among the phrases the model was trained on.
var heldOut = []struct{ goal, want string }{
	{"Please work out from our web pages how we talk and who we talk to", Brand},
	{"Derive the voice of https://ledgerline.example/ and its audience", Brand},
	{"what is the tone of our site", Brand},
	{"Can you write two LinkedIn posts about the VAT export?", Social},
	{"tweet about our new retry logic", Social},
	{"Instagram captions for our sourdough photos", Social},
	{"Draft Google search ads for freelancers", Ads},
	{"new facebook ad headlines, please", Ads},
	{"Rewrite our homepage hero so people get it", Landing},
	{"FAQ and features text for the product website", Landing},
	{"copy for the signup landing page", Landing},
	{"welcome emails for people who sign up", Email},
	{"a newsletter that tells customers about the new export", Email},
	{"Write three onboarding mails", Email},
	{"How did our metrics change this week?", WeeklyReport},
	{"weekly numbers and next actions, please", WeeklyReport},
	{"Sign-ups fell 31% since Tuesday, what happened?", Anomaly},
	{"why did conversions drop after the deploy", Anomaly},
	{"I shipped a new feature today and want users", Launch},
	{"Launch our library on Hacker News and Product Hunt", Launch},
	{"we just deployed the app, find customers", Launch},
	{"Get my first users for the CLI I built", Launch},
	{"what is the next step of the launch run_01K5ABCDEFGH", Continue},
	{"I have approved everything, continue the launch", Continue},
	{"Which marketing channel suits us best with a tiny budget?", Advice},
	{"how should we price the studio plan", Advice},
	{"When will we run out of cash?", OutOfScope},
	{"triage the open support tickets", OutOfScope},
	{"write unit tests for the parser", OutOfScope},
	{"Which deals will close in March?", OutOfScope},
}

func TestHeldOutGoals(t *testing.T) {
	right := 0
	for _, c := range heldOut {
		got := Of(c.goal, false)
		if got.Top[0].Name == c.want {
			right++
		} else {
			t.Logf("%q: %v, want %s (%v)", c.goal, got.Top, c.want, got.Why)
		}
	}
	t.Logf("%d of %d", right, len(heldOut))
	if float64(right) < 0.85*float64(len(heldOut)) {
		t.Errorf("%d of %d goals are understood, want 85 %%", right, len(heldOut))
	}
}

func TestAbstainsOnNothing(t *testing.T) {
	for _, goal := range []string{"hello", "please help", "asdf qwer"} {
		if got := Of(goal, false); !got.Abstained {
			t.Errorf("%q is taken for %v", goal, got.Top)
		}
	}
}

func TestOutOfScopeIsNotSentToASkill(t *testing.T) {
	wrong := 0
	goals := []string{"what will our burn rate be", "answer the angry customer in the inbox", "fix the failing build", "reschedule my meeting", "how tall is the eiffel tower", "reconcile stripe payouts", "write a sales proposal", "rotate the database password", "which invoices are overdue", "draft the incident report"}
	for _, goal := range goals {
		if got := Of(goal, false); got.Top[0].Name != OutOfScope && got.Top[0].Name != Advice && !got.Abstained {
			wrong++
			t.Logf("%q: %v", goal, got.Top)
		}
	}
	if wrong > 1 {
		t.Errorf("%d of %d goals of others are sent to a skill", wrong, len(goals))
	}
}

func TestTwoIntents(t *testing.T) {
	got := Of("write a linkedin post and a newsletter email about the export", false)
	if (got.Top[0].Name != Social || got.Top[1].Name != Email) && (got.Top[0].Name != Email || got.Top[1].Name != Social) {
		t.Errorf("%v", got.Top)
	}
}

func TestTheModelIsTheSameEveryTime(t *testing.T) {
	a, b := train(), train()
	for k := range a.weights {
		for j := range a.weights[k] {
			if a.weights[k][j] != b.weights[k][j] {
				t.Fatalf("weight %d of %s differs", j, a.labels[k])
			}
		}
	}
}

func TestPhrasesDoNotRepeat(t *testing.T) {
	seen := map[string]string{}
	for _, label := range Names() {
		list := phrases(label)
		if len(list) < 30 {
			t.Errorf("%s has %d phrases", label, len(list))
		}
		for _, p := range list {
			if other, ok := seen[p]; ok {
				t.Errorf("%q stands under %s and %s", p, other, label)
			}
			seen[p] = label
		}
	}
}
