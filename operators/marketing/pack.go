package marketing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

func (k *campaign) pack() launchAnswer {
	g := k.grounding()
	out := launchAnswer{
		RunID: k.c.RunID, ReviewURL: k.c.ReviewURL, PublishActions: k.actions, GroundingEvidence: g, GenericityRisk: k.worstRisk(), AgentProofLine: k.proofLine(g.Coverage),
		LaunchValue: k.value(), OwnerOutcome: k.outcome(), PostBuildChecks: k.buildChecklist(), BlockedChannels: k.blocked,
		Questions: k.env.Gaps[:min(3, len(k.env.Gaps))], SkillsRun: k.skills, Warnings: k.env.Warnings, NextToolCalls: k.nextCalls(),
		LaunchPack: launchPack{
			Version: 1, Product: k.product(), WhatChanged: k.changes(), Positioning: k.positioning(), Channels: k.channels, Assets: k.env.Assets,
			Schedule: k.schedule(), TrackingPlan: k.tracking(), FAQ: k.faq(), Risks: k.risks(), Gaps: k.env.Gaps,
		},
	}
	out.Stage = "awaiting_approval"
	if len(k.actions) == 0 {
		out.Stage = "pack_ready"
	}
	out.UserMessage = k.userMessage(g.Coverage)
	out.AgentGuide = draft.Guide(k.c, out.UserMessage)
	if len(k.actions) > 0 {
		out.AgentGuide.ExpiresAt = k.actions[0].ExpiresAt
	}
	return out
}

func (k *campaign) product() product {
	id := k.desk.DNA().Identity
	t := &teller{Desk: k.desk, used: map[string]bool{}}
	return product{Name: k.desk.Brand, OneLiner: cmp.Or(t.tagline(120), id.Tagline), URL: cmp.Or(k.in.URL, id.URL, k.link), Category: id.Category}
}

func (k *campaign) changes() changes {
	out := changes{Items: []change{}, Summary: text.OneLine(k.repo.WhatChanged, 600)}
	for _, fact := range k.desk.Pool.All(draft.Change) {
		if len(out.Items) < 12 {
			out.Items = append(out.Items, change{draft.Realise(fact), true, []string{fact.ID}})
		}
	}
	if text.Instruction(out.Summary) {
		out.Summary = ""
	}
	if out.Summary == "" && len(out.Items) > 0 {
		out.Summary = out.Items[0].Text
	}
	return out
}

func (k *campaign) positioning() positioning {
	dna := k.desk.DNA()
	out := positioning{Product: k.desk.Brand, EvidenceIDs: []string{}}
	add := func(ids ...string) {
		for _, id := range ids {
			if !slices.Contains(out.EvidenceIDs, id) {
				out.EvidenceIDs = append(out.EvidenceIDs, id)
			}
		}
	}
	if len(dna.Audience) > 0 {
		out.For = dna.Audience[0].Who
		add(dna.Audience[0].EvidenceIDs...)
	}
	first := func(role draft.Role) string {
		if facts := k.desk.Pool.All(role); len(facts) > 0 {
			add(facts[0].ID)
			return draft.Realise(facts[0])
		}
		return ""
	}
	out.Who, out.ThatDoes, out.Because = first(draft.Problem), first(draft.Capability), first(draft.Proof)
	if len(dna.Competitors) > 0 {
		out.Unlike = dna.Competitors[0].Name
		add(dna.Competitors[0].EvidenceIDs...)
	}
	return out
}

func (k *campaign) schedule() []scheduled {
	out := []scheduled{}
	at := "after approval"
	if start, err := time.Parse(time.RFC3339, k.in.LaunchAt); err == nil {
		at = start.UTC().Format(time.RFC3339)
	}
	for _, a := range k.actions {
		out = append(out, scheduled{at, a.Channel, a.ID, a.Executor == "manual"})
	}
	return out
}

func (k *campaign) tracking() tracking {
	out := tracking{UTM: []utm{}, Events: []string{"visit", "signup"}}
	if k.in.LaunchGoal == "revenue" {
		out.Events = append(out.Events, "purchase")
	}
	if k.link == "" {
		return out
	}
	for _, v := range k.channels {
		out.UTM = append(out.UTM, utm{v.ID, draft.WithUTM(k.link, mediumOf(v.ID), v.ID, "launch")})
	}
	return out
}

func mediumOf(channel string) string {
	switch channel {
	case chEmail:
		return "email"
	case chX, chLinkedIn, chInstagram:
		return "social"
	case chChangelog, chWebhook:
		return "changelog"
	}
	return "community"
}

func (k *campaign) faq() []answered {
	out := []answered{}
	for _, fact := range k.desk.Pool.All(draft.Answer) {
		if len(out) < 8 && draft.Supported(k.desk.Index, fact.Question+" "+fact.Text) {
			out = append(out, answered{fact.Question, draft.Period(fact.Text), []string{fact.ID}})
		}
	}
	return out
}

func (k *campaign) risks() []string {
	out := []string{}
	mails, hooks := 0, 0
	for _, a := range k.actions {
		switch a.Tool {
		case toolMail:
			mails++
		case toolWebhook:
			hooks++
		}
	}
	if mails > 0 {
		out = append(out, fmt.Sprintf("%d e-mails cannot be called back once they are sent.", mails))
		if k.in.Email.PostalAddress == "" {
			out = append(out, "The mail shows no postal address, which several countries ask for in commercial mail: edit it in before approving.")
		}
	}
	if hooks > 0 {
		out = append(out, fmt.Sprintf("%d connected addresses receive the announcement; what they do with it is theirs to say.", hooks))
	}
	if int(k.repo.Redactions) > 0 {
		out = append(out, fmt.Sprintf("%d values that look like secrets were removed from the context: replace them.", int(k.repo.Redactions)))
	}
	if k.link == "" {
		out = append(out, "No address is known, so readers cannot try it.")
	}
	return out
}

func (k *campaign) grounding() grounding {
	out := grounding{Items: k.env.Evidence, BySlot: []slotClaims{}, Redactions: int(k.repo.Redactions), CollectedFrom: []string{}}
	for _, e := range k.desk.Items {
		if !slices.Contains(out.CollectedFrom, e.Source) {
			out.CollectedFrom = append(out.CollectedFrom, e.Source)
		}
	}
	for _, a := range k.env.Assets {
		for _, s := range a.Slots {
			out.BySlot = append(out.BySlot, slotClaims{a.ID, s.Path, s.Claims})
			for _, c := range s.Claims {
				switch c.Verdict {
				case ground.Supported:
					out.Coverage.Supported++
				case ground.Partial:
					out.Coverage.Partial++
				case ground.Unsupported, ground.Contradicted:
					out.Coverage.Unsupported++
				default:
					continue
				}
				out.Coverage.Claims++
			}
		}
	}
	return out
}

// worstRisk is the risk of the most generic draft, which decides how the run looks.
func (k *campaign) worstRisk() ground.Risk {
	worst := ground.NoRisk()
	for i, a := range k.env.Assets {
		if i == 0 || a.Risk.Score > worst.Score {
			worst = a.Risk
		}
	}
	return worst
}

// proofLine is made of counters only.
func (k *campaign) proofLine(c coverage) string {
	kinds := map[string]int{}
	for _, e := range k.desk.Items {
		kinds[e.Kind]++
	}
	var from []string
	if n := kinds[ground.RepoCommit]; n > 0 {
		from = append(from, draft.Plural(n, "commit"))
	}
	if n := kinds[ground.RepoRoute]; n > 0 {
		from = append(from, draft.Plural(n, "route"))
	}
	if kinds[ground.RepoReadme] > 0 {
		from = append(from, cmp.Or(text.OneLine(k.repo.Readme.Path, 80), "README.md"))
	}
	if n := kinds[ground.PageText]; n > 0 {
		from = append(from, draft.Plural(n, "page passage"))
	}
	if len(from) == 0 {
		from = append(from, draft.Plural(len(k.desk.Items), "statement"))
	}
	return fmt.Sprintf("Built from %s; %d of %d claims traced; nothing published.", joinAnd(from), c.Supported, c.Claims)
}

func joinAnd(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func (k *campaign) value() launchValue {
	out := launchValue{ForUser: []value{}, Reach: reach{Channels: len(k.channels)}}
	for _, fact := range k.desk.Pool.All(draft.Capability) {
		if fact.Heading == "" || len(out.ForUser) == 3 || slices.ContainsFunc(out.ForUser, func(v value) bool { return v.Outcome == fact.Heading }) {
			continue
		}
		out.ForUser = append(out.ForUser, value{fact.Heading, draft.Realise(fact), []string{fact.ID}})
	}
	return out
}

var goalMetrics = map[string]string{"users": "sign-ups", "revenue": "purchases", "feedback": "replies", "waitlist": "waitlist entries"}

func (k *campaign) outcome() ownerOutcome {
	return ownerOutcome{
		Goal: k.in.LaunchGoal, Metric: goalMetrics[k.in.LaunchGoal], By: "24 hours after the first action succeeded",
		HowMeasured: "Count them for the 24 hours before and after, and hand both numbers to " + toolContinue + " in observed.",
	}
}

func (k *campaign) nextCalls() []nextCall {
	args := map[string]any{"runId": k.c.RunID}
	return []nextCall{
		{toolGetRun, args, "Read the run and its drafts.", "now", true},
		{toolContinue, args, "Learn the single next step once a person has decided.", "after_human_approval", true},
		{toolContinue, args, "Measure and plan the next move.", "after_24h", true},
	}
}

// userMessage says in four sentences what was prepared, what it rests on, what needs the person and where.
func (k *campaign) userMessage(c coverage) string {
	names := []string{}
	for _, a := range k.env.Assets {
		if title := channelTitle(a.Channel); a.Kind != "brand_dna" && !slices.Contains(names, title) {
			names = append(names, title)
		}
	}
	first := fmt.Sprintf("I drafted %s for %s.", draft.Plural(countDrafts(k.env.Assets), "text"), joinAnd(names[:min(6, len(names))]))
	if len(names) == 0 {
		first = "I drafted nothing: the evidence carries no text."
	}
	second := fmt.Sprintf("%d of %d statements trace to %s; those that do not are marked and held back.", c.Supported, c.Claims, draft.Plural(len(k.desk.Items), "piece")+" of evidence")
	if c.Supported == c.Claims {
		second = fmt.Sprintf("All %d statements trace to %s.", c.Claims, draft.Plural(len(k.desk.Items), "piece")+" of evidence")
	}
	third := fmt.Sprintf("Nothing has been published; %s waiting for your decision and %s open.", draft.AreWaiting(len(k.actions)), draft.Plural(min(3, len(k.env.Gaps)), "question"))
	message := strings.Join([]string{first, second, third}, " ")
	if k.c.ReviewURL != "" {
		message += " Please review and decide here: " + k.c.ReviewURL
	}
	return text.CutGraphemes(message, 600)
}

func countDrafts(assets []draft.AssetView) int {
	n := 0
	for _, a := range assets {
		if a.Kind != "brand_dna" {
			n++
		}
	}
	return n
}
