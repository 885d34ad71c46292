package marketing

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// channelView is a channel of a launch with how well it fits and why.
type channelView struct {
	ID            string         `json:"id"`
	Fit           float64        `json:"fit"`
	Why           string         `json:"why"`
	Assets        []string       `json:"assets"`
	Prerequisites []prerequisite `json:"prerequisites"`
	Rules         []string       `json:"rules"`
	When          string         `json:"when"`
}

type prerequisite struct {
	Text string `json:"text"`
	Met  bool   `json:"met"`
}

// Channels of a launch, in the order in which they are usually served.
const (
	chChangelog = "changelog"
	chEmail     = "email"
	chWebhook   = "webhook"
	chHN        = "hacker_news"
	chPH        = "product_hunt"
	chReddit    = "reddit"
	chDevTo     = "dev_to"
	chX         = "x"
	chLinkedIn  = "linkedin"
	chInstagram = "instagram"
)

var channelOrder = []string{chChangelog, chEmail, chWebhook, chHN, chPH, chDevTo, chReddit, chX, chLinkedIn, chInstagram}

var channelTitles = map[string]string{
	chChangelog: "Changelog", chEmail: "E-mail", chWebhook: "Webhook", chHN: "Hacker News", chPH: "Product Hunt", chReddit: "Reddit",
	chDevTo: "dev.to", chX: "X", chLinkedIn: "LinkedIn", chInstagram: "Instagram", "landing": "Landing page", "google_ads": "Google Ads", "meta_ads": "Meta Ads",
}

func channelTitle(id string) string { return cmp.Or(channelTitles[id], id) }

// minFit is the fit from which on a channel is served without being asked for.
const minFit = 0.4

var (
	developerHint = regexp.MustCompile(`(?i)\b(?:developers?|engineers?|programmers?|api|sdk|cli|library|framework|database|queue|docker|kubernetes|open.source|self.hosted|git|compiler|plugin|package|server|repository|devops|platform teams?|terminal|command line|webhooks?|postgres|sqlite|golang|typescript|python|rust)\b`)
	visualHint    = regexp.MustCompile(`(?i)\b(?:photos?|recipes?|bread|bakery|fashion|garden|home|travel|music|choir|art|design(?:ers?)?|food|fitness|wedding|pets?|kids|family|household|interior|jewell?ery|beauty)\b`)
	businessHint  = regexp.MustCompile(`(?i)\b(?:teams?|companies|agencies|institutes?|invoices?|sales|finance|hr|managers?|wholesalers?|freelancers?|consultants?|offices?|enterprise|compliance|auditors?|fleet|expenses?)\b`)
)

// signals say what kind of product this is, as far as the evidence tells.
type signals struct {
	developer, visual, business float64
	tryable                     bool // an address to open or a way to install is known
	pictures                    bool // somebody can take a picture of it: a page is known
}

func readSignals(d *brand.Desk, url string) signals {
	var all strings.Builder
	words := 0
	for _, fact := range d.Facts {
		all.WriteString(fact.Text + "\n")
		words += len(strings.Fields(fact.Text))
	}
	rate := func(p *regexp.Regexp) float64 {
		return min(1, 25*float64(len(p.FindAllString(all.String(), -1)))/float64(max(1, words)))
	}
	s := signals{developer: rate(developerHint), visual: rate(visualHint), business: rate(businessHint)}
	link, _ := brand.Destination(d.Record, d.Repo, url)
	s.tryable = link != "" || d.Repo.Find("install", "docs", "quickstart", "download") != ""
	s.pictures = link != "" || len(d.Repo.Routes) > 0
	return s
}

// fit says how well each channel suits the product. A missing prerequisite caps the fit: a channel whose rules cannot be
// kept is not worth its audience.
func fit(id string, s signals, news bool, connected map[string]bool) channelView {
	v := channelView{ID: id, Assets: []string{}, Prerequisites: []prerequisite{}, Rules: ruleNames(id), When: "after approval"}
	need := func(text string, met bool) { v.Prerequisites = append(v.Prerequisites, prerequisite{text, met}) }
	switch id {
	case chChangelog:
		v.Fit, v.Why = 0.9, "the readers one already has are told first"
		need("something changed", news)
	case chEmail:
		v.Fit, v.Why = 0.8, "the own list hears it first"
		need("a mail server is connected", connected["smtp"])
		need("recipients who agreed are named", connected["audience"])
	case chWebhook:
		v.Fit, v.Why = 0.8, "connected systems take the announcement"
		need("an address is connected", connected["webhook"])
	case chHN:
		v.Fit, v.Why = 0.25+0.75*s.developer, "readers build software"
		need("there is something to try", s.tryable)
	case chPH:
		v.Fit, v.Why = 0.5+0.2*s.business+0.2*s.visual, "readers look for new products"
		need("there is something to try", s.tryable)
		need("pictures of the product can be taken", s.pictures)
	case chDevTo:
		v.Fit, v.Why = 0.15+0.8*s.developer, "readers like to see how a thing was built"
	case chReddit:
		v.Fit, v.Why = 0.3+0.3*s.developer, "a fitting community may want to know; its own rules decide"
		need("somebody has read the rules of the community", false)
	case chX:
		v.Fit, v.Why = 0.5+0.2*s.developer, "short news travels here"
	case chLinkedIn:
		v.Fit, v.Why = 0.35+0.55*s.business, "readers buy for their work"
	case chInstagram:
		v.Fit, v.Why = 0.1+0.8*s.visual, "the product can be shown in pictures"
		need("pictures of the product can be taken", s.pictures)
	}
	met := 1.0
	for _, p := range v.Prerequisites {
		if !p.Met {
			met -= 0.5
		}
	}
	v.Fit = round2(min(v.Fit, max(0.2, met)))
	return v
}

func ruleNames(channel string) []string {
	out := []string{}
	for _, rule := range draft.ChannelRules(channel) {
		out = append(out, rule.Rule)
	}
	if slices.Contains([]string{chHN, chReddit, chDevTo}, channel) {
		for _, rule := range draft.ChannelRules("communities") {
			out = append(out, rule.Rule)
		}
	}
	return out
}

// checklist is what the person who posts should mind: the etiquette and what no check can see.
func checklist(channel string) []string {
	out := []string{}
	for _, rule := range draft.ChannelRules(channel) {
		if rule.Count == "" {
			out = append(out, rule.Text)
		}
	}
	return out
}

func round2(f float64) float64 { return float64(int(f*100+0.5)) / 100 }
