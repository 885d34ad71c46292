package branddna

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

var (
	audiencePattern = regexp.MustCompile(`(?i)(?:^|[,;:.] |\b(?:built|made|designed|written|meant|perfect|ideal) )for ((?:[^\s.;:!?(]+ ?){1,14})`)
	helpsPattern    = regexp.MustCompile(`(?i)\bhelps ((?:[\p{L}-]+ ){1,3})(?:to )?[\p{L}]+`)
	outcomePattern  = regexp.MustCompile(`(?i)\b(?:so (?:that )?you can|so (?:that )?(?:your|the) \w+ can|in order to) ([^.;]+)`)
	slugPattern     = regexp.MustCompile(`(?i)/(?:for|solutions|use-cases)[-/]([a-z-]{3,40})/?$`)
	notAudience     = regexp.MustCompile(`(?i)^(?:example|instance|free|the|a|an|each|every|all|more|now|this|that|it|you|your|us|months?|years?|days?|\d)\b`)
	singleAudience  = regexp.MustCompile(`(?i)\b(?:\p{L}*(?:ers|ors|ists|ians|ants|ents|ees|teams?|people|owners|households|groups|companies|startups|agencies|choirs|bakeries|schools|institutes|ngos|nonprofits|freelancers|businesses|users|parents|students|families|shops|clinics|studios|makers|wholesalers|organi[sz]ations))\b`)
)

// segments finds the people the brand itself names.
func segments(facts []draft.Fact, pages []*page, hints hints, hintID string) []brand.Segment {
	out := []brand.Segment{}
	add := func(who string, score float64, ids ...string) {
		who = strings.TrimRight(strings.TrimSpace(who), ",. ")
		if who == "" || notAudience.MatchString(who) || text.WordCount(who) > 16 {
			return
		}
		for i := range out {
			if text.StemOverlap(out[i].Who, who) >= 0.5 {
				out[i].Score = max(out[i].Score, score)
				out[i].EvidenceIDs = appendNew(out[i].EvidenceIDs, ids...)
				return
			}
		}
		out = append(out, brand.Segment{Who: who, Jobs: []string{}, Pains: []string{}, Outcomes: []string{}, Score: score, EvidenceIDs: appendNew([]string{}, ids...)})
	}
	if hints.Audience != "" {
		add(hints.Audience, 1, hintID)
	}
	for _, fact := range facts {
		if fact.Role == draft.Change {
			continue
		}
		for _, m := range audiencePattern.FindAllStringSubmatch(fact.Text, -1) {
			if singleAudience.MatchString(m[1]) {
				score := 0.6
				if fact.Role == draft.Audience {
					score = 0.9
				}
				add(m[1], score, fact.ID)
			}
		}
		if m := helpsPattern.FindStringSubmatch(fact.Text); m != nil && singleAudience.MatchString(m[1]) {
			add(m[1], 0.7, fact.ID)
		}
	}
	for _, p := range pages {
		for _, l := range p.links {
			if m := slugPattern.FindStringSubmatch(l.href); m != nil && singleAudience.MatchString(strings.ReplaceAll(m[1], "-", " ")) {
				add(strings.ReplaceAll(m[1], "-", " "), 0.5)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b brand.Segment) int { return cmp.Compare(b.Score, a.Score) })
	out = out[:min(4, len(out))]
	if len(out) > 0 {
		fill(&out[0], facts)
	}
	return out
}

// fill gives the first segment what the brand says of problems and outcomes: a page that names several audiences rarely
// says which of them has which problem.
func fill(s *brand.Segment, facts []draft.Fact) {
	for _, fact := range facts {
		switch {
		case fact.Role == draft.Problem && len(s.Pains) < 3:
			s.Pains = append(s.Pains, fact.Text)
			s.EvidenceIDs = appendNew(s.EvidenceIDs, fact.ID)
		case fact.Role == draft.Capability && len(s.Jobs) < 3:
			s.Jobs = append(s.Jobs, draft.FirstSentence(fact.Text))
		}
		if m := outcomePattern.FindStringSubmatch(fact.Text); m != nil && len(s.Outcomes) < 3 {
			s.Outcomes = append(s.Outcomes, strings.TrimSpace(m[1]))
			s.EvidenceIDs = appendNew(s.EvidenceIDs, fact.ID)
		}
	}
}

func appendNew(list []string, ids ...string) []string {
	for _, id := range ids {
		if id != "" && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

const properName = `([A-Z][\p{L}\d.]*(?: [A-Z][\p{L}\d.]*){0,2})`

var (
	competitorPattern  = regexp.MustCompile(`(?:(?i:alternatives? to|switch(?:ing)? (?:over )?from|migrat(?:e|ing) from|moving from|replacement for|replaces|unlike|instead of|compared (?:to|with)|vs\.?|versus) |(?i:imports? )(?:[\p{Ll}]+ ){1,3}(?i:from ))` + properName)
	integrationPattern = regexp.MustCompile(`(?i:works with|integrat(?:es|ions?) with|connects? (?:to|with)|plugs into|syncs with|opens in|exports? to|supports) ` + properName + `(?:(?:,| and| or)(?: in| to| with)? ` + properName + `)?(?:,? (?:and|or)(?: in| to| with)? ` + properName + `)?`)
	versusSlug         = regexp.MustCompile(`/(?:vs|compare|alternatives?)[-/]([a-z0-9-]{2,40})/?$`)
)

// competitors lists the products that the brand names as such. Nothing is guessed.
func competitors(facts []draft.Fact, pages []*page, name string, hinted []string, hintID string) []brand.Competitor {
	out := []brand.Competitor{}
	add := func(who string, ids ...string) {
		who = strings.TrimRight(who, ".")
		if who == "" || strings.EqualFold(who, name) || text.IsStopWord(who) {
			return
		}
		for i := range out {
			if strings.EqualFold(out[i].Name, who) {
				out[i].EvidenceIDs = appendNew(out[i].EvidenceIDs, ids...)
				return
			}
		}
		out = append(out, brand.Competitor{Name: who, Relation: "stated", EvidenceIDs: appendNew([]string{}, ids...)})
	}
	for _, who := range hinted {
		add(text.OneLine(who, 80), hintID)
	}
	for _, fact := range facts {
		for _, m := range competitorPattern.FindAllStringSubmatch(fact.Text, -1) {
			add(m[1], fact.ID)
		}
	}
	for _, p := range pages {
		for _, l := range p.links {
			if m := versusSlug.FindStringSubmatch(strings.ToLower(l.href)); m != nil {
				add(strings.TrimPrefix(strings.ReplaceAll(m[1], "-", " "), strings.ToLower(name)+" vs "))
			}
		}
	}
	return out
}

func integrations(facts []draft.Fact, rivals []brand.Competitor) []string {
	out := []string{}
	for _, fact := range facts {
		for _, m := range integrationPattern.FindAllStringSubmatch(fact.Text, -1) {
			for _, who := range m[1:] {
				if who != "" && !slices.Contains(out, who) && !slices.ContainsFunc(rivals, func(c brand.Competitor) bool { return c.Name == who }) {
					out = append(out, strings.TrimRight(who, "."))
				}
			}
		}
	}
	return out
}

// pillars groups what the brand writes about under its own headings, and keeps those that two items speak of.
func pillars(items []ground.Evidence, facts []draft.Fact, name string) []brand.Pillar {
	var blocks []string
	for _, item := range items {
		if usableForPillar(item) {
			blocks = append(blocks, item.Text())
		}
	}
	phrases := text.Keyphrases(blocks, 25)
	type group struct {
		brand.Pillar
		score float64
	}
	var groups []group
	add := func(title string, summary string) {
		g := group{Pillar: brand.Pillar{Name: title, Keyphrases: []string{}, Summary: summary, EvidenceIDs: []string{}}}
		whole := " " + strings.Join(text.Stems(title+" "+summary), " ") + " "
		for _, phrase := range phrases {
			if strings.Contains(whole, " "+phrase.Stem+" ") && !strings.EqualFold(phrase.Text, name) {
				g.Keyphrases = append(g.Keyphrases, phrase.Text)
				g.score += phrase.Score
			}
		}
		for _, item := range items {
			if usableForPillar(item) && (item.Quote == title || item.Fact == title || text.StemOverlap(item.Quote, title+" "+summary) >= 0.3) {
				g.EvidenceIDs = appendNew(g.EvidenceIDs, item.ID)
			}
		}
		if len(g.EvidenceIDs) >= 2 && len(g.Keyphrases) > 0 {
			groups = append(groups, g)
		}
	}
	seen := map[string]bool{}
	for _, fact := range facts {
		if fact.Role == draft.Answer || fact.Heading == "" || seen[fact.Heading] || strings.HasSuffix(fact.Heading, "?") || plainHeading(fact.Heading) {
			continue
		}
		seen[fact.Heading] = true
		add(fact.Heading, fact.Text)
	}
	if len(groups) == 0 {
		for _, fact := range facts {
			if fact.Role == draft.Capability && len(groups) < 5 {
				add(strings.TrimRight(draft.FirstSentence(fact.Text), "."), fact.Text)
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.score, a.score) })
	out := []brand.Pillar{}
	for _, g := range groups[:min(5, len(groups))] {
		g.Keyphrases = g.Keyphrases[:min(5, len(g.Keyphrases))]
		out = append(out, g.Pillar)
	}
	return out
}

func usableForPillar(item ground.Evidence) bool {
	return (item.Kind == ground.PageText || item.Kind == ground.RepoReadme) && !text.Instruction(item.Text())
}

var plainHeadings = regexp.MustCompile(`(?i)^(?:features?|pricing|faq|questions|limits?|results?|about|overview|introduction|install(?:ation)?|usage|getting started|quick ?start|license|contributing|contact|more|why .{0,20}|how it works|documentation|docs)$`)

func plainHeading(heading string) bool { return plainHeadings.MatchString(strings.TrimSpace(heading)) }

var pricePattern = regexp.MustCompile(`(?i)([$€£]\s?\d[\d,.]*|\d[\d,.]* ?(?:usd|eur|gbp|dollars|euros))\s*(?:/|per|a|an|each|every)?\s*(month|year|seat|user|mo|yr|[a-z]+)?`)

func prices(facts []draft.Fact) []brand.Price {
	out := []brand.Price{}
	for _, fact := range facts {
		if fact.Role != draft.Price {
			continue
		}
		m := pricePattern.FindStringSubmatch(fact.Text)
		if m == nil {
			continue
		}
		plan := fact.Heading
		if before, _, ok := strings.Cut(fact.Text, ":"); ok && text.WordCount(before) <= 3 {
			plan = before
		}
		out = append(out, brand.Price{Plan: plan, Price: strings.TrimSpace(m[1]), Period: strings.ToLower(m[2]), EvidenceIDs: []string{fact.ID}})
	}
	return out
}

func proofPoints(facts []draft.Fact) []brand.ProofPoint {
	out := []brand.ProofPoint{}
	for _, fact := range facts {
		if fact.Role == draft.Proof && len(out) < 8 {
			out = append(out, brand.ProofPoint{Text: fact.Text, Kind: "result", EvidenceIDs: []string{fact.ID}})
		}
	}
	return out
}

// ctas are the buttons of the pages, and plain links whose label asks to begin.
func ctas(pages []*page) []brand.CTA {
	out := []brand.CTA{}
	for _, p := range pages {
		for _, l := range p.links {
			words := text.WordCount(l.text)
			href := p.absolute(l.href)
			if words == 0 || words > 6 || href == "" || l.chrome && !l.button || text.Instruction(l.text) || !l.button && !beginPattern.MatchString(l.text) {
				continue
			}
			if !slices.ContainsFunc(out, func(c brand.CTA) bool { return c.Href == href }) && len(out) < 8 {
				out = append(out, brand.CTA{Text: l.text, Href: href})
			}
		}
	}
	return out
}

var beginPattern = regexp.MustCompile(`(?i)^(?:start|try|sign up|get started|create|book|install|download|open|connect|join|buy|order|request|plan|upload|read the (?:docs|quick))`)
