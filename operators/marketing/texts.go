package marketing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// channelText is what is drafted for one channel: named slots, the main text first.
type channelText struct {
	channel string
	kind    string
	title   string
	slots   []draft.Slot
	checked draft.Checked
	asset   draft.AssetView
}

func (t channelText) slot(path string) string {
	for _, s := range t.slots {
		if s.Path == path {
			return s.Text
		}
	}
	return ""
}

// teller writes the texts of the channels that no skill covers.
type teller struct {
	*brand.Desk
	link string
	used map[string]bool // statements that another community text tells already
}

// lines returns up to n supported statements of a role, worded for readers. Statements told elsewhere come last, so that
// two communities do not read the same text.
func (t *teller) lines(role draft.Role, n int) []string {
	var fresh, told []string
	for _, fact := range t.Pool.All(role) {
		words := draft.Realise(fact)
		if role == draft.Answer || !draft.Supported(t.Index, words) || slices.Contains(fresh, words) {
			continue
		}
		if t.used[words] {
			told = append(told, words)
		} else {
			fresh = append(fresh, words)
		}
	}
	out := append(fresh, told...)
	return out[:min(n, len(out))]
}

// news is the change that matters most, wherever else it is told.
func (t *teller) news() string {
	for _, fact := range t.Pool.All(draft.Change) {
		if words := draft.Realise(fact); draft.Supported(t.Index, words) {
			return words
		}
	}
	return ""
}

func (t *teller) mark(lines []string) []string {
	for _, line := range lines {
		t.used[line] = true
	}
	return lines
}

// tagline is what the product is, in at most limit characters.
func (t *teller) tagline(limit int) string {
	candidates := []string{t.DNA().Identity.Tagline}
	for _, role := range []draft.Role{draft.Headline, draft.Change, draft.Capability} {
		for _, fact := range t.Pool.All(role) {
			candidates = append(candidates, draft.Unlabelled(draft.Realise(fact)))
		}
	}
	if category := t.DNA().Identity.Category; category != "" {
		candidates = append(candidates, draft.Capital(category))
	}
	for _, s := range candidates {
		if s = strings.TrimSuffix(draft.Fit(s, limit, text.Graphemes), "."); s != "" && text.WordCount(s) >= 2 && draft.Supported(t.Index, s) {
			return s
		}
	}
	return ""
}

// what is the sentence that says what the product does.
func (t *teller) what() string {
	for _, s := range append([]string{t.DNA().Identity.Description}, t.lines(draft.Capability, 3)...) {
		if s = draft.Period(s); s != "" && text.Graphemes(s) <= 300 && draft.Supported(t.Index, s) {
			return s
		}
	}
	return ""
}

// fill joins paragraphs as long as they fit.
func fill(parts []string, limit int) string {
	out := ""
	for _, part := range parts {
		if part == "" || strings.Contains(out, part) {
			continue
		}
		joined := strings.TrimSpace(out + "\n\n" + part)
		if text.Graphemes(joined) > limit {
			continue
		}
		out = joined
	}
	return out
}

// changelog lists what changed.
func (t *teller) changelog() (channelText, bool) {
	news := t.lines(draft.Change, 10)
	if len(news) == 0 {
		return channelText{}, false
	}
	var b strings.Builder
	head := t.Brand
	if t.Repo.Project.Version != "" {
		head += " " + text.OneLine(t.Repo.Project.Version, 40)
	}
	fmt.Fprintf(&b, "## %s\n\n", head)
	for _, line := range news {
		b.WriteString("- " + line + "\n")
	}
	return channelText{channel: chChangelog, kind: "changelog", title: "Changelog entry", slots: []draft.Slot{{Path: "body", Text: strings.TrimSpace(b.String())}}}, true
}

func (t *teller) productHunt() (channelText, bool) {
	tagline := t.tagline(draft.Rule("ph.tagline.max").Max())
	name := text.CutGraphemes(t.Brand, draft.Rule("ph.name.max").Max())
	description := strings.ReplaceAll(fill(append([]string{t.what()}, append(t.lines(draft.Change, 2), t.lines(draft.Audience, 1)...)...), draft.Rule("ph.description.max").Max()), "\n\n", " ")
	if tagline == "" || description == "" || name == "" {
		return channelText{}, false
	}
	comment := append(t.lines(draft.Problem, 1), t.lines(draft.Change, 3)...)
	comment = append(append(comment, t.lines(draft.Proof, 1)...), t.lines(draft.Limit, 1)...)
	return channelText{channel: chPH, kind: "launch_post", title: "Product Hunt: " + tagline, slots: []draft.Slot{
		{Path: "tagline", Text: tagline, LimitRef: "ph.tagline.max"},
		{Path: "name", Text: name, LimitRef: "ph.name.max"},
		{Path: "description", Text: description, LimitRef: "ph.description.max"},
		{Path: "firstComment", Text: fill(append(comment, "Questions? Ask here."), draft.Rule("ph.comment.show").Max()), LimitRef: "ph.comment.show"},
	}}, true
}

func (t *teller) hackerNews() (channelText, bool) {
	prefix := "Show HN: " + t.Brand + " – "
	limit := draft.Rule("hn.title.max").Max() - text.Graphemes(prefix)
	if limit < 12 {
		return channelText{}, false
	}
	tagline := t.tagline(limit)
	story := append([]string{t.what()}, t.lines(draft.Problem, 1)...)
	story = append(append(story, t.mark(t.lines(draft.Capability, 3))...), t.lines(draft.Limit, 1)...)
	body := fill(append(story, "Questions? Ask here."), 1500)
	if tagline == "" || len(story) < 2 {
		return channelText{}, false
	}
	return channelText{channel: chHN, kind: "launch_post", title: prefix + tagline, slots: []draft.Slot{
		{Path: "title", Text: prefix + tagline, LimitRef: "hn.title.max"},
		{Path: "firstComment", Text: body},
	}}, true
}

func (t *teller) devTo() (channelText, bool) {
	title := draft.Fit(t.Brand+": "+t.tagline(90), draft.Rule("devto.title.max").Max(), text.Graphemes)
	var parts []string
	section := func(heading string, lines []string) {
		if len(lines) > 0 {
			parts = append(parts, "## "+heading, strings.Join(lines, "\n\n"))
		}
	}
	section("The problem", t.mark(t.lines(draft.Problem, 2)))
	section("What changed", t.mark(t.lines(draft.Change, 5)))
	section("How it works", t.mark(slices.DeleteFunc(t.lines(draft.Capability, 6), func(s string) bool { return text.StemOverlap(s, title) > 0.6 })))
	section("Results", t.lines(draft.Proof, 1))
	section("Limits", t.lines(draft.Limit, 2))
	if len(parts) < 4 || title == "" {
		return channelText{}, false
	}
	if t.link != "" {
		parts = append(parts, "Try it: "+draft.WithUTM(t.link, "community", "devto", "launch"))
	}
	return channelText{channel: chDevTo, kind: "launch_post", title: title, slots: []draft.Slot{
		{Path: "title", Text: title, LimitRef: "devto.title.max"},
		{Path: "body", Text: strings.Join(parts, "\n\n")},
	}}, true
}

func (t *teller) reddit() (channelText, bool) {
	news := t.news()
	if news == "" {
		return channelText{}, false
	}
	title := draft.Fit(draft.Named([]string{news}, t.Brand)[0], draft.Rule("reddit.title.max").Max(), text.Graphemes)
	body := fill(append(append(append(t.lines(draft.Audience, 1), t.lines(draft.Capability, 2)...), t.lines(draft.Limit, 1)...), "Questions? Ask here."), 1200)
	if title == "" || text.WordCount(body) < 12 {
		return channelText{}, false
	}
	return channelText{channel: chReddit, kind: "launch_post", title: "Reddit: " + title, slots: []draft.Slot{
		{Path: "title", Text: title, LimitRef: "reddit.title.max"}, {Path: "body", Text: body},
	}}, true
}

// maxAlike is how alike the texts of two communities may be.
const maxAlike = 0.8

// check judges a text, also against those of the other communities.
func (t *teller) check(ct *channelText, others []channelText) {
	ct.checked = draft.Checker{Index: t.Index}.Check(ct.slots, nil)
	if !slices.Contains([]string{chHN, chReddit, chDevTo}, ct.channel) {
		return
	}
	for _, other := range others {
		if slices.Contains([]string{chHN, chReddit, chDevTo}, other.channel) && text.NearDuplicate(whole(*ct), whole(other)) > maxAlike {
			ct.checked.Add("communities.distinct", false, draft.Block, "is nearly the text for "+channelTitle(other.channel))
		}
	}
	if ct.channel == chHN {
		for _, claim := range ct.checked.Claims {
			if claim.Type == ground.Superlative {
				ct.checked.Add("hn.tone", false, draft.Block, "a superlative does not belong on Hacker News: “"+claim.Text+"”")
			}
		}
	}
}

func whole(ct channelText) string {
	var parts []string
	for _, s := range ct.slots {
		parts = append(parts, s.Text)
	}
	return strings.Join(parts, "\n")
}

func (ct channelText) sdkAsset() sdk.Asset {
	return sdk.Asset{Kind: ct.kind, Channel: ct.channel, Title: text.CutGraphemes(ct.title, 120), Origin: draft.Deterministic}
}
