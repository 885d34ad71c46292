package marketing

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/plugins/connector/smtp"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/plugins/skill/advariants"
	"github.com/sallyport-dev/sallyport/plugins/skill/branddna"
	"github.com/sallyport-dev/sallyport/plugins/skill/emailsequence"
	"github.com/sallyport-dev/sallyport/plugins/skill/landingcopy"
	"github.com/sallyport-dev/sallyport/plugins/skill/socialposts"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
)

func skills() sdktest.Option {
	return sdktest.WithPlugin(advariants.Plugin(), branddna.Plugin(), socialposts.Plugin(), landingcopy.Plugin(), emailsequence.Plugin(), smtp.Plugin(), webhook.Plugin())
}

func connections() sdktest.Option {
	return sdktest.WithConnections(
		sdk.Connection{Provider: "smtp", Status: "connected", Account: "mail.example", Fields: map[string]string{"host": "mail.example", "port": "587", "from": "Ada Fields <ada@sender.example>"},
			Audiences: []sdk.Audience{{Name: "beta", Addresses: []string{"kim@reader.example", "lou@reader.example"}, LawfulBasis: "consent"}}},
		sdk.Connection{Provider: "webhook", Name: "changelog", Status: "connected", Account: "hooks.example", Fields: map[string]string{"url": "https://hooks.example/changelog"}},
		sdk.Connection{Provider: "webhook", Name: "team", Status: "connected", Account: "hooks.example", Fields: map[string]string{"url": "https://hooks.example/team"}},
	)
}

func launchInputFor(b brandtest.Brand) map[string]any {
	return map[string]any{"whatChanged": b.Commits[0], "repoContext": b.RepoContext(), "launchGoal": "users"}
}

func call(t *testing.T, tool string, input any, opts ...sdktest.Option) (launchAnswer, *sdktest.Result) {
	t.Helper()
	r := sdktest.New(t, Plugin(), append([]sdktest.Option{skills()}, opts...)...).Call(tool, input)
	var out launchAnswer
	if r.Failure == nil {
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
	}
	return out, r
}

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestLaunchOfTenBrands(t *testing.T) {
	for _, b := range brandtest.All() {
		t.Run(b.Name, func(t *testing.T) {
			in := launchInputFor(b)
			in["url"] = b.URL()
			out, r := call(t, toolAfter, in, connections(), sdktest.WithPage(b.URL(), b.HTML()))
			if r.Failure != nil {
				t.Fatal(r.Failure)
			}
			c := out.GroundingEvidence.Coverage
			if c.Claims == 0 || float64(c.Supported) < 0.95*float64(c.Claims) {
				t.Errorf("coverage %+v", c)
			}
			if out.GenericityRisk.Score >= 0.6 {
				t.Errorf("genericity %+v", out.GenericityRisk)
			}
			if out.Stage != "awaiting_approval" || len(out.PublishActions) < 5 {
				t.Errorf("%d actions in stage %s; blocked %+v", len(out.PublishActions), out.Stage, out.BlockedChannels)
			}
			mails, hooks, hand := 0, 0, 0
			for _, a := range out.PublishActions {
				switch {
				case a.Tool == toolMail:
					mails++
				case a.Tool == toolWebhook:
					hooks++
				case a.Kind == "manual.task" && a.Executor == "manual":
					hand++
				}
			}
			if mails != 2 || hooks != 2 || hand == 0 {
				t.Errorf("%d mails, %d webhooks, %d by hand; want 2, 2 and some", mails, hooks, hand)
			}
			if !strings.Contains(out.AgentProofLine, "nothing published") || !regexp.MustCompile(`^Built from .*\d+ of \d+ claims traced`).MatchString(out.AgentProofLine) {
				t.Errorf("proof line %q", out.AgentProofLine)
			}
			if out.LaunchPack.Product.Name != b.Name || out.LaunchPack.Product.OneLiner == "" || len(out.LaunchPack.Channels) < 4 || len(out.LaunchPack.WhatChanged.Items) == 0 {
				t.Errorf("pack %+v", out.LaunchPack.Product)
			}
			lint(t, r.Structured)
		})
	}
}

var (
	shareIntent = regexp.MustCompile(`(?i)/intent/(?:tweet|post)|/sharer?(?:\.php|/)|shareArticle|submitlink|api\.whatsapp\.com/send|share-offsite|/submit\?`)
	bearer      = regexp.MustCompile(`(?i)bearer\s+[a-z0-9._~+/-]{16,}|\bsk-[a-z0-9]{16,}|ghp_[a-z0-9]{20,}|xox[abprs]-[a-z0-9-]{10,}|AKIA[0-9A-Z]{16}`)
)

// lint checks what no output may hold before approval.
func lint(t *testing.T, raw json.RawMessage) {
	t.Helper()
	s := string(raw)
	if shareIntent.MatchString(s) {
		t.Errorf("a prefilled share link: %s", shareIntent.FindString(s))
	}
	if bearer.MatchString(s) {
		t.Errorf("something like a token: %s", bearer.FindString(s))
	}
	for _, address := range []string{"kim@reader.example", "lou@reader.example", "hooks.example"} {
		if strings.Contains(s, address) {
			t.Errorf("the output names %s", address)
		}
	}
	var out struct {
		UserMessage   string     `json:"userMessage"`
		NextToolCalls []nextCall `json:"nextToolCalls"`
		AgentGuide    struct {
			UserMessage string
			MustWait    bool
			AllowedNow  []string
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if n := text.Graphemes(out.UserMessage); n == 0 || n > 600 || out.AgentGuide.UserMessage != out.UserMessage {
		t.Errorf("userMessage of %d characters: %q", n, out.UserMessage)
	}
	if len(out.NextToolCalls) == 0 {
		t.Error("no next call")
	}
	for _, n := range out.NextToolCalls {
		if strings.Contains(n.Tool, "approve") || !n.ReadOnly {
			t.Errorf("next call %+v acts", n)
		}
	}
	for _, allowed := range out.AgentGuide.AllowedNow {
		if regexp.MustCompile(`(?i)\b(?:post|send|submit|publish)\b`).MatchString(allowed) {
			t.Errorf("the agent is allowed to %q", allowed)
		}
	}
}

func TestSealedContentIsWhatWasDrafted(t *testing.T) {
	b := brandtest.All()[0]
	in := launchInputFor(b)
	in["email"] = map[string]any{"postalAddress": "1 Mill Lane, Ghent", "unsubscribeUrl": "https://ledgerline.example/bye"}
	out, r := call(t, toolLaunch, in, connections())
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if len(r.Proposals()) != len(out.PublishActions) {
		t.Fatalf("%d staged, %d shown", len(r.Proposals()), len(out.PublishActions))
	}
	for i, p := range r.Proposals() {
		shown := out.PublishActions[i]
		if shown.ID != p.Proposed.ID || shown.Digest != p.Proposed.Digest || !slices.Equal(shown.ContentSHA256, p.Proposed.ContentSHA256) {
			t.Errorf("shown %+v, staged %+v", shown, p.Proposed)
		}
		if p.Tool == toolMail {
			body := string(p.Sealed.Steps[0].Mail.Message)
			for _, part := range []string{"1 Mill Lane, Ghent", "https://ledgerline.example/bye", "CSV export"} {
				if !strings.Contains(strings.ReplaceAll(body, "=\r\n", ""), part) {
					t.Errorf("the mail misses %q:\n%s", part, body)
				}
			}
		}
		if p.Tool == toolByHand && (p.Sealed.Manual == nil || len(p.Sealed.Steps) != 0 || p.Sealed.Manual.Text == "") {
			t.Errorf("work by hand %+v", p.Sealed)
		}
		if p.Tool == toolByHand && shareIntent.MatchString(p.Sealed.Manual.OpenURL) {
			t.Errorf("the page to open is a prefilled link: %s", p.Sealed.Manual.OpenURL)
		}
		if len(p.AssetRefs) == 0 {
			t.Errorf("%s rests on no draft", p.Proposed.Title)
		}
	}
}

func TestWithoutConnectionsEverythingIsByHandOrBlocked(t *testing.T) {
	out, r := call(t, toolLaunch, launchInputFor(brandtest.All()[1]))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for _, a := range out.PublishActions {
		if a.Executor != "manual" {
			t.Errorf("%+v is no work by hand", a)
		}
	}
	if !slices.ContainsFunc(out.BlockedChannels, func(b blockedChannel) bool { return b.Channel == chEmail }) {
		t.Errorf("e-mail is not named as blocked: %+v", out.BlockedChannels)
	}
	if !slices.ContainsFunc(out.PublishActions, func(a actionView) bool { return a.Channel == chHN }) {
		t.Error("a library for developers gets no Show HN")
	}
}

func TestNoBasisNoMail(t *testing.T) {
	in := launchInputFor(brandtest.All()[0])
	in["email"] = map[string]any{"recipients": []string{"kim@reader.example"}}
	out, r := call(t, toolLaunch, in, connections())
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if slices.ContainsFunc(out.PublishActions, func(a actionView) bool { return a.Tool == toolMail }) {
		t.Error("a mail without lawful basis was staged")
	}
	if !strings.Contains(fmt.Sprint(out.BlockedChannels), "lawful basis") {
		t.Errorf("blocked %+v", out.BlockedChannels)
	}
}

func TestMinimalInputStillGivesAPack(t *testing.T) {
	out, r := call(t, toolAfter, map[string]any{"whatChanged": "CSV export of invoices with VAT columns"})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if len(out.Questions) == 0 || len(out.Questions) > 3 {
		t.Errorf("questions %+v", out.Questions)
	}
	lint(t, r.Structured)
	if _, r := call(t, toolAfter, map[string]any{"whatChanged": " "}); r.Failure == nil || r.Failure.Code != "insufficient_evidence" {
		t.Errorf("nothing at all: %+v", r.Failure)
	}
}

func TestDryRunStagesNothing(t *testing.T) {
	in := launchInputFor(brandtest.All()[0])
	in["dryRun"] = true
	out, r := call(t, toolLaunch, in, connections())
	if r.Failure != nil || len(r.Proposals()) != 0 || len(out.PublishActions) != 0 || len(out.LaunchPack.Assets) == 0 {
		t.Errorf("%v: %d staged, %d drafts", r.Failure, len(r.Proposals()), len(out.LaunchPack.Assets))
	}
}

// What speaks to a machine in a README or on a page must change nothing but the evidence.
func TestInjectionChangesOnlyEvidence(t *testing.T) {
	b := brandtest.All()[0]
	plain := func(out launchAnswer) string {
		out.GroundingEvidence.Items, out.GroundingEvidence.BySlot = nil, nil
		out.LaunchPack.Assets, out.PublishActions = nil, nil
		out.UserMessage, out.AgentGuide.UserMessage, out.AgentProofLine = "", "", "" // they count the pieces of evidence
		raw, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	clean, r := call(t, toolAfter, launchInputFor(b), connections())
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for _, attack := range brandtest.Injections() {
		in := launchInputFor(b)
		context := b.RepoContext()
		context["readme"] = map[string]any{"path": "README.md", "excerpt": b.Readme() + "\n\n" + attack + "\n"}
		in["repoContext"] = context
		dirty, r := call(t, toolAfter, in, connections())
		if r.Failure != nil {
			t.Fatal(r.Failure)
		}
		if plain(clean) != plain(dirty) {
			t.Errorf("%q changed the result", attack)
		}
		if len(dirty.PublishActions) != len(clean.PublishActions) {
			t.Errorf("%q changed the actions", attack)
		}
		for i := range dirty.PublishActions {
			if !slices.Equal(dirty.PublishActions[i].ContentSHA256, clean.PublishActions[i].ContentSHA256) {
				t.Errorf("%q changed what would be sent: %s", attack, dirty.PublishActions[i].Title)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[1]
	in := launchInputFor(b)
	in["url"] = b.URL()
	out, r := call(t, toolAfter, in, connections(), sdktest.WithPage(b.URL(), b.HTML()))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%s\n\n%s\n\n", out.AgentProofLine, out.UserMessage)
	for _, c := range out.LaunchPack.Channels {
		fmt.Fprintf(&w, "channel %s %.2f: %s\n", c.ID, c.Fit, c.Why)
	}
	for _, a := range out.PublishActions {
		fmt.Fprintf(&w, "action %s %s: %s\n", a.Tool, a.Channel, a.Title)
	}
	for _, c := range out.PostBuildChecks {
		fmt.Fprintf(&w, "check %s: %s\n", c.ID, c.State)
	}
	for _, a := range out.LaunchPack.Assets {
		if a.Channel == chX || a.Channel == chLinkedIn || a.Channel == chEmail {
			continue // the skills have files of their own
		}
		fmt.Fprintf(&w, "\n== %s\n", a.Title)
		for _, s := range a.Slots {
			fmt.Fprintf(&w, "[%s] %s\n", s.Path, s.Text)
		}
	}
	brandtest.Golden(t, "launch.txt", w.String())
}
