package advariants

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

type googleAds struct {
	AdGroups []adGroup `json:"adGroups"`
}

type adGroup struct {
	Theme     string    `json:"theme"`
	Keywords  []keyword `json:"keywords"`
	Negatives []string  `json:"negatives"`
	RSAs      []rsa     `json:"rsas"`
	Sitelinks []link    `json:"sitelinks"`
	Callouts  []string  `json:"callouts"`
}

type keyword struct {
	Text  string `json:"text"`
	Match string `json:"match"`
}

type link struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

type rsa struct {
	AssetID         string     `json:"assetId"`
	FinalURL        string     `json:"finalUrl"`
	Path1           string     `json:"path1"`
	Path2           string     `json:"path2"`
	Headlines       []headline `json:"headlines"`
	Descriptions    []line     `json:"descriptions"`
	CombinationRisk float64    `json:"combinationRisk"`
}

type headline struct {
	Text string `json:"text"`
	Len  int    `json:"len"`
	Role string `json:"role"`
}

type line struct {
	Text string `json:"text"`
	Len  int    `json:"len"`
}

type metaAd struct {
	AssetID       string `json:"assetId"`
	Angle         string `json:"angle"`
	PrimaryText   string `json:"primaryText"`
	Headline      string `json:"headline"`
	Description   string `json:"description"`
	CTA           string `json:"cta"`
	CreativeBrief string `json:"creativeBrief"`
}

// work is what one call writes from.
type work struct {
	*brand.Desk
	in  input
	out *output
}

const (
	maxHeadlines    = 15
	maxDescriptions = 4
	minHeadlines    = 3
	minDescriptions = 2
)

func (w *work) rivals() []string {
	var out []string
	for _, c := range w.DNA().Competitors {
		out = append(out, c.Name)
	}
	return out
}

// passes tells whether a text may stand in an ad: short enough, supported, and nothing in the policies against it.
func (w *work) passes(s, platform string, limit int, rule string) bool {
	if s == "" || draft.Rule(rule).Measure(s) > limit || !draft.Supported(w.Index, s) {
		return false
	}
	found := judge(s, platform, w.in.Regulated, w.rivals())
	return len(found) == 0
}

// google drafts one responsive search ad per call. Google shows any three headlines together, so no two say the same.
func (w *work) google(ctx context.Context, c *sdk.Call) error {
	ad := rsa{FinalURL: w.in.Offer.URL, Headlines: w.headlines(), Descriptions: w.descriptions()}
	if len(ad.Headlines) < minHeadlines || len(ad.Descriptions) < minDescriptions {
		w.out.Because = append(w.out.Because, fmt.Sprintf("google: the evidence carries %d headlines and %d descriptions; an ad needs %d and %d", len(ad.Headlines), len(ad.Descriptions), minHeadlines, minDescriptions))
		w.out.Gap("headlines", "Which short facts set the product apart (at most 30 characters each)?", "Nothing is made up to fill an ad.")
		return nil
	}
	if len(ad.Headlines) < maxHeadlines {
		w.out.Because = append(w.out.Because, fmt.Sprintf("google: %d of %d headlines are grounded", len(ad.Headlines), maxHeadlines))
		w.out.Gap("headlines", "Which further results, features or prices may an ad name?", fmt.Sprintf("%d more headlines would give Google more combinations.", maxHeadlines-len(ad.Headlines)))
	}
	ad.Path1, ad.Path2 = w.paths()
	ad.CombinationRisk = combinationRisk(ad.Headlines)
	var slots []draft.Slot
	for i, h := range ad.Headlines {
		slots = append(slots, draft.Slot{Path: fmt.Sprintf("headlines[%d]", i), Text: h.Text, LimitRef: "rsa.headline.max"})
	}
	for i, d := range ad.Descriptions {
		slots = append(slots, draft.Slot{Path: fmt.Sprintf("descriptions[%d]", i), Text: d.Text, LimitRef: "rsa.description.max"})
	}
	checked := w.check(slots, "google")
	view, err := w.out.Store(ctx, c, sdk.Asset{Kind: "search_ad", Channel: "google_ads", Title: "Search ad for " + w.Brand, Origin: draft.Deterministic}, checked, map[string]any{"rsa": ad})
	if err != nil {
		return err
	}
	ad.AssetID = view.ID
	group := adGroup{Theme: w.theme(), Keywords: w.keywords(), Negatives: w.negatives(), RSAs: []rsa{ad}, Sitelinks: w.sitelinks(), Callouts: []string{}}
	w.out.Google = &googleAds{AdGroups: []adGroup{group}}
	return nil
}

func (w *work) check(slots []draft.Slot, platform string) draft.Checked {
	checked := draft.Checker{Index: w.Index}.Check(slots, nil)
	for _, s := range slots {
		for _, f := range judge(s.Text, platform, w.in.Regulated, w.rivals()) {
			w.out.Policy = append(w.out.Policy, f)
			checked.Add(f.Rule, false, f.Severity, s.Path+": “"+f.Span+"”. "+f.Fix)
		}
	}
	return checked
}

// headlines collects short grounded lines by role: keyword, outcome, proof, feature, offer, call, brand.
func (w *work) headlines() []headline {
	rule := draft.Rule("rsa.headline.max")
	out := []headline{}
	add := func(role, s string) {
		s = strings.TrimRight(strings.TrimSpace(s), ".:")
		if len(out) == maxHeadlines || !w.passes(s, "google", rule.Max(), rule.Rule) || text.WordCount(s) < 2 && role != "brand" {
			return
		}
		if slices.ContainsFunc(out, func(h headline) bool { return tooAlike(h.Text, s) || strings.EqualFold(h.Text, s) }) {
			return
		}
		out = append(out, headline{s, rule.Measure(s), role})
	}
	if text.Graphemes(w.Brand) <= rule.Max() {
		out = append(out, headline{w.Brand, rule.Measure(w.Brand), "brand"})
	}
	for _, pillar := range w.DNA().Pillars {
		add("feature", pillar.Name)
	}
	for _, k := range w.keywords() {
		if slices.Contains(w.in.Keywords, k.Text) || w.heads(k.Text) {
			add("keyword", draft.Capital(k.Text))
		}
	}
	for _, role := range []draft.Role{draft.Proof, draft.Capability, draft.Change, draft.Headline, draft.Audience} {
		name := map[draft.Role]string{draft.Proof: "proof", draft.Headline: "feature", draft.Audience: "audience"}[role]
		if name == "" {
			name = "outcome"
		}
		for _, f := range w.Pool.All(role) {
			add(name, draft.Capital(draft.FromTo(f.Text)))
			add(name, f.Heading)
			add(name, draft.Unlabelled(draft.Fit(draft.Realise(f), rule.Max(), text.Graphemes)))
		}
	}
	for _, f := range w.Pool.All(draft.Price) {
		add("offer", draft.Realise(f))
	}
	for _, cta := range w.DNA().CTAs {
		add("cta", cta.Text)
	}
	return out
}

// heads tells whether a phrase stands in a heading of the brand: a phrase found in running text may be a torn one.
func (w *work) heads(phrase string) bool {
	return slices.ContainsFunc(w.Facts, func(f draft.Fact) bool { return strings.Contains(strings.ToLower(f.Heading), phrase) })
}

func (w *work) descriptions() []line {
	rule := draft.Rule("rsa.description.max")
	out := []line{}
	for _, role := range []draft.Role{draft.Capability, draft.Proof, draft.Change, draft.Audience, draft.Capability, draft.Answer} {
		for _, f := range w.Pool.All(role) {
			s := draft.Fit(draft.Realise(f), rule.Max(), text.Graphemes)
			if len(out) == maxDescriptions || !w.passes(s, "google", rule.Max(), rule.Rule) || slices.ContainsFunc(out, func(l line) bool { return tooAlike(l.Text, s) }) {
				continue
			}
			out = append(out, line{s, rule.Measure(s)})
			if role != draft.Capability {
				break
			}
		}
	}
	return out
}

func (w *work) theme() string {
	if category := w.DNA().Identity.Category; category != "" {
		return category
	}
	return text.OneLine(w.in.Offer.What, 60)
}

// keywords are those given, else the brand's own subjects.
func (w *work) keywords() []keyword {
	phrases := slices.Clone(w.in.Keywords)
	if len(phrases) == 0 {
		for _, pillar := range w.DNA().Pillars {
			phrases = append(phrases, pillar.Keyphrases...)
		}
		var blocks []string
		for _, f := range w.Facts {
			blocks = append(blocks, f.Text)
		}
		for _, k := range text.Keyphrases(blocks, 12) {
			phrases = append(phrases, k.Text)
		}
	}
	out := []keyword{}
	for _, p := range phrases {
		p = strings.ToLower(text.OneLine(p, 80))
		if text.WordCount(p) >= 2 && len(out) < 12 && !text.Instruction(p) && !slices.ContainsFunc(out, func(k keyword) bool { return k.Text == p }) {
			out = append(out, keyword{p, "phrase"})
		}
	}
	return out
}

// lookers are words of people who look for something else than a product.
var lookers = []string{"jobs", "salary", "course", "tutorial", "pdf", "definition", "wikipedia", "template", "crack", "torrent", "internship", "meaning", "essay", "lyrics"}

// negatives keep out searches that the product does not answer. A word that the evidence uses is not one.
func (w *work) negatives() []string {
	out := []string{}
	for _, word := range lookers {
		if !w.Index.Has(text.Stem(word)) {
			out = append(out, word)
		}
	}
	return out
}

func (w *work) paths() (first, second string) {
	limit := draft.Rule("rsa.path.max").Max()
	words := strings.Fields(strings.ToLower(w.theme()))
	for _, word := range words {
		if slug := draft.Slug(word, limit); slug != "run" && first == "" {
			first = slug
		} else if slug != "run" && second == "" {
			second = slug
		}
	}
	return first, second
}

func (w *work) sitelinks() []link {
	out := []link{}
	for _, cta := range w.DNA().CTAs {
		if text.Graphemes(cta.Text) <= 25 && len(out) < 4 && cta.Href != w.in.Offer.URL {
			out = append(out, link{cta.Text, cta.Href})
		}
	}
	return out
}

// meta drafts variants that differ by angle and by evidence.
func (w *work) meta(ctx context.Context, c *sdk.Call) error {
	for _, angle := range draft.Angles {
		if len(w.out.Meta) == w.in.Variants {
			break
		}
		ad, lines, ok := w.metaAd(angle)
		if !ok {
			continue
		}
		slots := []draft.Slot{{Path: "primaryText", Text: ad.PrimaryText, LimitRef: "meta.primary.show"}, {Path: "headline", Text: ad.Headline, LimitRef: "meta.headline.show"}}
		if ad.Description != "" {
			slots = append(slots, draft.Slot{Path: "description", Text: ad.Description, LimitRef: "meta.description.show"})
		}
		checked := w.check(slots, "meta")
		if !checked.Publishable {
			continue
		}
		view, err := w.out.Store(ctx, c, sdk.Asset{Kind: "social_ad", Channel: "meta_ads", Title: "Meta ad: " + ad.Headline, Origin: draft.Deterministic}, checked, map[string]any{"ad": ad})
		if err != nil {
			return err
		}
		for _, l := range lines {
			w.Pool.Take(l.Fact)
		}
		ad.AssetID = view.ID
		w.out.Meta = append(w.out.Meta, ad)
		w.out.Angles = append(w.out.Angles, ad.Angle)
	}
	if len(w.out.Meta) < w.in.Variants {
		w.out.Because = append(w.out.Because, fmt.Sprintf("meta: requested %d, produced %d: no further angle has evidence of its own", w.in.Variants, len(w.out.Meta)))
	}
	return nil
}

func (w *work) metaAd(angle draft.Angle) (metaAd, []draft.Line, bool) {
	used := func(s string) bool {
		return slices.ContainsFunc(w.out.Meta, func(m metaAd) bool { return tooAlike(m.PrimaryText, s) || tooAlike(m.Headline, s) })
	}
	fits := func(f draft.Fact) bool {
		s := draft.Fit(draft.Realise(f), draft.Rule("meta.primary.show").Max(), text.Graphemes)
		return w.passes(s, "meta", 125, "meta.primary.show") && !used(s)
	}
	lines, ok := draft.Story(w.Pool, w.Index, angle, 2, fits)
	if !ok {
		return metaAd{}, nil, false
	}
	ad := metaAd{Angle: angle.Name, PrimaryText: draft.Fit(lines[0].Text, draft.Rule("meta.primary.show").Max(), text.Graphemes), CTA: w.cta()}
	for _, h := range w.headlines() {
		if h.Role == "brand" || tooAlike(h.Text, ad.PrimaryText) || used(h.Text) {
			continue
		}
		if ad.Headline == "" {
			ad.Headline = h.Text
		} else if ad.Description == "" && !tooAlike(h.Text, ad.Headline) {
			ad.Description = h.Text
		}
	}
	if ad.Headline == "" {
		return metaAd{}, nil, false
	}
	shown := draft.Unlabelled(strings.TrimRight(draft.FirstSentence(lines[len(lines)-1].Text), "."))
	ad.CreativeBrief = "Screenshot of " + w.Brand + ": " + draft.Lower(shown)
	return ad, lines, true
}

// cta is one of the platform's own buttons, by where the offer leads.
func (w *work) cta() string {
	path := ""
	if u, err := url.Parse(w.in.Offer.URL); err == nil {
		path = strings.ToLower(u.Path)
	}
	for _, rule := range []struct{ word, cta string }{{"signup", "SIGN_UP"}, {"register", "SIGN_UP"}, {"download", "DOWNLOAD"}, {"install", "DOWNLOAD"}, {"book", "BOOK_NOW"}, {"demo", "BOOK_NOW"}, {"pricing", "SEE_DETAILS"}, {"shop", "SHOP_NOW"}, {"buy", "SHOP_NOW"}} {
		if strings.Contains(path, rule.word) {
			return rule.cta
		}
	}
	return "LEARN_MORE"
}
