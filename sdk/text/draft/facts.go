package draft

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// Role is what a fact can do in a text.
type Role string

// Roles of facts.
const (
	Headline   Role = "headline"   // says what the thing is in a few words
	Problem    Role = "problem"    // what is wrong without it
	Change     Role = "change"     // what is new
	Capability Role = "capability" // what it does
	Proof      Role = "proof"      // a measured result or a named user
	Audience   Role = "audience"   // whom it is for
	Limit      Role = "limit"      // what it does not do
	Comparison Role = "comparison" // against what else
	Price      Role = "price"      // what it costs
	Answer     Role = "answer"     // the answer to a question
	Step       Role = "step"       // something to do, in a list of steps; no copy by itself
)

// Fact is one statement taken from one evidence item, able to stand alone.
type Fact struct {
	Role     Role
	Text     string // a sentence, or for headlines a phrase
	Heading  string // what it stood under
	Question string // for answers
	ID       string // evidence id
	Kind     string // kind of the evidence
	Score    float64

	stems map[string]bool // of Text, for likeness
}

// Like is the share of content words that two facts have in common.
func (f Fact) Like(other Fact) float64 {
	both := 0
	for stem := range f.stems {
		if other.stems[stem] {
			both++
		}
	}
	if both == 0 {
		return 0
	}
	return float64(both) / float64(len(f.stems)+len(other.stems)-both)
}

var (
	problemPattern  = regexp.MustCompile(`(?i)\b(?:nobody|no one|waste[sd]?|los(?:e|es|t)|throw away|thrown away|by hand|manually|in a spreadsheet|the spreadsheet|too (?:long|late|slow|many)|is a guess|struggl\w+|forget|forgotten|just to|only to|but not|never know|cannot hear|painful|tedious|frustrat\w+|because (?:pages|marketing|the|no)|for one (?:broken)?|shows? no|tired of|stop guessing)\b`)
	audiencePattern = regexp.MustCompile(`(?i)^(?:(?:it is |it's )?(?:built|made|designed|written|meant|intended|ideal|perfect) for\b|for (?:\w+[ -]){0,6}(?:who|with|of|under|that|in|and)\b|for \w+|helps? \w+)`)
	limitPattern    = regexp.MustCompile(`(?i)\b(?:does not|doesn't|do not|is not|isn't|cannot|can't|no support for|not (?:yet )?(?:support|work|intended|meant)|only (?:works|runs|supports)|limitations?|will not|won't)\b`)
	resultPattern   = regexp.MustCompile(`(?i)\b(?:from \d[\d.,]* ?\w* to \d|\d[\d.,]* ?(?:%|percent)|fewer|shortened|cut \w+|saved|reduced|instead of \d|accepted|moved \d|closed \d|completes? \d|per second|in a trial|in (?:our|the) (?:pilot|beta|test|trial)|used it for \d|(?:learned|shipped|migrated) .{3,60} in (?:\d|\w+ (?:days|weeks|rehearsals)))`)
	anaphoraPattern = regexp.MustCompile(`^(?:The|It|They|This|These|Those|That|Its|Their|There|He|She|Then|Also|But|And|Or|So|However|Otherwise|Later|Both|Each of them|The same|Others?|Another|Neither|None)\b|^(?:\S+ ){0,5}(?:them|theirs)\b|^(?:\S+ ){0,4}(?:that|this)(?: (?:by|in|for|with|at|on)\b|,)`)
	changelogFile   = regexp.MustCompile(`(?i)changelog`)
)

// Facts cuts evidence into statements and gives each a role and a score. Items that speak to a machine, styles, routes
// and deductions of our own give none.
func Facts(items []ground.Evidence, ix *ground.Index) []Fact {
	var facts []Fact
	for _, item := range items {
		if item.Trust == ground.Inferred || text.Instruction(item.Text()) || silent(item) {
			continue
		}
		switch item.Kind {
		case ground.RepoRoute, ground.CSSToken, ground.Rule:
			continue
		case ground.RepoCommit:
			facts = appendFact(facts, commitFact(item))
		case ground.UserStatement:
			for _, fact := range statementFacts(item) {
				facts = appendFact(facts, fact)
			}
		default:
			for _, fact := range proseFacts(item) {
				facts = appendFact(facts, fact)
			}
		}
	}
	score(facts, ix)
	return facts
}

// Locators of items that ground a text without being a statement of their own.
const (
	CTALocator   = "cta"   // the label of a button
	TopicLocator = "topic" // what the caller wants written about
)

func silent(item ground.Evidence) bool {
	return strings.HasPrefix(item.Locator, CTALocator+"[") || item.Locator == TopicLocator || strings.HasPrefix(item.Locator, "ownerHints.")
}

func appendFact(facts []Fact, f Fact) []Fact {
	if f.Text == "" || text.WordCount(f.Text) < 2 {
		return facts
	}
	if slices.ContainsFunc(facts, func(other Fact) bool { return strings.EqualFold(other.Text, f.Text) && other.Role == f.Role }) {
		return facts
	}
	return append(facts, f)
}

func commitFact(item ground.Evidence) Fact {
	if strings.HasSuffix(item.Locator, source.Internal) || !(source.Commit{Subject: item.Quote}).Visible() {
		return Fact{}
	}
	return Fact{Role: Change, Text: item.Quote, ID: item.ID, Kind: item.Kind}
}

// statementFacts are what the caller typed: the news, whom it is for, or a description.
func statementFacts(item ground.Evidence) []Fact {
	role := Change
	switch item.Locator {
	case "whatChanged":
	case "targetCustomer":
		role = Audience
	default:
		return proseFacts(item)
	}
	return []Fact{{Role: role, Text: item.Quote, ID: item.ID, Kind: item.Kind}}
}

// proseFacts cuts a block of prose into statements. A sentence that only makes sense after the one before it stays with it.
func proseFacts(item ground.Evidence) []Fact {
	heading := strings.TrimSpace(item.Fact)
	if quietHeading.MatchString(heading) {
		return nil
	}
	if strings.HasSuffix(heading, "?") {
		if !FitForCopy(item.Quote) {
			return nil
		}
		return []Fact{{Role: Answer, Question: heading, Text: item.Quote, ID: item.ID, Kind: item.Kind}}
	}
	var out []Fact
	for _, sentence := range text.Sentences(item.Quote) {
		if n := len(out); n > 0 && anaphoraPattern.MatchString(sentence.Text) {
			out[n-1].Text += " " + sentence.Text
			continue
		}
		out = append(out, Fact{Text: sentence.Text, Heading: heading, ID: item.ID, Kind: item.Kind})
	}
	kept := out[:0]
	for _, fact := range out {
		fact.Role = roleOf(fact.Text, item)
		whole := fact.Role == Headline || fact.Role == Price || text.WordCount(fact.Text) >= 4
		if fact.Role == Step || whole && FitForCopy(fact.Text) {
			kept = append(kept, fact)
		}
	}
	return kept
}

// quietHeading stands over text that is about the project, not about the product.
var quietHeading = regexp.MustCompile(`(?i)^(?:licen[cs]e|contribut\w+|development|developing|credits|acknowledg\w+|authors?|maintainers?|table of contents|contents|documentation|docs|further reading|links|support|community|code of conduct|release process|building|build from source|tests?|testing|test it|project layout|layout|architecture|status|roadmap|requirements|prerequisites|privacy policy|terms)\W*$`)

// stepHeading stands over what a reader should do.
var stepHeading = regexp.MustCompile(`(?i)^(?:how it works|usage|use it|run it|run|start|getting started|get started|quick ?start|steps|install(?:ation|ing)?|set ?up|configuration|configure|examples?|commands?|try it(?: out)?|deploy(?:ment)?)\W*$`)

// StepHeading tells whether a heading stands over steps.
func StepHeading(heading string) bool { return stepHeading.MatchString(strings.TrimSpace(heading)) }

var (
	codeLike      = regexp.MustCompile(`https?://(?:localhost|127\.)|localhost:\d|\b(?:npm|go|pip|cargo|docker|make|git|curl|brew|npx|yarn|sudo|cd) (?:install|get|run|add|clone|build|test|up|-)|\b[A-Z]{2,}_[A-Z_]+\b|--\w+|[{}<>]|=>|\$[A-Za-z_{(]|X-[A-Z]\w+-\w+|::|\w\(\)|\b[a-z]+_[a-z_]+\b|\b[a-z]{3,}[A-Z][a-z]+\w*|/[\w-]+\.\w{2,4}\b`)
	pathLike      = regexp.MustCompile(`\b[\w.-]+/[\w./-]+\.\w{1,4}\b`)
	fragmentStart = regexp.MustCompile(`^(?:[a-z]|[^\p{L}\d“"‘'(/$€£#]|(?:At|In|On|With|From|By|Of|To|See|Under|And|Or|Via|Also) (?:/|the [a-z]+ (?:folder|file|directory|section)|[a-z]+/))`)
)

// FitForCopy tells whether a statement can stand in copy as it is: whole, about the product and not about files,
// commands or the text around it.
func FitForCopy(s string) bool {
	switch {
	case strings.HasSuffix(s, ":"), strings.Contains(s, " · "), codeLike.MatchString(s), fragmentStart.MatchString(s), len(pathLike.FindAllString(s, -1)) > 0:
		return false
	case strings.Count(s, "(") != strings.Count(s, ")"), strings.Count(s, "“") != strings.Count(s, "”"), strings.Count(s, `"`)%2 == 1:
		return false
	case wordList(s):
		return false
	}
	return true
}

// wordList tells whether a text only lists names: most of its commas stand between single words.
func wordList(s string) bool {
	parts := strings.Split(s, ",")
	if len(parts) < 6 {
		return false
	}
	single := 0
	for _, part := range parts {
		if text.WordCount(part) <= 2 {
			single++
		}
	}
	return single*3 > len(parts)*2
}

func roleOf(s string, item ground.Evidence) Role {
	ended := strings.ContainsAny(s[len(s)-1:], ".!")
	switch {
	case changelogFile.MatchString(item.Locator):
		return Change
	case StepHeading(item.Fact) && item.Kind != ground.PageText:
		return Step
	case strings.Contains(strings.ToLower(item.Fact), "limit"):
		return Limit
	case audiencePattern.MatchString(s):
		return Audience
	case ground.IsPrice(s):
		return Price
	case resultPattern.MatchString(s) && len(text.Quantities(s)) > 0 && !problemPattern.MatchString(s) && ended:
		return Proof
	case ground.IsComparison(s) && !ended, strings.HasPrefix(s, "An alternative"), strings.HasPrefix(s, "Unlike"):
		return Comparison
	case problemPattern.MatchString(s):
		return Problem
	case limitPattern.MatchString(s) && text.WordCount(s) <= 14:
		return Limit
	case !ended && text.WordCount(s) <= 14:
		return Headline
	}
	return Capability
}

// score ranks facts: how central they are, how specific, how recent and how well they fit their role.
func score(facts []Fact, ix *ground.Index) {
	var all strings.Builder
	for _, fact := range facts {
		all.WriteString(fact.Text)
		all.WriteByte('\n')
	}
	central := text.CosineTo(all.String())
	newest := 1.0
	for i := range facts {
		fact := &facts[i]
		fact.stems = map[string]bool{}
		for _, stem := range text.Stems(fact.Text) {
			fact.stems[stem] = true
		}
		recency, fit := 1-0.9*float64(i)/float64(len(facts)), 0.5 // what stands first in a text says most of it
		if fact.Role == Change {
			recency = newest
			newest *= 0.9
		}
		words := text.WordCount(fact.Text)
		if words >= 5 && words <= 22 {
			fit = 1
		}
		fact.Score = 0.35*min(1, 2*central(fact.Text)) + 0.25*(1-ix.CopyRisk(fact.Text)) + 0.2*recency + 0.2*fit
		if fact.Kind == ground.UserStatement && fact.Role == Change {
			fact.Score += 0.2 // what the caller says of the change outranks what a log says
		}
	}
}

// Pool hands out facts, best first, and remembers which were used.
type Pool struct {
	facts []Fact
	used  map[string]int
	taken []Fact
}

// Focus raises the facts that speak of a topic.
func Focus(facts []Fact, topic string) {
	if topic == "" {
		return
	}
	for i := range facts {
		facts[i].Score += 0.4 * text.Cosine(facts[i].Text+" "+facts[i].Heading, topic)
	}
}

// NewPool makes a pool of the facts.
func NewPool(facts []Fact) *Pool {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b Fact) int { return cmp.Compare(b.Score, a.Score) })
	return &Pool{facts: sorted, used: map[string]int{}}
}

// Best returns the best fact of a role that fits, less half its likeness to what was taken before and less for every
// earlier use; false when the role has none.
func (p *Pool) Best(role Role, fits func(Fact) bool) (Fact, bool) {
	best, bestScore := -1, -10.0
	for i, fact := range p.facts {
		if fact.Role != role || fits != nil && !fits(fact) {
			continue
		}
		near := 0.0
		for _, earlier := range p.taken {
			near = max(near, fact.Like(earlier))
		}
		if s := fact.Score - 0.5*near - 0.4*float64(p.used[fact.Text]); s > bestScore {
			best, bestScore = i, s
		}
	}
	if best < 0 {
		return Fact{}, false
	}
	return p.facts[best], true
}

// Take marks a fact as used.
func (p *Pool) Take(f Fact) {
	p.used[f.Text]++
	if p.used[f.Text] == 1 {
		p.taken = append(p.taken, f)
	}
}

// All returns the facts of a role, best first.
func (p *Pool) All(role Role) []Fact {
	var out []Fact
	for _, fact := range p.facts {
		if fact.Role == role {
			out = append(out, fact)
		}
	}
	return out
}

// Has tells whether the pool holds a fact of the role.
func (p *Pool) Has(role Role) bool {
	return slices.ContainsFunc(p.facts, func(f Fact) bool { return f.Role == role })
}

//go:embed allowed.txt
var allowedFile string

var allowedStems = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, line := range strings.Split(allowedFile, "\n") {
		if !strings.HasPrefix(line, "#") {
			for _, word := range strings.Fields(line) {
				set[text.Stem(word)] = true
			}
		}
	}
	return set
})

// Novel returns the content words of s that stand neither in the evidence nor in the list of words any copy may use.
func Novel(s string, ix *ground.Index) []string {
	var out []string
	for _, token := range text.ContentTokens(s) {
		if token.Number || ix.Has(token.Stem) || ix.Brand(token.Stem) || allowedStems()[token.Stem] || slices.Contains(out, token.Lower) {
			continue
		}
		out = append(out, token.Lower)
	}
	return out
}
