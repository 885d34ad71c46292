package emailsequence

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// privacyRegions are jurisdictions in which a mail needs a stated lawful basis.
var privacyRegions = []string{"EU", "UK", "GB", "DE", "FR", "AT", "CH", "NL", "ES", "IT", "SE", "DK", "FI", "NO", "IE", "BE", "PL", "PT"}

var boughtList = regexp.MustCompile(`(?i)\b(?:bought|purchased?|rented|scraped?|harvested|broker|lead list|third.party list|unknown|found online)\b`)

// blockers lists what stands between these drafts and a send. Drafting needs none of it; sending needs all.
func blockers(in input) []blocker {
	out := []blocker{}
	need := func(missing bool, field, rule, why string) {
		if missing {
			out = append(out, blocker{field, rule, why})
		}
	}
	need(in.Sender.Email == "", "sender.email", "email.identity", "A mail names its sender.")
	need(in.Sender.PostalAddress == "", "sender.postalAddress", "email.address", draft.Rule("email.address").Text)
	need(in.UnsubscribeURL == "", "unsubscribeUrl", "email.optout", draft.Rule("email.optout").Text)
	region := slices.ContainsFunc(in.Jurisdictions, func(j string) bool { return slices.Contains(privacyRegions, j) })
	need(region && in.LawfulBasis == "", "lawfulBasis", "email.basis", draft.Rule("email.basis").Text)
	need(in.ListSource == "", "listSource", "email.basis", "It must be known where the recipients come from.")
	need(boughtList.MatchString(in.ListSource), "listSource", "email.basis", "Bought, scraped and unknown lists are never written to.")
	return out
}

// footer states the sender, the reason and the way out, as far as they are known. What is missing blocks the send and
// leaves no placeholder behind.
func footer(in input, brand string) string {
	var lines []string
	if in.ListSource != "" && !boughtList.MatchString(in.ListSource) {
		lines = append(lines, "You get this mail because: "+text.OneLine(in.ListSource, 200)+".")
	}
	name := in.Sender.Name
	if name == "" {
		name = brand
	}
	line := name
	if in.Sender.PostalAddress != "" {
		line += ", " + text.OneLine(in.Sender.PostalAddress, 400)
	}
	lines = append(lines, line)
	if in.UnsubscribeURL != "" {
		lines = append(lines, "Unsubscribe: "+in.UnsubscribeURL)
	}
	return strings.Join(lines, "\n")
}

func headers(in input) map[string]string {
	out := map[string]string{}
	if in.UnsubscribeURL != "" {
		out["List-Unsubscribe"] = "<" + in.UnsubscribeURL + ">"
		out["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
	}
	return out
}

var (
	fakeThread   = regexp.MustCompile(`(?i)^\s*(?:re|fwd?|aw)\s*:`)
	fakeUrgency  = regexp.MustCompile(`(?i)\b(?:urgent|act now|last chance|final notice|expires? (?:today|tonight|soon)|only \d+ (?:hours?|spots?|left)|hurry|immediate action|don't miss)\b`)
	spamPatterns = []struct {
		rule    string
		points  float64
		pattern *regexp.Regexp
	}{
		{"spam.guaranteed", 1.5, regexp.MustCompile(`(?i)\b(?:100\s?% )?guaranteed\b|\b100\s?% (?:free|satisf\w+)`)},
		{"spam.dearfriend", 1.5, regexp.MustCompile(`(?i)^dear (?:friend|sir|madam|customer|user)\b`)},
		{"spam.millions", 2, regexp.MustCompile(`(?i)\bmillions? (?:of )?(?:dollars|euros|usd)\b|\$\d+ ?(?:million|m)\b`)},
		{"spam.freemoney", 1.5, regexp.MustCompile(`(?i)\b(?:free money|earn \$|make money fast|risk.free|no obligation|winner|you have won|cash bonus)\b`)},
		{"spam.clickhere", 1, regexp.MustCompile(`(?i)\bclick (?:here|below|now)\b`)},
		{"spam.remove", 0.5, regexp.MustCompile(`(?i)\bto be removed\b|\bremove me\b`)},
	}
)

// deceptive tells why a subject is not truthful; "" when it is.
func deceptive(subject string) string {
	switch {
	case fakeThread.MatchString(subject):
		return "opens like an answer or a forward, and there is no earlier mail"
	case fakeUrgency.MatchString(subject):
		return "presses the reader with an urgency that no evidence gives"
	case capitals(subject) > 0.6 && len(subject) > 6:
		return "is written in capitals"
	}
	return ""
}

func capitals(s string) float64 {
	upper, letters := 0, 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
			if unicode.IsUpper(r) {
				upper++
			}
		}
	}
	if letters == 0 {
		return 0
	}
	return float64(upper) / float64(letters)
}

// spam adds up what filters dislike, with the name of each rule that hit.
func spam(e email) (points float64, hits []string) {
	hit := func(rule string, p float64) {
		points += p
		hits = append(hits, fmt.Sprintf("%s (%.1f)", rule, p))
	}
	whole := subjectOf(e) + "\n" + e.BodyText
	for _, s := range spamPatterns {
		if s.pattern.MatchString(whole) {
			hit(s.rule, s.points)
		}
	}
	if capitals(e.BodyText) > 0.3 {
		hit("spam.capitals", 1)
	}
	if strings.Count(whole, "!") > 1 {
		hit("spam.exclamations", 0.5*float64(strings.Count(whole, "!")-1))
	}
	if n := len(text.Addresses(e.BodyText)); n > 6 {
		hit("spam.links", 1)
	}
	if strings.TrimSpace(e.BodyText) == "" {
		hit("spam.notext", 2)
	}
	return points, hits
}

// legal adds the checks of one mail that are about more than its claims.
func legal(e email, checked *draft.Checked) {
	for _, rung := range e.SubjectLadder {
		if why := deceptive(rung.Text); why != "" {
			checked.Add("email.subject.truthful", false, draft.Block, fmt.Sprintf("“%s” %s", rung.Text, why))
		}
		if rung.Len > draft.Rule("email.subject.long").Max() {
			checked.Add("email.subject.long", false, draft.Warn, fmt.Sprintf("“%s” has %d characters; most clients cut at 60", rung.Text, rung.Len))
		}
	}
	if len(e.SubjectLadder) == 0 {
		checked.Add("email.subject.truthful", false, draft.Block, "no subject has evidence")
	}
	if points, hits := spam(e); points > 0 {
		severity := draft.Warn
		if points >= 3 {
			severity = draft.Block
		}
		checked.Add("email.spam", false, severity, fmt.Sprintf("%.1f points: %s", points, strings.Join(hits, ", ")))
	}
	if plain := plainOf(e.BodyHTML); plain != normal(e.BodyText) {
		checked.Add("email.text", false, draft.Block, "the plain-text part and the formatted part differ")
	}
}

var tagOrSpace = regexp.MustCompile(`<[^>]*>|\s+`)

// plainOf is what a reader sees of formatted text, on one line.
func plainOf(formatted string) string {
	return normal(html.UnescapeString(tagOrSpace.ReplaceAllString(formatted, " ")))
}

func normal(s string) string { return strings.Join(strings.Fields(s), " ") }

// bodyHTML formats a plain-text body: paragraphs and links, nothing else.
func bodyHTML(plain string) string {
	var b strings.Builder
	for _, paragraph := range strings.Split(plain, "\n\n") {
		b.WriteString("<p>")
		offset := 0
		for _, link := range text.Addresses(paragraph) {
			b.WriteString(escape(paragraph[offset:link.Start]))
			fmt.Fprintf(&b, `<a href="%s">%s</a>`, html.EscapeString(link.Text), html.EscapeString(link.Text))
			offset = link.End
		}
		b.WriteString(escape(paragraph[offset:]) + "</p>\n")
	}
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(html.EscapeString(s), "\n", "<br>\n") }

func asset(e email, origin string) sdk.Asset {
	return sdk.Asset{Kind: "email", Channel: "email", Title: fmt.Sprintf("E-mail %d: %s", e.N, text.CutGraphemes(subjectOf(e), 60)), Origin: origin}
}
