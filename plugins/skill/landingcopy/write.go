package landingcopy

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// work is what one call writes from.
type work struct {
	*brand.Desk
	in  input
	env *draft.Envelope
}

const (
	maxHeadline    = 70
	maxSub         = 160
	maxTitle       = 60
	maxDescription = 155
	minValueProps  = 3
	maxValueProps  = 5
	maxFAQ         = 8
	maxSteps       = 4
)

// write drafts the page from the facts. A part without evidence stays empty and becomes a question.
func (w *work) write() (page, error) {
	p := emptyPage()
	p.Hero = w.hero()
	if p.Hero.Headline == "" {
		return p, draft.NothingToSay("a landing page")
	}
	props := w.valueProps()
	p.FAQ = w.faq()
	if len(props) >= minValueProps {
		if w.wants("valueProps") {
			p.ValueProps = props
		}
		w.lower(&p)
	} else {
		w.env.Gap("capability", "Which three things does the product do, in a sentence each?", "Fewer than three supported capabilities are known, so the page has hero and questions only.")
	}
	if !w.wants("faq") {
		p.FAQ = []question{}
	} else if len(p.FAQ) < 4 {
		w.env.Gap("faq", "What do people ask before they start: data, price, limits, support?", "An answer is only written where a source gives it.")
	}
	if w.wants("meta") {
		p.Meta = w.meta(p.Hero)
	}
	if w.wants("finalCta") {
		p.FinalCTA = p.Hero.CTA
	}
	p.render(w.Brand)
	return p, nil
}

// lower fills what stands below the value props.
func (w *work) lower(p *page) {
	if w.wants("howItWorks") {
		p.HowItWorks = w.steps()
	}
	if w.wants("socialProof") {
		p.SocialProof = w.all(draft.Proof, 3)
		if len(p.SocialProof) == 0 {
			w.env.Gap("proof", "Which result or customer can you show, with a source?", "Proof is only used when it was read or stated; none is made up.")
		}
	}
	if w.wants("objections") {
		p.Objections = append(w.all(draft.Limit, 2), w.all(draft.Comparison, 1)...)
	}
}

func (w *work) hero() hero {
	h := hero{CTA: w.callToAction()}
	identity := w.DNA().Identity
	var category []string
	for _, s := range []string{identity.Tagline, w.first(draft.Headline, maxHeadline), w.first(draft.Proof, maxHeadline), w.first(draft.Capability, maxHeadline), draft.FirstSentence(w.in.Product.What)} {
		if s = draft.Fit(s, maxHeadline, text.Graphemes); s != "" && draft.Supported(w.Index, s) {
			h.Headline = strings.TrimSuffix(s, ".")
			break
		}
	}
	if identity.Category != "" && len(w.DNA().Audience) > 0 {
		category = append(category, w.Brand+" is "+article(identity.Category)+" "+identity.Category+" for "+w.DNA().Audience[0].Who+".")
	}
	candidates := append([]string{w.in.Product.What, identity.Description}, category...)
	if fact, ok := w.Pool.Best(draft.Capability, nil); ok {
		candidates = append(candidates, draft.Realise(fact))
	}
	best := -1.0
	for _, s := range candidates {
		s = draft.Fit(draft.Period(s), maxSub, text.Graphemes)
		if s == "" || text.StemOverlap(s, h.Headline) > 0.7 || !draft.Supported(w.Index, s) {
			continue
		}
		score := text.Cosine(s, identity.Category) + text.Cosine(s, w.in.TrafficSource) + 0.2*(1-w.Index.CopyRisk(s))
		if score > best {
			best, h.Sub = score, s
		}
	}
	if h.Headline == "" && h.Sub != "" {
		h.Headline = w.Brand // nothing known is short enough for a headline
	}
	if proof := w.all(draft.Proof, 1); len(proof) > 0 {
		h.Proof = proof[0].Text
	}
	return h
}

func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiouAEIOU", rune(noun[0])) {
		return "an"
	}
	return "a"
}

func (w *work) first(role draft.Role, limit int) string {
	_, words, ok := w.Best(role, limit, text.Graphemes)
	if !ok {
		return ""
	}
	return words
}

// all returns the supported statements of a role, best first.
func (w *work) all(role draft.Role, limit int) []sourced {
	out := []sourced{}
	for _, fact := range w.Pool.All(role) {
		words := draft.Realise(fact)
		if len(out) < limit && draft.Supported(w.Index, words) {
			out = append(out, sourced{words, []string{fact.ID}})
		}
	}
	return out
}

// valueProps are the pillars of the brand with what it says under each, then further headed capabilities.
func (w *work) valueProps() []valueProp {
	out := []valueProp{}
	add := func(feature, benefit string, ids ...string) {
		feature = strings.TrimRight(text.OneLine(feature, 80), ".")
		if len(out) == maxValueProps || feature == "" || !draft.Supported(w.Index, benefit) || !draft.Supported(w.Index, feature) {
			return
		}
		for _, other := range out {
			if strings.EqualFold(other.Feature, feature) || strings.Contains(other.Benefit, benefit) || text.StemOverlap(other.Benefit, benefit) > 0.5 {
				return
			}
		}
		out = append(out, valueProp{feature, benefit, ids})
	}
	for _, pillar := range w.DNA().Pillars {
		if text.StemOverlap(pillar.Name, w.DNA().Identity.Tagline) < 0.8 {
			add(pillar.Name, draft.Period(pillar.Summary), pillar.EvidenceIDs...)
		}
	}
	for _, fact := range w.Pool.All(draft.Capability) {
		if fact.Heading != "" && text.WordCount(fact.Heading) <= 8 && fact.Heading != w.DNA().Identity.Tagline && !genericHeading.MatchString(fact.Heading) {
			add(fact.Heading, draft.Realise(fact), fact.ID)
		}
	}
	for _, fact := range w.Pool.All(draft.Capability) {
		short := draft.FirstSentence(draft.Realise(fact))
		if rest := strings.TrimSpace(strings.TrimPrefix(draft.Realise(fact), short)); rest != "" {
			add(short, rest, fact.ID)
		}
	}
	return out
}

var genericHeading = regexp.MustCompile(`(?i)^(?:features?|overview|about|usage|install(?:ation)?|faq|questions|limits?|results?|readme|introduction|getting started|quick ?start|how it works|pricing)$`)

// steps are what the source itself lists as steps; nothing is turned into a step that is none.
func (w *work) steps() []string {
	out := []string{}
	for _, fact := range w.Facts {
		if draft.StepHeading(fact.Heading) && draft.FitForCopy(fact.Text) && len(out) < maxSteps && draft.Supported(w.Index, fact.Text) {
			out = append(out, draft.Period(fact.Text))
		}
	}
	if len(out) == 0 {
		w.env.Gap("how", "Which steps does a new user take, in order?", "No source lists them.")
	}
	return out
}

// faq takes the questions that the sources answer, then those that a limit or a price answers.
func (w *work) faq() []question {
	out := []question{}
	add := func(q, a string, ids ...string) {
		if len(out) < maxFAQ && a != "" && draft.Supported(w.Index, q+" "+a) {
			out = append(out, question{q, a, ids})
		}
	}
	for _, fact := range w.Pool.All(draft.Answer) {
		add(fact.Question, draft.Period(fact.Text), fact.ID)
	}
	prices := w.all(draft.Price, 4)
	var words, ids []string
	for _, price := range prices {
		words, ids = append(words, price.Text), append(ids, price.EvidenceIDs...)
	}
	if len(words) > 0 {
		add("What does it cost?", strings.Join(words, " "), ids...)
	} else {
		w.env.Gap("price", "What does it cost?", "No price was found, and readers look for one.")
	}
	if limits := w.all(draft.Limit, 1); len(limits) > 0 {
		add("What does it not do?", limits[0].Text, limits[0].EvidenceIDs...)
	}
	return out
}

func (w *work) meta(h hero) meta {
	var m meta
	for _, s := range []string{w.Brand + ": " + draft.Lower(h.Headline), w.Brand + ": " + w.DNA().Identity.Category, h.Headline, w.Brand} {
		if text.Graphemes(s) <= maxTitle && (s == w.Brand || draft.Supported(w.Index, s)) {
			m.Title = s
			break
		}
	}
	for _, s := range []string{h.Sub, w.DNA().Identity.Description, h.Headline} {
		if s = draft.Fit(s, maxDescription, text.Graphemes); s != "" && draft.Supported(w.Index, s) {
			m.Description = s
			break
		}
	}
	return m
}

// actionWords lead from the wanted action to the address and the label of its page, best first.
var actionWords = map[string][]string{
	"signup": {"signup", "sign-up", "register", "join", "start", "try", "connect", "upload", "create", "calculate"}, "buy": {"buy", "checkout", "order", "pricing", "plans"},
	"book": {"book", "demo", "contact", "call"}, "install": {"install", "download", "quickstart", "docs", "get-started"}, "waitlist": {"waitlist", "early-access", "signup"},
}

var actionLabels = map[string]string{"signup": "Sign up", "buy": "See the price", "book": "Book a time", "install": "Install it", "waitlist": "Join the list"}

// callToAction links to a page that exists: one the site links to, else a route of the repository on the known address.
func (w *work) callToAction() *cta {
	known := w.DNA().CTAs
	for _, word := range actionWords[w.in.PrimaryAction] {
		for _, c := range known {
			if u, err := url.Parse(c.Href); err == nil && (strings.Contains(strings.ToLower(u.Path), word) || strings.Contains(strings.ToLower(c.Text), word)) {
				return &cta{c.Text, c.Href}
			}
		}
	}
	home := w.in.Product.URL
	if home == "" {
		home = w.DNA().Identity.URL
	}
	if path := w.Repo.Find(actionWords[w.in.PrimaryAction]...); path != "" && home != "" {
		if u, err := url.Parse(home); err == nil {
			u.Path, u.RawQuery = path, ""
			return &cta{actionLabels[w.in.PrimaryAction], u.String()}
		}
	}
	if len(known) > 0 {
		return &cta{known[0].Text, known[0].Href}
	}
	return nil
}

// given takes the caller's own texts into the page without changing them.
func (w *work) given() page {
	p := emptyPage()
	p.Hero.CTA = w.callToAction()
	for _, s := range w.in.Drafts.Sections {
		switch s.Path {
		case "meta.title":
			p.Meta.Title = s.Text
		case "meta.description":
			p.Meta.Description = s.Text
		case "hero.headline":
			p.Hero.Headline = s.Text
		case "hero.sub":
			p.Hero.Sub = s.Text
		case "hero.proof":
			p.Hero.Proof = s.Text
		default:
			p.extra = append(p.extra, draft.Slot{Path: s.Path, Text: s.Text, Claims: []ground.Claim{}})
		}
	}
	p.render(w.Brand)
	return p
}
