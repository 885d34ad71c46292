package ground

import (
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// pairWindow is how near two words must stand in the evidence to count as said together.
const pairWindow = 8

// Index answers questions about a set of evidence: which words, pairs, numbers and sentences it holds.
type Index struct {
	brand  map[string]bool // stems of the brand name, which support nothing by themselves
	items  []indexedItem
	counts map[string]int
	total  int
	pairs  map[string]bool
	masked map[string]bool // brand and strongest phrases: words that mail-merge filler would insert
	asOf   string

	mu     sync.Mutex
	claims map[string][]Claim    // verdicts by text: composing asks for the same sentence often
	parts  map[string]Components // components by text
}

type indexedItem struct {
	evidence  Evidence
	stems     map[string]bool
	pairs     map[string]bool
	sentences []indexedSentence
	literal   string // words in order, for exact quotes
}

type indexedSentence struct {
	text       string
	stems      map[string]bool
	lowers     map[string]bool
	quantities []text.Quantity
	negated    bool
}

// NewIndex indexes evidence for copy about brand. Items that speak to a machine instead of stating something are passed over. asOf (RFC 3339) is the moment against which the age of prices and
// dates is measured; when empty, age is not checked.
func NewIndex(brand string, items []Evidence, asOf string) *Index {
	ix := &Index{brand: map[string]bool{}, counts: map[string]int{}, pairs: map[string]bool{}, masked: map[string]bool{}, asOf: asOf, claims: map[string][]Claim{}, parts: map[string]Components{}}
	for _, token := range text.Tokens(brand) {
		ix.brand[token.Stem] = true
		ix.masked[token.Stem] = true
	}
	var blocks []string
	for _, item := range items {
		body := item.Text()
		if body == "" || item.Kind == Rule || item.Kind == CSSToken || text.Instruction(body) {
			continue
		}
		ix.items = append(ix.items, indexItem(item, body))
		added := &ix.items[len(ix.items)-1]
		for pair := range added.pairs {
			ix.pairs[pair] = true
		}
		for _, token := range text.ContentTokens(body) {
			ix.counts[token.Stem]++
			ix.total++
		}
		blocks = append(blocks, body)
	}
	for _, phrase := range text.Keyphrases(blocks, 3) {
		for _, stem := range strings.Fields(phrase.Stem) {
			ix.masked[stem] = true
		}
	}
	return ix
}

func indexItem(e Evidence, body string) indexedItem {
	item := indexedItem{evidence: e, stems: map[string]bool{}, pairs: map[string]bool{}, literal: literalWords(body)}
	tokens := text.Tokens(body)
	for i, token := range tokens {
		if token.Stop {
			continue
		}
		item.stems[token.Stem] = true
		for j := i + 1; j < len(tokens) && j <= i+pairWindow; j++ {
			if !tokens[j].Stop {
				item.pairs[pairKey(token.Stem, tokens[j].Stem)] = true
			}
		}
	}
	for _, sentence := range text.Sentences(body) {
		item.sentences = append(item.sentences, indexSentence(sentence.Text))
	}
	return item
}

func indexSentence(sentence string) indexedSentence {
	out := indexedSentence{text: sentence, stems: map[string]bool{}, lowers: map[string]bool{}, quantities: text.Quantities(sentence), negated: negated(sentence)}
	for _, token := range text.Tokens(sentence) {
		out.lowers[token.Lower] = true
		if !token.Stop {
			out.stems[token.Stem] = true
		}
	}
	return out
}

// literalWords is the text as its lower-case words, each between single spaces, so that a substring test respects words.
func literalWords(s string) string {
	var b strings.Builder
	b.WriteByte(' ')
	for _, token := range text.Tokens(s) {
		b.WriteString(token.Lower)
		b.WriteByte(' ')
	}
	return b.String()
}

func pairKey(a, b string) string {
	if a > b {
		a, b = b, a
	}
	return a + "\x00" + b
}

// Has tells whether a stem stands anywhere in the evidence.
func (ix *Index) Has(stem string) bool { return ix.counts[stem] > 0 }

// Brand tells whether a stem belongs to the brand name.
func (ix *Index) Brand(stem string) bool { return ix.brand[stem] }

// Nearest returns the evidence sentence that shares most with s, and the id of its item; "" when nothing is shared.
func (ix *Index) Nearest(s string) (sentence, id string) {
	stems := text.Stems(s)
	best := 0.0
	for _, item := range ix.items {
		for _, candidate := range item.sentences {
			shared := 0.0
			for _, stem := range stems {
				if candidate.stems[stem] && !ix.brand[stem] {
					shared += text.IDF(stem)
				}
			}
			if shared > best {
				best, sentence, id = shared, candidate.text, item.evidence.ID
			}
		}
	}
	return sentence, id
}
