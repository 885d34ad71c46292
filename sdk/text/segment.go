package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
	"github.com/kljensen/snowball/english"
)

// Token is one word or number of a text, in order of appearance. Punctuation and space are not tokens.
type Token struct {
	Text   string // as written
	Lower  string // lower case
	Stem   string // what two spellings of one word share; numbers are normalised ("1,000" and "1k" give "1000")
	Start  int    // byte offset of the first byte
	End    int    // byte offset after the last byte
	Number bool   // holds a digit at its start
	Stop   bool   // a function word, which carries no subject matter
}

// Span is a stretch of a text by byte offsets, with the text itself.
type Span struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// Tokens splits s by the Unicode word rules and keeps what holds a letter or a digit.
func Tokens(s string) []Token {
	tokens := make([]Token, 0, len(s)/5+1)
	offset := 0
	iter := words.FromString(s)
	for iter.Next() {
		word := iter.Value()
		start := offset
		offset += len(word)
		if !hasLetterOrDigit(word) {
			continue
		}
		lower := strings.ToLower(strings.ReplaceAll(word, "’", "'"))
		token := Token{Text: word, Lower: lower, Start: start, End: offset}
		first, _ := utf8.DecodeRuneInString(word)
		token.Number = unicode.IsDigit(first)
		if token.Number {
			token.Stem = NormalNumber(lower)
		} else {
			token.Stem = Stem(lower)
			token.Stop = stopWords[lower] || stopWords[token.Stem]
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// ContentTokens is Tokens without function words.
func ContentTokens(s string) []Token {
	all := Tokens(s)
	kept := all[:0]
	for _, token := range all {
		if !token.Stop {
			kept = append(kept, token)
		}
	}
	return kept
}

// Stem reduces an English word to its stem; a word with other letters than a–z comes back in lower case.
func Stem(word string) string {
	lower := strings.ToLower(word)
	lower = strings.TrimSuffix(strings.TrimSuffix(lower, "'s"), "'")
	if len(lower) < 3 {
		return lower
	}
	for i := 0; i < len(lower); i++ {
		if lower[i] < 'a' || lower[i] > 'z' {
			return lower
		}
	}
	return english.Stem(lower, false)
}

// Stems returns the stems of the content words and numbers of s, in order.
func Stems(s string) []string {
	tokens := ContentTokens(s)
	out := make([]string, len(tokens))
	for i, token := range tokens {
		out[i] = token.Stem
	}
	return out
}

// IsStopWord tells whether a word is a function word: it is needed for grammar and says nothing about the subject.
func IsStopWord(word string) bool { return stopWords[strings.ToLower(word)] }

// abbreviations end in a full stop that does not end a sentence.
var abbreviations = []string{"e.g.", "i.e.", "etc.", "vs.", "mr.", "mrs.", "ms.", "dr.", "inc.", "ltd.", "co.", "no.", "approx.", "st.", "cf."}

// Sentences splits s by the Unicode sentence rules, joins pieces cut after an abbreviation or inside a web address, trims
// space and drops empty pieces. A line break always ends a sentence.
func Sentences(s string) []Span {
	var out []Span
	offset := 0
	joined := false
	addresses := addressPattern.FindAllStringIndex(s, -1)
	iter := sentences.FromString(s)
	for iter.Next() {
		piece := iter.Value()
		start := offset
		offset += len(piece)
		if joined {
			last := &out[len(out)-1]
			last.End = offset
			last.Text = s[last.Start:offset]
		} else {
			out = append(out, Span{Start: start, End: offset, Text: piece})
		}
		joined = endsInAbbreviation(out[len(out)-1].Text) || slices.ContainsFunc(addresses, func(at []int) bool { return at[0] < offset && offset < at[1] })
	}
	kept := out[:0]
	for _, span := range out {
		if span = span.trim(); hasLetterOrDigit(span.Text) {
			kept = append(kept, span)
		}
	}
	return kept
}

func (s Span) trim() Span {
	left := len(s.Text) - len(strings.TrimLeftFunc(s.Text, unicode.IsSpace))
	body := strings.TrimSpace(s.Text)
	return Span{Start: s.Start + left, End: s.Start + left + len(body), Text: body}
}

func endsInAbbreviation(piece string) bool {
	if strings.HasSuffix(piece, "\n") {
		return false
	}
	body := strings.ToLower(strings.TrimRightFunc(piece, unicode.IsSpace))
	for _, abbreviation := range abbreviations {
		if rest, ok := strings.CutSuffix(body, abbreviation); ok && (rest == "" || !isWordByte(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}

// Graphemes counts what a reader sees as single characters.
func Graphemes(s string) int {
	n := 0
	iter := graphemes.FromString(s)
	for iter.Next() {
		n++
	}
	return n
}

// CutGraphemes returns the longest prefix of s of at most limit graphemes.
func CutGraphemes(s string, limit int) string {
	end, n := 0, 0
	iter := graphemes.FromString(s)
	for iter.Next() {
		if n == limit {
			return s[:end]
		}
		n++
		end += len(iter.Value())
	}
	return s
}

// WordCount counts words and numbers, function words included.
func WordCount(s string) int { return len(Tokens(s)) }

func hasLetterOrDigit(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

func isWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
