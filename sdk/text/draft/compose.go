package draft

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// Angle is a way to tell a story: the role that opens it and the roles that may follow.
type Angle struct {
	Name string
	Lead Role
	Then []Role
}

// Angles are the ways to tell a story, the plainest first. An angle whose lead has no evidence is not used.
var Angles = []Angle{
	{"whats_new", Change, []Role{Capability, Audience, Proof}},
	{"problem", Problem, []Role{Change, Capability, Audience}},
	{"proof", Proof, []Role{Change, Capability, Audience}},
	{"mechanism", Capability, []Role{Change, Audience, Limit}},
	{"audience", Audience, []Role{Change, Capability, Proof}},
	{"question", Answer, []Role{Change, Capability, Audience}},
	{"honest_limit", Limit, []Role{Capability, Change, Audience}},
	{"comparison", Comparison, []Role{Capability, Change, Audience}},
	{"offer", Price, []Role{Capability, Change, Audience}},
}

// Line is one realised statement with the fact it came from.
type Line struct {
	Role Role
	Text string
	Fact Fact
}

// Realise turns a fact into a sentence for readers.
func Realise(f Fact) string {
	switch f.Role {
	case Change:
		return realiseChange(f)
	case Audience:
		if !audiencePattern.MatchString(f.Text) {
			return "For " + Period(f.Text)
		}
		return Period(f.Text)
	case Price:
		if f.Heading != "" && text.WordCount(f.Heading) <= 3 && !strings.Contains(f.Text, ":") {
			return f.Heading + ": " + Period(f.Text)
		}
		return Period(f.Text)
	case Answer:
		return f.Question + " " + Period(f.Text)
	case Headline:
		return f.Text
	}
	return Period(SecondPerson(Imperative(f.Text)))
}

var newsLabel = regexp.MustCompile(`^(New|Fixed|Changed)(?: in [^:]{1,80})?: `)

// Named puts the brand into the label of the news (“New in Ledgerline: …”) of the first line that has one, unless a line
// names the brand already.
func Named(lines []string, brand string) []string {
	out := slices.Clone(lines)
	if brand == "" || slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, brand) }) {
		return out
	}
	for i, line := range out {
		if newsLabel.MatchString(line) {
			out[i] = newsLabel.ReplaceAllString(line, "${1} in "+strings.ReplaceAll(brand, "$", "$$")+": ")
			break
		}
	}
	return out
}

// Label is the label that a piece of news opens with: New, Fixed or Changed; "" for anything else.
func Label(s string) string {
	if m := newsLabel.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// Unlabelled is a piece of news without its label.
func Unlabelled(s string) string { return Capital(newsLabel.ReplaceAllString(s, "")) }

var pastVerb = regexp.MustCompile(`^(?:[A-Z]?[a-z]+ed|Made|Built|Wrote|Rewrote|Sped|Cut|Gave|Let|Put)\b`)

// sectionHeading are the headings of a changelog that name no subject.
var sectionHeading = regexp.MustCompile(`(?i)^\W*(?:added|changed|fixed|removed|deprecated|security|improved|improvements|features|bug fixes|fixes|performance|unreleased|v?\d[\w.() -]*|changes|what's new)\W*(?:\d{4}.*)?$`)

func realiseChange(f Fact) string {
	if f.Kind == ground.RepoFile {
		if f.Heading != "" && !sectionHeading.MatchString(f.Heading) {
			return strings.TrimRight(f.Heading, ".:") + ": " + Period(Lower(f.Text))
		}
		return Capital(Period(f.Text))
	}
	if f.Kind == ground.RepoCommit {
		return FromCommit(f.Text)
	}
	if kind, _, _ := (source.Commit{Subject: f.Text}).Parts(); kind != "" {
		return FromCommit(f.Text)
	}
	first := FirstSentence(f.Text)
	switch {
	case strings.HasPrefix(strings.ToLower(first), "add"):
		return FromCommit(first) + strings.TrimPrefix(Period(f.Text), Period(first))
	case strings.HasSuffix(first, ".") || pastVerb.MatchString(first) || text.WordCount(first) > 18:
		return Capital(Period(f.Text))
	}
	return "New: " + Period(Lower(f.Text))
}

// Hooks are the openings that a fact allows, best first: short, concrete, spoken to the reader.
func Hooks(f Fact, ix *ground.Index) []string {
	plain := Realise(f)
	candidates := []string{plain, FirstSentence(plain), DropTail(FirstSentence(plain)), NumberFirst(FirstSentence(plain))}
	if f.Role == Problem {
		candidates = append(candidates, AsQuestion(FirstSentence(plain)))
	}
	if f.Role == Answer {
		candidates = []string{f.Question}
	}
	var out []string
	for _, c := range candidates {
		if c = Capital(c); c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		switch sa, sb := hookScore(a, ix), hookScore(b, ix); {
		case sa > sb:
			return -1
		case sa < sb:
			return 1
		}
		return 0
	})
	return out
}

var (
	baitPattern     = regexp.MustCompile(`(?i)\b(?:you won't believe|this one trick|shocking|secret|insane|crazy|must.see|mind.?blowing|game.changer|stop scrolling|nobody tells you|thread)\b`)
	contrastPattern = regexp.MustCompile(`(?i)\b(?:but|instead|not|without|no longer|before)\b|\?$`)
)

func hookScore(s string, ix *ground.Index) float64 {
	score := 0.3 * (1 - ix.CopyRisk(s))
	if len(text.Quantities(s)) > 0 {
		score += 0.2
	}
	if strings.Contains(" "+strings.ToLower(s)+" ", " you") {
		score += 0.2
	}
	if text.WordCount(s) <= 12 {
		score += 0.2
	}
	if contrastPattern.MatchString(s) {
		score += 0.1
	}
	if baitPattern.MatchString(s) {
		score -= 0.5
	}
	return score
}

// Story picks the facts of an angle from the pool: the lead, then one of each following role, at most lines in all. A fact
// of the same evidence item as one already told is passed over, and so is one that the evidence would not support as a
// claim or that accept refuses as a lead. It is false when the lead has none. The caller takes what it uses.
func Story(p *Pool, ix *ground.Index, angle Angle, lines int, accept func(lead Fact) bool) ([]Line, bool) {
	var out []Line
	fits := func(f Fact) bool {
		told := slices.ContainsFunc(out, func(l Line) bool { return l.Fact.ID == f.ID || l.Fact.Like(f) > 0.6 })
		return !told && Supported(ix, Realise(f))
	}
	lead, ok := p.Best(angle.Lead, func(f Fact) bool { return accept(f) && fits(f) })
	if !ok {
		return nil, false
	}
	out = append(out, Line{angle.Lead, Realise(lead), lead})
	for _, role := range angle.Then {
		if len(out) == lines {
			break
		}
		if fact, ok := p.Best(role, fits); ok {
			out = append(out, Line{role, Realise(fact), fact})
		}
	}
	return out, true
}

// Supported tells whether every claim of s is supported and s is no filler.
func Supported(ix *ground.Index, s string) bool {
	for _, claim := range ix.Check(s) {
		if claim.Verdict != ground.NotAClaim && claim.Verdict != ground.Supported {
			return false
		}
	}
	return ix.CopyRisk(s) < ground.MediumBelow
}

// WithUTM adds campaign parameters to an address that has none.
func WithUTM(address, medium, origin, campaign string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return address
	}
	query := u.Query()
	if query.Get("utm_source") != "" {
		return address
	}
	query.Set("utm_source", origin)
	query.Set("utm_medium", medium)
	query.Set("utm_campaign", campaign)
	u.RawQuery = query.Encode()
	return u.String()
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug is s as a short name for addresses.
func Slug(s string, limit int) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
	if len(slug) > limit {
		slug = slug[:limit]
		if cut := strings.LastIndexByte(slug, '-'); cut > limit/2 {
			slug = slug[:cut]
		}
	}
	if slug == "" {
		return "run"
	}
	return strings.Trim(slug, "-")
}
