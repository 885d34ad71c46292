package ground

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

const (
	coverSupported   = 0.60 // share of a claim's weighted words that one item must hold
	pairsSupported   = 0.50 // share of its neighbouring words that stand together there
	coverPartial     = 0.45
	coverWithNumber  = 0.40 // beside an equal number, fewer words must agree
	freshFor         = 30 * 24 * time.Hour
	minLiteralLength = 3 // words of a quotation
)

// match is how well one evidence item holds a claim.
type match struct {
	item  *indexedItem
	cover float64
	pairs float64
}

func (m match) score() float64 { return (m.cover + m.pairs) / 2 }

// Check finds the claims of s and gives each its verdict, with the evidence behind it.
func (ix *Index) Check(s string) []Claim {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	known, ok := ix.claims[s]
	if !ok {
		known = ix.check(s)
		ix.claims[s] = known
	}
	out := slices.Clone(known)
	for i := range out {
		out[i].EvidenceIDs = slices.Clone(out[i].EvidenceIDs)
	}
	return out
}

func (ix *Index) check(s string) []Claim {
	claims := FindClaims(s)
	for i := range claims {
		if claims[i].Verdict != NotAClaim {
			ix.judge(&claims[i])
		}
	}
	return claims
}

func (ix *Index) judge(c *Claim) {
	body := withoutLinks(c.Text)
	if len(ix.subjectStems(body)) == 0 && len(text.Quantities(body)) == 0 {
		c.Type, c.Verdict = NoClaim, NotAClaim // the brand's name alone says nothing
		return
	}
	matches := ix.matches(body)
	c.Verdict = Unsupported
	if len(matches) == 0 {
		c.Why = "no evidence item speaks of this"
		return
	}
	switch c.Type {
	case SocialProof:
		ix.judgeSocialProof(c, body)
	case Comparison, Superlative, Guarantee:
		ix.judgeSameWords(c, body, matches, typePattern(c.Type))
	case TimeToValue:
		if len(text.Quantities(body)) > 0 {
			ix.judgeNumbers(c, body, matches, 0)
		} else {
			ix.judgeSameWords(c, body, matches, timeVaguePattern)
		}
	case Price, Available, Date:
		if len(text.Quantities(body)) > 0 {
			ix.judgeNumbers(c, body, matches, freshFor)
		} else {
			ix.judgeSameWords(c, body, ix.fresh(matches), typePattern(c.Type))
		}
	case Numeric:
		ix.judgeNumbers(c, body, matches, 0)
	default:
		ix.judgeWords(c, body, matches)
	}
}

func typePattern(kind string) *regexp.Regexp {
	switch kind {
	case Comparison:
		return comparisonPattern
	case Superlative:
		return superlativePattern
	case Guarantee:
		return guaranteePattern
	case Price:
		return pricePattern
	case Available:
		return availabilityWords
	}
	return datePattern
}

// matches returns the items that share a word with s, best first. The brand's own name and numbers do not count.
func (ix *Index) matches(s string) []match {
	words := ix.subjectStems(s)
	if len(words) == 0 {
		return nil
	}
	total := 0.0
	for _, word := range words {
		total += text.IDF(word)
	}
	var out []match
	for i := range ix.items {
		item := &ix.items[i]
		if item.evidence.Trust == Inferred {
			continue
		}
		m := match{item: item}
		for _, word := range words {
			if item.stems[word] {
				m.cover += text.IDF(word) / total
			}
		}
		if m.cover == 0 {
			continue
		}
		m.pairs = pairShare(words, item.pairs, m.cover)
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b match) int {
		switch {
		case a.score() > b.score():
			return -1
		case a.score() < b.score():
			return 1
		}
		return 0
	})
	return out
}

func (ix *Index) subjectStems(s string) []string {
	var out []string
	for _, token := range text.ContentTokens(s) {
		if !token.Number && !ix.brand[token.Stem] {
			out = append(out, token.Stem)
		}
	}
	return out
}

// pairShare is the share of neighbouring words that stand together in the item. One word has no neighbour: its cover stands in.
func pairShare(words []string, pairs map[string]bool, cover float64) float64 {
	if len(words) < 2 {
		return cover
	}
	hits := 0
	for i := 1; i < len(words); i++ {
		if words[i] == words[i-1] || pairs[pairKey(words[i-1], words[i])] {
			hits++
		}
	}
	return float64(hits) / float64(len(words)-1)
}

func (ix *Index) judgeWords(c *Claim, body string, matches []match) {
	best := matches[0]
	c.Support = round2(best.score())
	switch {
	case best.cover >= coverSupported && best.pairs >= pairsSupported:
		c.EvidenceIDs = []string{best.item.evidence.ID}
		if sentence, against := best.item.opposes(body); against {
			c.Verdict = Contradicted
			c.Why = "the evidence says the opposite: “" + shorten(sentence) + "”"
			return
		}
		c.Verdict = Supported
	case best.cover >= coverPartial:
		c.EvidenceIDs = []string{best.item.evidence.ID}
		c.Verdict = Partial
		c.Why = "the nearest evidence holds only part of this: " + missing(ix.subjectStems(body), best.item.stems)
	default:
		c.Why = "no single evidence item says this: " + missing(ix.subjectStems(body), best.item.stems)
	}
}

// judgeSameWords asks, beyond the words, for an evidence sentence that uses the very comparison, absolute or vague form.
func (ix *Index) judgeSameWords(c *Claim, body string, matches []match, pattern *regexp.Regexp) {
	form := formOf(pattern, body)
	for _, m := range matches {
		if m.cover < coverSupported {
			continue
		}
		for _, sentence := range m.item.sentences {
			if sentence.holdsForm(pattern, form) && sentence.sharesAny(ix.subjectStems(body)) {
				ix.judgeWords(c, body, []match{m})
				return
			}
		}
	}
	c.Why = "no evidence makes this same statement (" + strings.Join(form, ", ") + ")"
}

// formOf returns the stems of the words that make s a comparison, an absolute and so on.
func formOf(pattern *regexp.Regexp, s string) []string {
	var out []string
	for _, hit := range pattern.FindAllString(s, -1) {
		for _, token := range text.Tokens(hit) {
			out = append(out, token.Stem)
		}
	}
	return out
}

func (s indexedSentence) holdsForm(pattern *regexp.Regexp, form []string) bool {
	own := formOf(pattern, s.text)
	for _, word := range form {
		if !slices.Contains(own, word) {
			return false
		}
	}
	return len(form) > 0
}

func (s indexedSentence) sharesAny(stems []string) bool {
	return slices.ContainsFunc(stems, func(stem string) bool { return s.stems[stem] })
}

// judgeNumbers asks that one evidence item states every number of the claim, each in a sentence that shares a subject
// word, and that the rest of the claim is about the same thing.
func (ix *Index) judgeNumbers(c *Claim, body string, matches []match, maxAge time.Duration) {
	numbers := text.Quantities(body)
	if len(numbers) == 0 {
		ix.judgeSameWords(c, body, matches, datePattern)
		return
	}
	words := ix.subjectStems(body)
	stale := false
	for _, m := range matches {
		if !m.item.states(numbers, words) {
			continue
		}
		if maxAge > 0 && !ix.youngerThan(m.item.evidence, maxAge) {
			stale = true
			continue
		}
		c.EvidenceIDs = []string{m.item.evidence.ID}
		c.Support = round2(min(1, m.score()+0.3))
		if sentence, against := m.item.opposes(body); against {
			c.Verdict, c.Why = Contradicted, "the evidence says the opposite: “"+shorten(sentence)+"”"
			return
		}
		if m.cover >= coverWithNumber {
			c.Verdict = Supported
			return
		}
		c.Verdict = Partial
		c.Why = "the number is in the evidence, the rest of the sentence only in part: " + missing(words, m.item.stems)
		return
	}
	c.Support = round2(matches[0].score() / 2)
	if stale {
		c.Why = "the evidence for this figure is older than 30 days"
		return
	}
	c.Why = "no evidence item states " + numbers[0].Text + " for this"
}

func (item *indexedItem) states(numbers []text.Quantity, words []string) bool {
	for _, number := range numbers {
		found := slices.ContainsFunc(item.sentences, func(s indexedSentence) bool {
			return s.sharesAny(words) && slices.ContainsFunc(s.quantities, number.Same)
		})
		if !found {
			return false
		}
	}
	return true
}

var namePattern = regexp.MustCompile(`\p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)+`)

// judgeSocialProof accepts what was read literally by the platform itself: the count with its noun, or the quotation with its name.
func (ix *Index) judgeSocialProof(c *Claim, body string) {
	c.Why = "no page that was read says this word for word"
	numbers := text.Quantities(body)
	words := ix.subjectStems(body)
	names := namePattern.FindAllString(body, -1)
	literal := literalWords(body)
	for i := range ix.items {
		item := &ix.items[i]
		if item.evidence.Trust != Observed {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(item.literal, literalWords(name)) }) {
			continue
		}
		whole := strings.Count(literal, " ") > minLiteralLength && strings.Contains(item.literal, literal)
		counted := len(numbers) > 0 && item.states(numbers, words) && ix.cover(words, item) >= coverSupported
		if whole || counted {
			c.EvidenceIDs = []string{item.evidence.ID}
			c.Support, c.Verdict, c.Why = 1, Supported, ""
			return
		}
	}
}

func (ix *Index) cover(words []string, item *indexedItem) float64 {
	total, held := 0.0, 0.0
	for _, word := range words {
		total += text.IDF(word)
		if item.stems[word] {
			held += text.IDF(word)
		}
	}
	if total == 0 {
		return 0
	}
	return held / total
}

func (ix *Index) fresh(matches []match) []match {
	var out []match
	for _, m := range matches {
		if ix.youngerThan(m.item.evidence, freshFor) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return matches[:0]
	}
	return out
}

func (ix *Index) youngerThan(e Evidence, age time.Duration) bool {
	now, err := time.Parse(time.RFC3339, ix.asOf)
	if err != nil {
		return true
	}
	captured, err := time.Parse(time.RFC3339, e.CapturedAt)
	return err != nil || now.Sub(captured) <= age
}

func missing(words []string, held map[string]bool) string {
	var out []string
	for _, word := range words {
		if !held[word] && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	if len(out) == 0 {
		return "its words stand apart there"
	}
	return "missing " + strings.Join(out[:min(4, len(out))], ", ")
}

func shorten(s string) string {
	if text.Graphemes(s) <= 160 {
		return s
	}
	return text.CutGraphemes(s, 159) + "…"
}

func round2(f float64) float64 { return float64(int(f*100+0.5)) / 100 }
