package marketing

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/operators/marketing/intent"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

type diagnoseInput struct {
	Goal        string          `json:"goal"`
	RunID       string          `json:"runId"`
	ProjectID   string          `json:"projectId"`
	URL         string          `json:"url"`
	RepoContext json.RawMessage `json:"repoContext"`
	BrandDNAID  string          `json:"brandDnaId"`
	Constraints struct {
		Budget   *float64 `json:"budget"`
		Deadline string   `json:"deadline"`
		Channels []string `json:"channels"`
		DoNot    []string `json:"doNot"`
	} `json:"constraints"`
	Email  mailOrder `json:"email"`
	DryRun bool      `json:"dryRun"`
}

// need is one thing the work rests on and where it stands.
type need struct {
	Need     string `json:"need"`
	Source   string `json:"source"`
	Status   string `json:"status"` // have, fetched, missing
	HowToGet string `json:"howToGet"`
}

type riskView struct {
	GenericityRisk float64 `json:"genericityRisk"`
	Factual        string  `json:"factual"`
	Policy         string  `json:"policy"`
	Spend          string  `json:"spend"`
	Privacy        string  `json:"privacy"`
	Reversible     bool    `json:"reversible"`
	Overall        string  `json:"overall"`
}

type diagnoseAnswer struct {
	*draft.Envelope
	Intent         intent.Result `json:"intent"`
	EvidencePlan   []need        `json:"evidencePlan"`
	SkillsRun      []skillRun    `json:"skillsRun"`
	Actions        []actionView  `json:"actions"`
	Risk           riskView      `json:"risk"`
	Questions      []draft.Gap   `json:"questions"`
	ReviewURL      string        `json:"reviewUrl"`
	AgentProofLine string        `json:"agentProofLine"`
	UserMessage    string        `json:"userMessage"`
	NextToolCalls  []nextCall    `json:"nextToolCalls"`
}

// notHere are intents for which no skill of this installation works yet, with what can be done instead.
var notHere = map[string]string{
	intent.WeeklyReport: "Weekly reports are not among the skills of this installation. Connect Search Console or Analytics and read their snapshots meanwhile.",
	intent.Anomaly:      "Explaining drops and spikes is not among the skills of this installation. Give both numbers to mkt_continue_launch_loop for a plain test of two counts.",
}

// diagnose answers any marketing goal: it finds out what is asked, gathers evidence, lets the fitting skills work, and
// stages what a person may approve.
func diagnose(ctx context.Context, c *sdk.Call) (any, error) {
	var in diagnoseInput
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	if in.URL == "" {
		in.URL = addressIn(in.Goal)
	}
	what := intent.Of(in.Goal, len(in.RepoContext) > 0)
	if err := c.Host.UpdateRun(ctx, sdk.RunUpdate{Intent: what.Top[0].Name, Confidence: what.Top[0].Probability, Phase: "gathering", Goal: draft.Clip(in.Goal, 4000)}); err != nil {
		return nil, err
	}
	d := &diagnosis{c: c, in: in, what: what}
	return d.run(ctx)
}

type diagnosis struct {
	c    *sdk.Call
	in   diagnoseInput
	what intent.Result
	k    *campaign
	plan []need
	more []string // what to tell the user beyond the counters
}

// addressIn is the web address that a goal names, if any.
func addressIn(goal string) string {
	for _, found := range text.Addresses(goal) {
		if strings.HasPrefix(found.Text, "http") {
			return found.Text
		}
	}
	return ""
}

// wanted are the intents to serve: the first, and the second when the goal asks for two things.
func (d *diagnosis) wanted() []string {
	if d.what.Abstained {
		return []string{intent.Brand} // useful whatever was meant; the rest is asked
	}
	out := []string{d.what.Top[0].Name}
	if second := d.what.Second(); second != "" && second != intent.OutOfScope {
		out = append(out, second)
	}
	return out
}

func (d *diagnosis) run(ctx context.Context) (any, error) {
	wanted := d.wanted()
	if wanted[0] == intent.OutOfScope && !d.what.Abstained {
		return d.handOver(), nil
	}
	if wanted[0] == intent.Continue {
		return d.resume(), nil
	}
	in := launchInput{URL: d.in.URL, RepoContext: d.in.RepoContext, BrandDNAID: d.in.BrandDNAID, Channels: d.channels(wanted), Email: d.in.Email, DryRun: d.in.DryRun, LaunchGoal: "users"}
	k, err := startCampaign(ctx, d.c, in)
	if err != nil { // nothing to read: a remembered brand may still carry the work
		return d.fromMemory(ctx, in, wanted, err)
	}
	d.k = k
	if err := d.c.Host.UpdateRun(ctx, sdk.RunUpdate{Intent: d.what.Top[0].Name, Confidence: d.what.Top[0].Probability}); err != nil {
		return nil, err
	}
	return d.work(ctx, wanted)
}

func (d *diagnosis) fromMemory(ctx context.Context, in launchInput, wanted []string, cause error) (any, error) {
	raw, repo, err := in.context()
	if err != nil {
		return nil, cause
	}
	d.k = &campaign{c: d.c, in: in, raw: raw, repo: repo, actions: []actionView{}, blocked: []blockedChannel{}, skills: []skillRun{}}
	d.k.env = draft.NewEnvelope(d.c, version, draft.Deterministic, map[string]any{"goal": d.in.Goal})
	return d.work(ctx, wanted)
}

// work gathers and drafts. No evidence at all is an answer too: the questions that would help.
func (d *diagnosis) work(ctx context.Context, wanted []string) (any, error) {
	k := d.k
	if err := k.gatherKnown(ctx); err != nil {
		d.planEvidence(false)
		k.env.Gap("product", "What is the product, and where can it be seen?", "Nothing is known of it yet.")
		k.env.Gap("whatChanged", "What changed, in one sentence?", "News needs the news.")
		k.env.Warn("%s", messageOf(err))
		return d.answer(), nil
	}
	d.planEvidence(true)
	if err := d.c.Host.UpdateRun(ctx, sdk.RunUpdate{Phase: "drafting"}); err != nil {
		return nil, err
	}
	for _, name := range wanted {
		if note, missing := notHere[name]; missing {
			d.more = append(d.more, note)
			k.skills = append(k.skills, skillRun{Skill: name, Why: "asked for", Error: "not_installed"})
		}
	}
	k.choose()
	if slices.Contains(wanted, intent.Launch) {
		if err := k.draftTexts(ctx); err != nil {
			return nil, err
		}
	}
	k.draftPosts(ctx)
	k.draftMails(ctx)
	if slices.Contains(wanted, intent.Landing) {
		d.landing(ctx)
	}
	if slices.Contains(wanted, intent.Ads) {
		d.ads(ctx)
	}
	if err := k.stage(ctx); err != nil {
		return nil, err
	}
	k.askForMissing()
	if err := d.c.Host.UpdateRun(ctx, sdk.RunUpdate{Skills: k.skillNames(), Next: &sdk.NextCall{Tool: toolContinue, Arguments: map[string]any{"runId": d.c.RunID}, Reason: "A person decides first."}}); err != nil {
		return nil, err
	}
	return d.answer(), nil
}

// channels are those that the wanted intents need; a launch chooses for itself.
func (d *diagnosis) channels(wanted []string) []string {
	if len(d.in.Constraints.Channels) > 0 {
		return d.in.Constraints.Channels
	}
	var out []string
	for _, name := range wanted {
		switch name {
		case intent.Launch:
			return nil
		case intent.Social:
			out = append(out, platformsIn(d.in.Goal)...)
		case intent.Email:
			out = append(out, chEmail)
		}
	}
	if len(out) == 0 {
		out = []string{"none"} // the intent needs no channel
	}
	return out
}

var platformWords = []struct {
	id      string
	pattern *regexp.Regexp
}{
	{chX, regexp.MustCompile(`(?i)\b(?:tweets?|twitter|x|thread)\b`)},
	{chLinkedIn, regexp.MustCompile(`(?i)\blinked-?in\b`)},
	{chInstagram, regexp.MustCompile(`(?i)\b(?:instagram|insta|reels?)\b`)},
}

// platformsIn are the platforms that a goal names; all three when it names none.
func platformsIn(goal string) []string {
	var out []string
	for _, p := range platformWords {
		if p.pattern.MatchString(goal) {
			out = append(out, p.id)
		}
	}
	if len(out) == 0 {
		return []string{chX, chLinkedIn, chInstagram}
	}
	return out
}

// gatherKnown is gather for a goal that may bring neither address nor repository: the remembered brand then has to do.
func (k *campaign) gatherKnown(ctx context.Context) error {
	if k.repo.Empty() && k.in.URL == "" && k.in.BrandDNAID == "" {
		return k.gatherFromMemory(ctx)
	}
	return k.gather(ctx)
}

// planEvidence says what the work needs, what is there and how to get the rest.
func (d *diagnosis) planEvidence(read bool) {
	k := d.k
	state := func(ok bool, source, have string) string {
		if ok {
			return have
		}
		return "missing"
	}
	d.plan = []need{
		{"what the brand says of itself", "its pages", state(read && (k.site != nil && k.site.status == 200 || k.desk != nil && k.desk.Record != nil), "url", "fetched"), "Give url, or brandDnaId."},
		{"what changed", "the repository", state(k.repo.WhatChanged != "" || len(k.repo.Commits) > 0, "repo", "have"), "Run repo-context.mjs and hand its output over in repoContext."},
		{"what the product does", "README", state(k.repo.Readme.Excerpt != "" || read && k.desk != nil && k.desk.Pool.Has(draft.Capability), "repo", "have"), "Give the README in repoContext."},
		{"a measured result", "pages or README", state(read && k.desk != nil && k.desk.Pool.Has(draft.Proof), "page", "have"), "State one result with its number."},
	}
}

func (d *diagnosis) answer() diagnoseAnswer {
	k := d.k
	all, supported := 0, 0
	if k.desk != nil {
		c := k.grounding().Coverage
		all, supported = c.Claims, c.Supported
	}
	noun := draft.Plural(countDrafts(k.env.Assets), "draft")
	k.env.Finish(d.c, noun)
	out := diagnoseAnswer{
		Envelope: k.env, Intent: d.what, EvidencePlan: d.plan, SkillsRun: k.skills, Actions: k.actions, Risk: d.risk(), Questions: k.env.Gaps[:min(3, len(k.env.Gaps))],
		ReviewURL: d.c.ReviewURL, NextToolCalls: []nextCall{
			{toolGetRun, map[string]any{"runId": d.c.RunID}, "Read the run and its drafts.", "now", true},
			{toolContinue, map[string]any{"runId": d.c.RunID}, "Learn the next step once a person has decided.", "after_human_approval", true},
		},
	}
	if d.what.Abstained {
		k.env.Gap("goal", fmt.Sprintf("Do you want %s or %s?", wish(d.what.Top[0].Name), wish(d.what.Top[1].Name)), "The goal can be read both ways.")
		out.Questions = append([]draft.Gap{k.env.Gaps[len(k.env.Gaps)-1]}, out.Questions[:min(2, len(out.Questions))]...)
	}
	if k.desk != nil {
		out.AgentProofLine = k.proofLine(coverage{Claims: all, Supported: supported})
	} else {
		out.AgentProofLine = "Built from nothing yet: no evidence was found; nothing published."
	}
	message := fmt.Sprintf("I prepared %s for this goal. %d of %d statements trace to %s. Nothing has been published; %s waiting for your decision and %s open.", noun, supported, all, draft.Plural(len(k.env.Evidence), "piece")+" of evidence", draft.AreWaiting(len(k.actions)), draft.Plural(len(out.Questions), "question"))
	message = strings.Join(append([]string{message}, d.more...), " ")
	if d.c.ReviewURL != "" {
		message = text.CutGraphemes(message, 560-text.Graphemes(d.c.ReviewURL)) + " Please review here: " + d.c.ReviewURL
	}
	out.UserMessage = text.CutGraphemes(message, 600)
	k.env.AgentGuide = draft.Guide(d.c, out.UserMessage)
	return out
}

// wish puts an intent into words for a question.
func wish(name string) string {
	return map[string]string{
		intent.Brand: "a profile of the brand", intent.Social: "social posts", intent.Ads: "ads", intent.Landing: "landing page copy", intent.Email: "e-mails",
		intent.WeeklyReport: "a report of the week", intent.Anomaly: "an explanation of a drop or spike", intent.Launch: "a launch", intent.Continue: "the next step of a launch",
		intent.Advice: "advice", intent.OutOfScope: "something outside marketing",
	}[name]
}

func (d *diagnosis) risk() riskView {
	k := d.k
	r := riskView{GenericityRisk: k.worstRisk().Score, Factual: "low", Policy: "low", Spend: "none", Privacy: "low", Reversible: true, Overall: "low"}
	if all, supported := k.env.Claims(); all > supported {
		r.Factual = "medium"
	}
	if slices.ContainsFunc(k.env.Checks, func(c sdk.Check) bool { return c.Severity == draft.Block }) {
		r.Policy = "medium"
	}
	for _, a := range k.actions {
		if a.Reversibility == "irreversible" {
			r.Reversible = false
		}
		if a.Tool == toolMail {
			r.Privacy = "medium"
		}
	}
	if r.Factual == "medium" || r.Policy == "medium" || r.Privacy == "medium" {
		r.Overall = "medium"
	}
	return r
}
