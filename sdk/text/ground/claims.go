package ground

import (
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// Types of claims. Each has its own rule of support.
const (
	Numeric     = "numeric"
	Capability  = "capability"
	Comparison  = "comparison"
	Superlative = "superlative"
	SocialProof = "social_proof"
	Price       = "price"
	Available   = "availability"
	Date        = "date"
	TimeToValue = "time_to_value"
	Guarantee   = "guarantee"
	NoClaim     = "none"
)

// Verdicts on a claim.
const (
	Supported    = "supported"
	Partial      = "partial"
	Unsupported  = "unsupported"
	Contradicted = "contradicted"
	NotAClaim    = "not_a_claim"
)

// Claim is a sentence of a draft with what the evidence says about it.
type Claim struct {
	Span        [2]int   `json:"span"`
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	EvidenceIDs []string `json:"evidenceIds"`
	Support     float64  `json:"support"`
	Verdict     string   `json:"verdict"`
	Why         string   `json:"why,omitempty"`
}

var (
	socialPattern      = regexp.MustCompile(`(?i)\b(?:trusted by|loved by|used by|chosen by|join (?:over |more than )?[\d,]+|rated\b|stars? (?:on|from)|customers? (?:say|love|trust|rate)|testimonial|award|as seen (?:in|on)|reviews?\b.{0,20}\d|\d[\d,.]*\+? (?:happy |active |paying )?(?:customers|users|teams|companies|developers|downloads|stars|reviews))|[“"][^”"]{12,}[”"]\s*[—–-]\s*\p{Lu}`)
	pricePattern       = regexp.MustCompile(`(?i)[$€£]\s?\d|\b\d+(?:\.\d+)?\s?(?:usd|eur|gbp|dollars|euros)\b|\bfree (?:plan|tier|trial|forever|account|of charge|to use|for)\b|\b(?:is|are|it's|completely|totally) free\b|\bper (?:month|year|seat|user)\b|\bdiscount\b|\b\d+\s?% off\b`)
	availabilityWords  = regexp.MustCompile(`(?i)\b(?:now available|available (?:now|today|on|in|for)|in stock|sold out|coming soon|launch(?:es|ing)? (?:on|today|tomorrow|next)|out now|in (?:public |private |open )?beta|generally available|while (?:stocks?|supplies) last)\b`)
	datePattern        = regexp.MustCompile(`(?i)\b(?:\d{4}-\d{2}-\d{2}|(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.? \d{1,2}(?:st|nd|rd|th)?|since (?:19|20)\d\d|(?:in|from|until|by) (?:19|20)\d\d)\b`)
	timeVaguePattern   = regexp.MustCompile(`(?i)\b(?:in|within|under|just) (?:a (?:few )?)?(?:seconds?|minutes?|hours?|days?|no time)\b|\binstantly\b|\bin real.?time\b|\bimmediately\b`)
	timeNumberPattern  = regexp.MustCompile(`(?i)\b(?:in|within|under|less than|only|just) (?:\d+|one|two|three|four|five|ten|a) ?(?:s|ms|sec|seconds?|minutes?|min|hours?|days?|clicks?|lines?|commands?|steps?)\b`)
	comparisonPattern  = regexp.MustCompile(`(?i)\b(?:than|versus|vs\.?|compared (?:to|with)|unlike|instead of|alternative to|outperforms?|beats?|better|faster|cheaper|easier|simpler|smaller|larger|quicker|safer|smarter|stronger|twice|\d+x|\d+ times)\b`)
	superlativePattern = regexp.MustCompile(`(?i)\b(?:best|fastest|easiest|cheapest|simplest|smallest|largest|biggest|safest|smartest|strongest|quickest|lowest|highest|greatest|most (?:\w+)|least (?:\w+)|leading|number one|no\. ?1|#1|world.class|market.leading|industry.leading|award.winning|unmatched|unrivall?ed|unbeatable|only (?:tool|app|product|platform|solution|one) )\b`)
	guaranteePattern   = regexp.MustCompile(`(?i)\b(?:guarantee[sd]?|always|never|100\s?%|risk.free|no risk|unlimited|zero (?:\w+)|fully|completely|every single|no (?:downtime|bugs|errors))\b`)
	greetingPattern    = regexp.MustCompile(`(?i)^(?:hi|hello|hey|dear|thanks|thank you|cheers|best|regards|kind regards|sincerely|welcome)\b[^.!?]{0,40}[.!,]?$`)
	negationPattern    = regexp.MustCompile(`(?i)\b(?:not|no|never|without|cannot|can't|won't|doesn't|don't|isn't|aren't|nothing|none|neither|lacks?|unable|didn't|wasn't)\b`)
)

// callWords open a sentence that asks the reader to do something with the page, not one that says something about the product.
var callWords = map[string]bool{
	"try": true, "start": true, "sign": true, "get": true, "read": true, "see": true, "join": true, "book": true, "install": true, "reply": true, "tell": true,
	"ask": true, "check": true, "learn": true, "visit": true, "download": true, "subscribe": true, "contact": true, "open": true, "browse": true, "view": true,
	"watch": true, "follow": true, "request": true, "give": true, "share": true, "let": true, "write": true, "buy": true, "order": true, "take": true, "look": true,
	"questions": true, "feedback": true, "link": true, "details": true, "more": true, "docs": true, "source": true, "code": true,
}

// FindClaims splits s into sentences and says of each whether it claims something, and what kind of thing. Verdicts are
// filled in by Index.Check. A declarative sentence with two content words is at least a capability claim: silence about
// a sentence would be a loophole.
func FindClaims(s string) []Claim {
	spans := text.Sentences(s)
	claims := make([]Claim, 0, len(spans))
	for _, span := range spans {
		kind := claimType(span.Text)
		claim := Claim{Span: [2]int{span.Start, span.End}, Type: kind, Text: span.Text, EvidenceIDs: []string{}}
		if kind == NoClaim {
			claim.Verdict = NotAClaim
		}
		claims = append(claims, claim)
	}
	return claims
}

func claimType(sentence string) string {
	body := withoutLinks(sentence)
	content := 0
	for _, token := range text.ContentTokens(body) {
		if !strings.HasPrefix(token.Text, "#") {
			content++
		}
	}
	trimmed := strings.TrimRight(strings.TrimSpace(body), " )\"”'")
	switch {
	case content == 0, onlyHashtags(body), greetingPattern.MatchString(trimmed):
		return NoClaim
	case socialPattern.MatchString(body):
		return SocialProof
	case pricePattern.MatchString(body):
		return Price
	case superlativePattern.MatchString(body):
		return Superlative
	case comparisonPattern.MatchString(body):
		return Comparison
	case timeVaguePattern.MatchString(body), timeNumberPattern.MatchString(body):
		return TimeToValue
	case guaranteePattern.MatchString(body):
		return Guarantee
	case datePattern.MatchString(body):
		return Date
	case availabilityWords.MatchString(body):
		return Available
	case len(text.Quantities(body)) > 0:
		return Numeric
	case strings.HasSuffix(trimmed, "?"):
		return NoClaim
	case isCall(body, content):
		return NoClaim
	case content < 2:
		return NoClaim
	}
	return Capability
}

// isCall tells whether a sentence is a pure call to action: it opens with a call word and adds at most a few words.
func isCall(body string, content int) bool {
	tokens := text.Tokens(body)
	return len(tokens) > 0 && callWords[tokens[0].Lower] && content <= 6
}

func withoutLinks(s string) string {
	s = strings.TrimPrefix(s, "Show HN: ")             // the name of a place, no statement
	s = strings.Replace(s, ": link in profile", "", 1) // where links cannot be followed
	var b strings.Builder
	offset := 0
	for _, link := range text.Addresses(s) {
		b.WriteString(s[offset:link.Start])
		offset = link.End
	}
	b.WriteString(s[offset:])
	return b.String()
}

func onlyHashtags(s string) bool {
	fields := strings.Fields(s)
	for _, field := range fields {
		if !strings.HasPrefix(field, "#") {
			return false
		}
	}
	return len(fields) > 0
}

func negated(sentence string) bool {
	return len(negationPattern.FindAllString(sentence, -1))%2 == 1
}

// IsPrice tells whether a sentence states a price.
func IsPrice(sentence string) bool { return pricePattern.MatchString(sentence) }

// IsComparison tells whether a sentence sets the product against something else.
func IsComparison(sentence string) bool { return comparisonPattern.MatchString(sentence) }
