package draft

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// The rewrite operators keep the meaning and add no content word. Each returns its input unchanged when it does not apply.

var (
	asidePattern       = regexp.MustCompile(`\s*\([^()]*\)`)
	dashAsidePattern   = regexp.MustCompile(`\s+[–—]\s+[^–—]+\s+[–—]\s+`)
	tailPattern        = regexp.MustCompile(`(?i)(?:,|;)\s+(?:which|with|without|plus|so that|so|because|while|although|as well as|and then|such as|for example|including|listed|e\.g\.)\b.*$`)
	semicolonPattern   = regexp.MustCompile(`;\s+.*$`)
	letsPattern        = regexp.MustCompile(`(?i)^(?:[\p{L}\d.-]+(?: [\p{Lu}][\p{L}\d.-]+)?|it|this (?:app|tool|library)) (?:lets|allows|enables|helps) (?:you|users|people|customers|teams|developers|editors|anyone)(?: to)? `)
	canPattern         = regexp.MustCompile(`(?i)^(?:users|customers|people|anyone|you) can `)
	beforeAfterPattern = regexp.MustCompile(`(?i)^(.*?)\s*\b(?:in|from|takes?)?\s*(\d[\d.,]*\s?[\p{L}%]*)\s+instead of\s+(\d[\d.,]*\s?[\p{L}%]*)(.*)$`)
	fromToPattern      = regexp.MustCompile(`(?i)\bfrom (\d[\d.,]*(?:\s?[\p{L}%]+)?) to (\d[\d.,]*(?:\s?[\p{L}%]+)?)`)
	nominalPattern     = regexp.MustCompile(`^(Automatic|Manual|Instant|Daily|Weekly|Nightly|Offline|Secure|Fast) (sync|export|import|backup|matching|sorting|tracking|planning|billing|scheduling|translation|transcription) (?:of|for) (.+)$`)
	fixVerb            = regexp.MustCompile(`(?i)^(?:fix|fixes|fixed) `)
	newsVerb           = regexp.MustCompile(`^(?:Allow|Enable|Let|Show|Make|Import|Export|Offer|Accept|Draft|Remember|Speed|Send|Serve|Read|Write|Keep|Run)s?$`)
	pluralSubject      = regexp.MustCompile(`^(\p{Lu}\p{Ll}+s) (\p{Ll}+) `)
)

// DropAsides removes parentheses and inserted clauses.
func DropAsides(s string) string {
	return strings.TrimSpace(dashAsidePattern.ReplaceAllString(asidePattern.ReplaceAllString(s, ""), " "))
}

// DropTail removes the subordinate clause at the end, as long as a statement of four words remains.
func DropTail(s string) string {
	for _, pattern := range []*regexp.Regexp{tailPattern, semicolonPattern} {
		if cut := pattern.ReplaceAllString(s, ""); cut != s && text.WordCount(cut) >= 4 {
			return Period(cut)
		}
	}
	return s
}

// FirstSentence returns the first sentence.
func FirstSentence(s string) string {
	if spans := text.Sentences(s); len(spans) > 0 {
		return spans[0].Text
	}
	return s
}

// Fit shortens a statement by whole clauses until length gives at most limit; "" when it cannot. It never cuts inside a clause.
func Fit(s string, limit int, length func(string) int) string {
	for _, step := range []func(string) string{func(s string) string { return s }, DropAsides, FirstSentence, DropTail, DropTail} {
		if s = step(s); length(s) <= limit {
			return s
		}
	}
	return ""
}

// SecondPerson turns “Product lets users export rows” and “Users can export rows” into “You can export rows”.
func SecondPerson(s string) string {
	for _, pattern := range []*regexp.Regexp{letsPattern, canPattern} {
		if m := pattern.FindString(s); m != "" && !strings.HasPrefix(strings.ToLower(m), "you ") {
			return "You can " + strings.NewReplacer(" their ", " your ", " theirs ", " yours ").Replace(s[len(m):])
		}
	}
	return s
}

// Imperative turns “Automatic sync of invoices” into “Sync invoices automatically”.
func Imperative(s string) string {
	ended := strings.HasSuffix(s, ".")
	m := nominalPattern.FindStringSubmatch(strings.TrimSuffix(s, "."))
	if m == nil {
		return s
	}
	verb := map[string]string{
		"matching": "match", "sorting": "sort", "tracking": "track", "planning": "plan", "billing": "bill", "scheduling": "schedule",
		"translation": "translate", "transcription": "transcribe", "backup": "back up",
	}[m[2]]
	if verb == "" {
		verb = m[2]
	}
	adverb := map[string]string{"Automatic": "automatically", "Daily": "daily", "Weekly": "weekly", "Nightly": "nightly", "Offline": "offline", "Fast": "fast"}[m[1]]
	if adverb == "" {
		adverb = strings.ToLower(m[1]) + "ly"
	}
	out := Capital(verb) + " " + m[3] + " " + adverb
	if ended {
		out += "."
	}
	return out
}

// NumberFirst puts a stated before and after at the head: “From 38 days to 19 days: …”. The rest keeps its words.
func NumberFirst(s string) string {
	m := fromToPattern.FindStringIndex(s)
	if m == nil || m[0] == 0 {
		return s
	}
	head := s[m[0]:m[1]]
	rest := strings.TrimSpace(strings.TrimRight(s[:m[0]], " ") + s[m[1]:])
	return Capital(head) + ": " + Lower(rest)
}

// FromTo is the stated before and after alone (“from 38 days to 19 days”); "" when there is none.
func FromTo(s string) string { return Lower(fromToPattern.FindString(s)) }

// BeforeAfter turns “match deposits in 4 seconds instead of 40 seconds” into “40 seconds before, 4 seconds now: match deposits”.
func BeforeAfter(s string) string {
	m := beforeAfterPattern.FindStringSubmatch(strings.TrimSuffix(s, "."))
	if m == nil || strings.TrimSpace(m[1]) == "" {
		return s
	}
	return strings.TrimSpace(m[3]) + " before, " + strings.TrimSpace(m[2]) + " now: " + Lower(strings.TrimSpace(m[1])) + Period(m[4])
}

// notVerbs follow a plural noun without being its verb.
var notVerbs = map[string]bool{"that": true, "who": true, "which": true, "of": true, "in": true, "for": true, "with": true, "and": true, "or": true, "on": true, "at": true, "by": true, "from": true, "to": true, "are": true, "were": true, "have": true, "can": true, "will": true}

// AsQuestion turns a stated problem with a plural subject into a question: “Bakers throw away bread.” → “Do bakers throw away bread?”
func AsQuestion(s string) string {
	m := pluralSubject.FindStringSubmatch(s)
	if m == nil || notVerbs[m[2]] || strings.HasSuffix(m[2], "s") || strings.HasSuffix(m[2], "ed") || strings.HasSuffix(m[2], "ly") || strings.Count(s, ". ") > 0 {
		return s
	}
	return "Do " + strings.ToLower(s[:1]) + strings.TrimRight(s[1:], ".!") + "?"
}

// Merge joins two statements that open with the same word: “It reads A.” and “It reads B.” give “It reads A and reads B.”
func Merge(a, b string) string {
	firstA, restA, okA := strings.Cut(strings.TrimRight(a, "."), " ")
	firstB, restB, okB := strings.Cut(strings.TrimRight(b, "."), " ")
	if !okA || !okB || firstA != firstB || strings.ContainsAny(restA+restB, ".;:") || text.WordCount(restA)+text.WordCount(restB) > 24 {
		return a
	}
	return firstA + " " + restA + " and " + restB + "."
}

// FromCommit says what a commit changed, in a sentence for users: “New: CSV export of invoices.”
func FromCommit(subject string) string {
	kind, _, rest := (source.Commit{Subject: subject}).Parts()
	rest = strings.TrimRight(strings.TrimSpace(rest), ".")
	switch {
	case rest == "":
		return ""
	case kind == "fix":
		return "Fixed: " + Period(Lower(rest))
	case fixVerb.MatchString(rest):
		return "Fixed: " + Period(fixVerb.ReplaceAllString(rest, ""))
	case kind == "perf":
		if shifted := BeforeAfter(rest); shifted != rest {
			return Period(Capital(shifted))
		}
		return "Changed: " + Period(Lower(rest))
	}
	for _, verb := range []string{"add ", "adds ", "added ", "introduce ", "implement ", "support "} {
		if after, ok := strings.CutPrefix(Lower(rest), verb); ok {
			if verb == "support " {
				after = rest[len("support "):]
			}
			return "New: " + Period(strings.TrimPrefix(after, "support for "))
		}
	}
	if verb, after, ok := strings.Cut(rest, " "); ok && newsVerb.MatchString(verb) {
		return "New: " + Period(strings.ToLower(verb)+" "+after)
	}
	return "New: " + Period(Lower(rest))
}

// Capital writes the first letter large.
func Capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[size:]
}

// Lower writes the first letter small, unless the first word is written like a name or an abbreviation.
func Lower(s string) string {
	first, _, _ := strings.Cut(s, " ")
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 || !unicode.IsUpper(r) || strings.ToLower(first[size:]) != first[size:] || len(first) == 1 && first != "A" {
		return s
	}
	if !commonOpeners[strings.ToLower(first)] && !text.IsStopWord(first) && text.PageShare(text.Stem(first)) < 0.05 {
		return s // perhaps a name
	}
	return string(unicode.ToLower(r)) + s[size:]
}

var commonOpeners = map[string]bool{"the": true, "a": true, "an": true, "average": true, "match": true, "claim": true, "print": true, "keep": true, "freeze": true, "count": true, "respect": true, "loop": true}

// Period ends a statement with a full stop unless it has its own mark.
func Period(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ",;:")
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") || strings.HasSuffix(s, "”") {
		return s
	}
	return s + "."
}
