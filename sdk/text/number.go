package text

import (
	"regexp"
	"strconv"
	"strings"
)

// Quantity is a number as a reader means it: value and, when one stands beside it, its unit.
type Quantity struct {
	Value float64
	Unit  string // "percent", "second", "usd", "mb", a stemmed noun, or ""
	Text  string // as written
	Start int
	End   int
}

var quantityPattern = regexp.MustCompile(`(?i)([$€£]\s?)?(\d{1,3}(?:[,_]\d{3})+|\d+)(\.\d+)?(\s?%|(?:ms|kb|mb|gb|tb|k|m|bn|s|h|x)\b)?`)

// unitNames maps the spellings of a unit to one name and a factor to that unit, so that "40s" equals "40 seconds" and "2 minutes" equals "120 s".
var unitNames = map[string]struct {
	name   string
	factor float64
}{
	"ms": {"second", 0.001}, "millisecond": {"second", 0.001}, "s": {"second", 1}, "sec": {"second", 1}, "second": {"second", 1},
	"min": {"second", 60}, "minute": {"second", 60}, "h": {"second", 3600}, "hr": {"second", 3600}, "hour": {"second", 3600},
	"day": {"day", 1}, "week": {"day", 7}, "month": {"month", 1}, "year": {"month", 12},
	"kb": {"mb", 0.001}, "mb": {"mb", 1}, "gb": {"mb", 1000}, "tb": {"mb", 1e6},
	"%": {"percent", 1}, "percent": {"percent", 1}, "pct": {"percent", 1}, "x": {"times", 1}, "time": {"times", 1},
	"$": {"usd", 1}, "usd": {"usd", 1}, "dollar": {"usd", 1}, "€": {"eur", 1}, "eur": {"eur", 1}, "euro": {"eur", 1}, "£": {"gbp", 1}, "gbp": {"gbp", 1},
}

var multipliers = map[string]float64{"k": 1e3, "m": 1e6, "bn": 1e9}

var numberWords = map[string]float64{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000,
}

// Quantities finds the numbers of s with their units. Version numbers ("1.2.3", "v2") and parts of words ("utf8") are not quantities.
// Number words from two on count, "one" does not: it is a pronoun more often than a number.
func Quantities(s string) []Quantity {
	out := writtenInDigits(s)
	for _, token := range Tokens(s) {
		if value, ok := numberWords[token.Lower]; ok {
			q := Quantity{Value: value, Text: token.Text, Start: token.Start, End: token.End}
			q.setUnit(nextWord(s, token.End))
			out = append(out, q)
		}
	}
	return out
}

func writtenInDigits(s string) []Quantity {
	var out []Quantity
	for _, m := range quantityPattern.FindAllStringSubmatchIndex(s, -1) {
		if partOfWord(s, m[0], m[1]) {
			continue
		}
		value, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(s[m[4]:m[5]])+group(s, m, 3), 64)
		if err != nil {
			continue
		}
		q := Quantity{Value: value, Text: strings.TrimSpace(s[m[0]:m[1]]), Start: m[0], End: m[1]}
		suffix := strings.ToLower(strings.TrimSpace(group(s, m, 4)))
		switch {
		case multipliers[suffix] != 0:
			q.Value *= multipliers[suffix]
			q.setUnit(currencyOr(group(s, m, 1), nextWord(s, m[1])))
		case suffix != "":
			q.setUnit(suffix)
		default:
			q.setUnit(currencyOr(group(s, m, 1), nextWord(s, m[1])))
		}
		out = append(out, q)
	}
	return out
}

// Same tells whether two quantities say the same: equal value, and equal unit unless one of them names none.
// A share and a percentage are the same thing (0.4 and 40 %).
func (q Quantity) Same(other Quantity) bool {
	a, b := q, other
	if a.Unit == "percent" && b.Unit != "percent" && b.Value <= 1 {
		a.Value /= 100
		a.Unit = ""
	} else if b.Unit == "percent" && a.Unit != "percent" && a.Value <= 1 {
		b.Value /= 100
		b.Unit = ""
	}
	difference := a.Value - b.Value
	if difference < 0 {
		difference = -difference
	}
	if difference > 1e-9*(1+b.Value) {
		return false
	}
	return a.Unit == b.Unit || a.Unit == "" || b.Unit == ""
}

func (q *Quantity) setUnit(word string) {
	if known, ok := unitNames[word]; ok {
		q.Unit = known.name
		q.Value *= known.factor
		return
	}
	stem := Stem(word)
	if known, ok := unitNames[strings.TrimSuffix(word, "s")]; ok {
		q.Unit = known.name
		q.Value *= known.factor
		return
	}
	if len(stem) > 1 && !IsStopWord(word) {
		q.Unit = stem
	}
}

// NormalNumber gives one spelling to a number written in several ways ("1,000", "1k", "1000").
func NormalNumber(word string) string {
	found := writtenInDigits(word)
	if len(found) != 1 || found[0].End-found[0].Start != len(word) {
		return strings.ToLower(word)
	}
	return strconv.FormatFloat(found[0].Value, 'f', -1, 64)
}

func currencyOr(sign, next string) string {
	if sign = strings.TrimSpace(sign); sign != "" {
		return sign
	}
	return next
}

func group(s string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return s[m[2*n]:m[2*n+1]]
}

// nextWord returns the word right after offset when only a space or hyphen stands between.
func nextWord(s string, offset int) string {
	rest := s[offset:]
	if rest == "" || rest[0] != ' ' && rest[0] != '-' {
		return ""
	}
	end := 1
	for end < len(rest) && (rest[end] >= 'a' && rest[end] <= 'z' || rest[end] >= 'A' && rest[end] <= 'Z') {
		end++
	}
	return strings.ToLower(rest[1:end])
}

// partOfWord tells whether the digits at [start,end) belong to a longer word, a version or a path.
func partOfWord(s string, start, end int) bool {
	if start > 0 {
		before := s[start-1]
		if isWordByte(before) && before < 0x80 || (before == '.' || before == '/' || before == '#') && start > 1 && s[start-2] != ' ' {
			return true
		}
	}
	if end < len(s) {
		if isWordByte(s[end]) && s[end] < 0x80 {
			return true
		}
		if s[end] == '.' && end+1 < len(s) && s[end+1] >= '0' && s[end+1] <= '9' {
			return true
		}
	}
	return false
}
