package ground

import (
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// Bands of a genericity score. A draft in the high band is kept and explained, but not staged.
const (
	LowBelow    = 0.35
	MediumBelow = 0.60
)

// Risk is how generic a text is against the evidence it should rest on: 0 specific, 1 could be anyone's.
type Risk struct {
	Score          float64         `json:"score"`
	Band           string          `json:"band"`
	CopyRisk       float64         `json:"copyRisk"` // the text alone, without its siblings and unsupported claims
	Components     Components      `json:"components"`
	WorstSentences []WorstSentence `json:"worstSentences"`
	SwapTest       SwapTest        `json:"swapTest"`
}

// Components are the parts of a score.
type Components struct {
	G float64 `json:"G"` // share of the weighted content words that the evidence holds
	P float64 `json:"P"` // share of neighbouring words that stand together in the evidence
	L float64 `json:"L"` // how much likelier the words are in the evidence than on any page, in nats, −1 to 4
	C float64 `json:"C"` // clichés per ten words, at most 1
	D float64 `json:"D"` // nearness of the two most similar variants
	U float64 `json:"U"` // share of claims that are not supported
}

// WorstSentence is a sentence that pulls the score up, with the reason and a way out.
type WorstSentence struct {
	Text string `json:"text"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// SwapTest compares the text with what two other brands say of themselves.
type SwapTest struct {
	Difference     float64 `json:"difference"` // score against the other brands minus the own score
	CouldBeAnyones bool    `json:"couldBeAnyones"`
	Reason         string  `json:"reason"`
}

// swapMargin is how much worse copy must fit another brand to count as one's own.
const swapMargin = 0.15

// Genericity scores copy. variants are the sibling drafts of one set, this one included; claims are the verdicts of Check on it.
func (ix *Index) Genericity(copy string, variants []string, claims []Claim) Risk {
	components := ix.components(copy)
	components.D = nearestVariants(variants)
	components.U = unsupportedShare(claims)
	copyRisk := components.copyRisk()
	score := 1 - (1-copyRisk)*(1-max(0, components.D-0.35))*(1-0.5*components.U)
	risk := Risk{Score: round4(score), CopyRisk: round4(copyRisk), Band: band(score), Components: components.rounded()}
	risk.WorstSentences = ix.worstSentences(copy)
	risk.SwapTest = swapTest(copy, copyRisk)
	return risk
}

// CopyRisk is the genericity of the text alone, between 0 and 1: the cheap form of Genericity for ranking candidates.
func (ix *Index) CopyRisk(copy string) float64 { return ix.components(copy).copyRisk() }

func (c Components) copyRisk() float64 {
	return 1 / (1 + math.Exp(-(2.2 - 2.5*c.G - 2.5*c.P - 0.5*c.L + 1.5*c.C)))
}

func band(score float64) string {
	switch {
	case score < LowBelow:
		return "low"
	case score < MediumBelow:
		return "medium"
	}
	return "high"
}

// components measures the text. Brand name and strongest phrases are masked, or filler with the name pasted in would
// pass. Numbers count for the score where the evidence holds them and never otherwise lower it: a grounded number can
// only help, an invented one only hurt.
func (ix *Index) components(copy string) Components {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	known, ok := ix.parts[copy]
	if !ok {
		known = ix.measure(copy)
		ix.parts[copy] = known
	}
	return known
}

func (ix *Index) measure(copy string) Components {
	body := withoutLinks(copy)
	tokens := text.Tokens(body)
	var words []text.Token
	held, total, likelihood, counted := 0.0, 0.0, 0.0, 0
	for _, token := range tokens {
		if token.Stop {
			continue
		}
		if !token.Number {
			words = append(words, token)
		}
		if ix.masked[token.Stem] {
			continue
		}
		weight := text.IDF(token.Stem)
		total += weight
		if ix.counts[token.Stem] > 0 {
			held += weight
		}
		if !token.Number {
			likelihood += ix.surprise(token.Stem)
			counted++
		}
	}
	c := Components{L: -1, P: ix.pairsHeld(tokens, words), C: min(1, 10*float64(len(cliches(body)))/float64(max(1, len(tokens))))}
	if total > 0 {
		c.G = held / total
	}
	if counted > 0 {
		c.L = min(4, max(-1, likelihood/float64(counted)))
	}
	return c
}

// surprise is ln(p_evidence / p_background) of a word, the former smoothed toward the latter.
func (ix *Index) surprise(stem string) float64 {
	const smoothing = 200
	background := text.BackgroundProbability(stem)
	evidence := (float64(ix.counts[stem]) + smoothing*background) / (float64(ix.total) + smoothing)
	return math.Log(evidence / background)
}

// pairsHeld is the share of neighbouring words that stand together in the evidence. A number adds its pair when it is
// held and is passed over when not.
func (ix *Index) pairsHeld(all, words []text.Token) float64 {
	hits, pairs := 0, 0
	for i := 1; i < len(words); i++ {
		a, b := words[i-1].Stem, words[i].Stem
		if ix.masked[a] && ix.masked[b] {
			continue
		}
		pairs++
		if ix.pairs[pairKey(a, b)] {
			hits++
		}
	}
	// Each number is paired with the words around it, other numbers passed over, so that one more number leaves the
	// pairs of the others alone.
	for i, token := range all {
		if token.Number && (ix.near(token, all, i, -1) || ix.near(token, all, i, 1)) {
			hits++
			pairs++
		}
	}
	if pairs == 0 {
		return 0
	}
	return float64(hits) / float64(pairs)
}

// near tells whether the evidence holds the number together with the next content word in one direction.
func (ix *Index) near(number text.Token, all []text.Token, i, step int) bool {
	for i += step; i >= 0 && i < len(all); i += step {
		if !all[i].Number && !all[i].Stop {
			return ix.pairs[pairKey(number.Stem, all[i].Stem)]
		}
	}
	return false
}

func nearestVariants(variants []string) float64 {
	nearest := 0.0
	for i := range variants {
		for j := i + 1; j < len(variants); j++ {
			nearest = max(nearest, text.NearDuplicate(variants[i], variants[j]))
		}
	}
	return nearest
}

func unsupportedShare(claims []Claim) float64 {
	judged, bad := 0, 0
	for _, claim := range claims {
		if claim.Verdict == NotAClaim {
			continue
		}
		judged++
		if claim.Verdict == Unsupported || claim.Verdict == Contradicted {
			bad++
		}
	}
	if judged == 0 {
		return 0
	}
	return float64(bad) / float64(judged)
}

func (ix *Index) worstSentences(copy string) []WorstSentence {
	type scored struct {
		WorstSentence
		risk float64
	}
	var all []scored
	for _, span := range text.Sentences(copy) {
		if claimType(span.Text) == NoClaim {
			continue
		}
		c := ix.components(span.Text)
		risk := c.copyRisk()
		if risk < 0.5 {
			continue
		}
		all = append(all, scored{WorstSentence{Text: span.Text, Why: ix.whyGeneric(span.Text, c), Fix: ix.fixFor(span.Text)}, risk})
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.risk > b.risk:
			return -1
		case a.risk < b.risk:
			return 1
		}
		return 0
	})
	out := []WorstSentence{}
	for _, s := range all[:min(3, len(all))] {
		out = append(out, s.WorstSentence)
	}
	return out
}

func (ix *Index) whyGeneric(sentence string, c Components) string {
	if found := cliches(sentence); len(found) > 0 {
		return "uses “" + strings.Join(found[:min(2, len(found))], "”, “") + "”, which fits any product"
	}
	var absent []string
	held, words := 0, 0
	for _, token := range text.ContentTokens(sentence) {
		if ix.masked[token.Stem] {
			continue
		}
		words++
		if ix.Has(token.Stem) {
			held++
		} else if !slices.Contains(absent, token.Lower) {
			absent = append(absent, token.Lower)
		}
	}
	switch {
	case words == 0:
		return "names the product and says nothing about it"
	case len(absent) > 0:
		return strconv.Itoa(held) + " of " + strconv.Itoa(words) + " content words are in the evidence; not there: " + strings.Join(absent[:min(4, len(absent))], ", ")
	case c.P < 0.5:
		return "its words are in the evidence, but not together"
	}
	return "its words are as likely on any other page"
}

func (ix *Index) fixFor(sentence string) string {
	nearest, _ := ix.Nearest(sentence)
	if nearest == "" {
		return "Leave the sentence out, or add evidence for what it says."
	}
	return "Say what the evidence says: “" + shorten(nearest) + "”"
}

//go:embed cliches.txt
var clicheFile string

var clichePhrases = sync.OnceValue(func() []string {
	var out []string
	for _, line := range strings.Split(clicheFile, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
})

// cliches returns the worn phrases in s.
func cliches(s string) []string {
	literal := literalWords(s)
	var out []string
	for _, phrase := range clichePhrases() {
		if strings.Contains(literal, " "+phrase+" ") {
			out = append(out, phrase)
		}
	}
	return out
}

func (c Components) rounded() Components {
	return Components{G: round4(c.G), P: round4(c.P), L: round4(c.L), C: round4(c.C), D: round4(c.D), U: round4(c.U)}
}

func round4(f float64) float64 { return math.Round(f*1e4) / 1e4 }

// NoRisk is the risk of something that is no copy, such as a brand profile.
func NoRisk() Risk {
	return Risk{Band: "low", WorstSentences: []WorstSentence{}, SwapTest: SwapTest{Reason: "not copy"}}
}
