package draft

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// Severities of checks.
const (
	Block = "block"
	Warn  = "warn"
	Info  = "info"
)

// Slot is one piece of text of a draft with the rule that limits it.
type Slot struct {
	Path     string         `json:"path"`
	Text     string         `json:"text"`
	LimitRef string         `json:"limitRef,omitempty"`
	Count    int            `json:"count"`
	Claims   []ground.Claim `json:"claims"`
}

// Checked is a draft after every check that does not depend on who wrote it.
type Checked struct {
	Slots       []Slot
	Claims      []ground.Claim
	Checks      []sdk.Check
	Risk        ground.Risk
	Grounded    float64 // share of claims that are supported; 1 when nothing is claimed
	Violations  int     // hard limits broken
	Publishable bool
}

// Checker checks drafts against one set of evidence.
type Checker struct {
	Index *ground.Index
	// MergeFields are the fields like first_name that the sender fills in.
	MergeFields []string
}

// LowGrounding is the share of supported claims under which a draft is not publishable.
const LowGrounding = 0.9

var (
	votePattern   = regexp.MustCompile(`(?i)\b(?:up-?vot\w*|vote (?:for|us)|give us (?:a |your )?(?:vote|star|like)|please (?:like|share|retweet|repost)|like and share|tag a friend)\b`)
	sharePattern  = regexp.MustCompile(`(?i)https?://[^\s]*(?:/intent/(?:tweet|post)|/sharer?(?:\.php|/)|/share\?|shareArticle|/submitlink|/submit\?(?:url|title)=|api\.whatsapp\.com/send|share-offsite)`)
	bearerPattern = regexp.MustCompile(`(?i)\b(?:bearer\s+[a-z0-9._~+/-]{16,}|sk-[a-z0-9-]{16,}|ghp_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|xox[abprs]-[a-z0-9-]{10,}|akia[0-9a-z]{16}|spk_[a-z]+_[a-z0-9_]{16,}|eyJ[a-z0-9_-]{10,}\.[a-z0-9_-]{10,}\.[a-z0-9_-]{5,})`)
)

// Check judges the slots of one draft. siblings are the whole texts of all drafts of the set, this one included.
func (k Checker) Check(slots []Slot, siblings []string) Checked {
	out := Checked{Checks: []sdk.Check{}, Claims: []ground.Claim{}}
	var whole []string
	for _, slot := range slots {
		slot.Claims = k.Index.Check(slot.Text)
		slot.Count = text.Graphemes(slot.Text)
		if slot.LimitRef != "" {
			rule := Rule(slot.LimitRef)
			slot.Count = rule.Measure(slot.Text)
			out.limit(slot, rule)
		}
		out.Slots = append(out.Slots, slot)
		out.Claims = append(out.Claims, slot.Claims...)
		whole = append(whole, slot.Text)
		k.content(&out, slot)
	}
	body := strings.Join(whole, "\n")
	out.Grounded = groundedShare(out.Claims)
	out.Risk = k.Index.Genericity(body, siblings, out.Claims)
	if out.Risk.Score >= ground.MediumBelow {
		out.add("genericity", false, Block, fmt.Sprintf("score %.2f: %s", out.Risk.Score, firstReason(out.Risk)))
	}
	if out.Grounded < LowGrounding {
		out.add("grounding", false, Block, fmt.Sprintf("%.0f %% of the claims trace to evidence, 90 %% are needed", 100*out.Grounded))
	}
	out.Publishable = true
	for _, check := range out.Checks {
		out.Publishable = out.Publishable && (check.OK || check.Severity != Block)
	}
	return out
}

func (c *Checked) add(rule string, ok bool, severity, detail string) {
	c.Checks = append(c.Checks, sdk.Check{Rule: rule, OK: ok, Severity: severity, Detail: detail})
}

// Add records a check that only the caller can make.
func (c *Checked) Add(rule string, ok bool, severity, detail string) {
	c.add(rule, ok, severity, detail)
	c.Publishable = c.Publishable && (ok || severity != Block)
}

func (c *Checked) limit(slot Slot, rule ChannelRule) {
	ok := slot.Count <= rule.Max()
	severity := Warn
	if rule.Kind == "hard" {
		severity = Block
		if !ok {
			c.Violations++
		}
	}
	c.add(rule.Rule, ok, severity, fmt.Sprintf("%s: %d of %d", slot.Path, slot.Count, rule.Max()))
}

// content finds what no channel should carry, whoever wrote it.
func (k Checker) content(out *Checked, slot Slot) {
	for _, claim := range slot.Claims {
		switch claim.Verdict {
		case ground.Unsupported, ground.Contradicted:
			out.add("claim."+claim.Verdict, false, Block, fmt.Sprintf("%s: “%s”: %s", slot.Path, claim.Text, claim.Why))
		case ground.Partial:
			out.add("claim.partial", false, Warn, fmt.Sprintf("%s: “%s”: %s", slot.Path, claim.Text, claim.Why))
		}
	}
	if found := text.Placeholders(slot.Text, k.MergeFields...); len(found) > 0 {
		out.add("placeholder", false, Block, slot.Path+": unfilled "+strings.Join(found, ", "))
	}
	if hit := votePattern.FindString(slot.Text); hit != "" {
		out.add("votes", false, Block, fmt.Sprintf("%s: asks for votes or shares (“%s”)", slot.Path, hit))
	}
	if sharePattern.MatchString(slot.Text) {
		out.add("share_link", false, Block, slot.Path+": holds a prefilled share link")
	}
	if bearerPattern.MatchString(slot.Text) {
		out.add("secret", false, Block, slot.Path+": holds something that looks like a key or token")
	}
	if text.Instruction(slot.Text) {
		out.add("instruction", false, Block, slot.Path+": speaks to a machine instead of a reader")
	}
	if strings.ContainsFunc(slot.Text, text.Invisible) {
		out.add("invisible", false, Block, slot.Path+": holds invisible characters")
	}
}

func groundedShare(claims []ground.Claim) float64 {
	judged, good := 0, 0
	for _, claim := range claims {
		if claim.Verdict == ground.NotAClaim {
			continue
		}
		judged++
		if claim.Verdict == ground.Supported {
			good++
		}
	}
	if judged == 0 {
		return 1
	}
	return float64(good) / float64(judged)
}

func firstReason(risk ground.Risk) string {
	if len(risk.WorstSentences) > 0 {
		return "“" + risk.WorstSentences[0].Text + "” " + risk.WorstSentences[0].Why
	}
	return risk.SwapTest.Reason
}

// EvidenceIDs are the items behind the supported claims, each once, in order.
func (c Checked) EvidenceIDs() []string {
	out := []string{}
	seen := map[string]bool{}
	for _, claim := range c.Claims {
		for _, id := range claim.EvidenceIDs {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}

// SDKClaims are the claims in the form that the host stores.
func (c Checked) SDKClaims() []sdk.Claim {
	out := make([]sdk.Claim, 0, len(c.Claims))
	for _, claim := range c.Claims {
		out = append(out, sdk.Claim{Text: claim.Text, Type: claim.Type, Verdict: claim.Verdict, Support: claim.Support, EvidenceIDs: claim.EvidenceIDs})
	}
	return out
}
