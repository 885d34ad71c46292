package advariants

import (
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// finding is a break of an ad policy, with the way out.
type finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Span     string `json:"span"`
	Fix      string `json:"fix"`
}

// policies are the editorial rules of both platforms as patterns. meta marks those that hold on Meta only.
var policies = []struct {
	rule, severity, fix string
	pattern             *regexp.Regexp
	meta                bool
}{
	{"policy.punctuation", draft.Block, "Use one mark, and plain letters.", regexp.MustCompile(`[!?.,]{2,}|(?:\b\p{L}\.){4,}\p{L}?\b|\b(?:\p{L} ){3,}\p{L}\b|\b[a-z]+[013457@$][a-z]{2,}\b`), false},
	{"policy.punctuation", draft.Block, "No exclamation mark in a headline.", regexp.MustCompile(`!`), false},
	{"policy.emoji", draft.Block, "Leave symbols out.", regexp.MustCompile(`[\x{1F000}-\x{1FAFF}\x{2600}-\x{27BF}•●▪►★✓✔➤]|^\s*[-*]\s`), false},
	{"policy.clickhere", draft.Block, "Say what happens after the click.", regexp.MustCompile(`(?i)\bclick (?:here|now|below)\b|\bbuy (?:it )?here\b|\b\w+ here buy\b`), false},
	{"policy.capitals", draft.Block, "Write words in small letters.", regexp.MustCompile(`\b\p{Lu}{4,} \p{Lu}{4,}\b`), false},
	{"policy.phone", draft.Block, "Put the number into a call asset.", regexp.MustCompile(`(?:\+|00)?\d[\d ()-]{8,}\d`), false},
	{"policy.guarantee", draft.Block, "Leave the promise out.", regexp.MustCompile(`(?i)\bguaranteed?\b|\b100 ?% (?:safe|free|effective)\b|\brisk.free\b`), false},
	{"policy.superlative", draft.Block, "Leave the comparison out, or show who says so.", regexp.MustCompile(`(?i)\b(?:best|no\.? ?1|#1|cheapest|fastest|leading|top.rated|world.class)\b`), false},
	{"meta.attributes", draft.Block, "Speak of the product, not of the reader's traits.", regexp.MustCompile(`(?i)\b(?:are you|you are|you're) (?:\w+ ){0,2}(?:overweight|fat|depressed|anxious|broke|in debt|bankrupt|single|divorced|gay|muslim|christian|jewish|black|disabled|diabetic|old|poor|pregnant|unemployed|a felon)\b|\byour (?:debt|depression|diabetes|disability|religion|weight problem|criminal record)\b`), true},
	{"meta.beforeafter", draft.Block, "Show no before and after of a person.", regexp.MustCompile(`(?i)\bbefore (?:and|&) after\b|\blose \d+ ?(?:kg|lbs?|pounds)\b`), true},
}

// regulatedWords are claims that the rules for special trades forbid.
var regulatedWords = map[string]*regexp.Regexp{
	"health":     regexp.MustCompile(`(?i)\b(?:cures?|heals?|treats?|miracle|no side effects|clinically proven)\b`),
	"finance":    regexp.MustCompile(`(?i)\b(?:get rich|double your|guaranteed returns?|no credit check|instant approval)\b`),
	"housing":    regexp.MustCompile(`(?i)\b(?:no children|adults only|christian|exclusive neighbou?rhood)\b`),
	"employment": regexp.MustCompile(`(?i)\b(?:young|recent graduates only|men only|women only|earn up to)\b`),
	"credit":     regexp.MustCompile(`(?i)\b(?:bad credit|no credit|instant loan|guaranteed approval)\b`),
	"politics":   regexp.MustCompile(`(?i)\b(?:vote for|vote against|defeat|elect)\b`),
}

// judge lists what policies say against a text.
func judge(s, platform, regulated string, rivals []string) []finding {
	var out []finding
	add := func(rule, severity, span, fix string) { out = append(out, finding{rule, severity, span, fix}) }
	for _, p := range policies {
		if p.meta && platform != "meta" || p.rule == "policy.punctuation" && p.pattern.String() == "!" && platform == "meta" {
			continue
		}
		if hit := p.pattern.FindString(s); hit != "" {
			add(p.rule, p.severity, strings.TrimSpace(hit), p.fix)
		}
	}
	if pattern := regulatedWords[regulated]; pattern != nil {
		if hit := pattern.FindString(s); hit != "" {
			add("policy."+regulated, draft.Block, hit, "Leave it out; this trade has special rules.")
		}
	}
	for _, rival := range rivals {
		if rival != "" && strings.Contains(strings.ToLower(s), strings.ToLower(rival)) {
			add("policy.trademark", draft.Block, rival, "Leave the other product's name out of the ad text.")
		}
	}
	return out
}

var orderWords = regexp.MustCompile(`(?i)^(?:also|then|that's why|therefore|and|but|so|next|finally|plus)\b`)

// combinationRisk is the share of three headlines that read badly together: two say the same, or one needs another before it.
func combinationRisk(headlines []headline) float64 {
	bad, all := 0, 0
	for i := range headlines {
		for j := i + 1; j < len(headlines); j++ {
			for k := j + 1; k < len(headlines); k++ {
				all++
				a, b, c := headlines[i].Text, headlines[j].Text, headlines[k].Text
				if tooAlike(a, b) || tooAlike(a, c) || tooAlike(b, c) || orderWords.MatchString(a) || orderWords.MatchString(b) || orderWords.MatchString(c) {
					bad++
				}
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(bad) / float64(all)
}

func tooAlike(a, b string) bool { return text.StemOverlap(a, b) > 0.5 }
