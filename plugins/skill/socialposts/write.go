package socialposts

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// post is one drafted post.
type post struct {
	AssetID     string       `json:"assetId"`
	Platform    string       `json:"platform"`
	Angle       string       `json:"angle"`
	Hook        string       `json:"hook"`
	Body        string       `json:"body"`
	CTA         string       `json:"cta"`
	Hashtags    []string     `json:"hashtags"`
	MediaBrief  *mediaBrief  `json:"mediaBrief,omitempty"`
	Counts      counts       `json:"counts"`
	Slot        slot         `json:"slot"`
	UTMURL      string       `json:"utmUrl,omitempty"`
	EvidenceIDs []string     `json:"evidenceIds"`
	Scores      draft.Scores `json:"scores"`
}

type mediaBrief struct {
	Kind       string `json:"kind"`
	WhatToShow string `json:"whatToShow"`
	AltText    string `json:"altText"`
	Source     string `json:"source"`
}

type counts struct {
	Weighted  int `json:"weighted"`
	Graphemes int `json:"graphemes"`
	FoldAt    int `json:"foldAt"`
}

type slot struct {
	Day    string `json:"day"`
	Window string `json:"window"`
	Reason string `json:"reason"`
}

// platform is what differs between the three places.
type platform struct {
	name      string
	limit     string // rule of the hard limit
	fold      int    // characters shown before a reader opens the post
	lines     int    // statements of a post
	tags      int
	linkInBio bool
}

var platforms = map[string]platform{
	"x":         {name: "x", limit: "x.post.max", fold: 280, lines: 2, tags: 1},
	"linkedin":  {name: "linkedin", limit: "linkedin.post.max", fold: 210, lines: 4, tags: 3},
	"instagram": {name: "instagram", limit: "instagram.caption.max", fold: 125, lines: 3, tags: 5, linkInBio: true},
}

// write drafts the posts: for each platform the angles that have evidence, each with facts no earlier post opened with.
func (w *work) write(ctx context.Context, c *sdk.Call, out *output) error {
	var bodies, openings []string
	for _, name := range w.in.Platforms {
		p := platforms[name]
		made := 0
		labels := map[string]bool{"": false} // on one platform at most one post opens with “New:”
		for round := 0; round < 2 && made < w.in.PerPlatform; round++ {
			for _, angle := range draft.Angles {
				if made == w.in.PerPlatform {
					break
				}
				drafted, lines, ok := w.compose(p, angle, openings, labels)
				if !ok || slices.ContainsFunc(bodies, func(other string) bool { return text.NearDuplicate(other, drafted.Body) > 0.35 }) {
					continue
				}
				kept, err := w.keep(ctx, c, out, p, drafted, append(slices.Clone(bodies), drafted.Body))
				if err != nil {
					return err
				}
				if kept {
					for _, line := range lines {
						w.Pool.Take(line.Fact)
					}
					bodies = append(bodies, drafted.Body)
					openings = append(openings, opening(drafted.Hook))
					labels[draft.Label(drafted.Hook)] = draft.Label(drafted.Hook) != ""
					made++
				}
			}
		}
		out.Requested += w.in.PerPlatform
		if made < w.in.PerPlatform {
			out.Because = append(out.Because, fmt.Sprintf("%s: the evidence carries %d posts that open differently, not %d", name, made, w.in.PerPlatform))
		}
	}
	if len(out.Posts) == 0 {
		f := draft.NothingToSay("posts")
		if len(out.Dropped) > 0 {
			f.Message += " The nearest attempt: " + out.Dropped[0].Reason
		}
		return f
	}
	return nil
}

// opening is how a post begins; no two begin alike. A label such as “New:” does not count.
func opening(s string) string {
	words := strings.Fields(strings.ToLower(draft.Unlabelled(s)))
	return strings.Join(words[:min(3, len(words))], " ")
}

// maxLeads is how many openings an angle may try before it is given up.
const maxLeads = 5

// compose tells one angle within the limits of a platform. It shortens by whole statements, never inside one.
func (w *work) compose(p platform, angle draft.Angle, openings []string, labels map[string]bool) (post, []draft.Line, bool) {
	tried := map[string]bool{}
	for range maxLeads {
		lines, ok := draft.Story(w.Pool, w.Index, angle, p.lines, func(lead draft.Fact) bool { return !tried[lead.Text] })
		if !ok {
			break
		}
		tried[lines[0].Fact.Text] = true
		for _, hook := range draft.Hooks(lines[0].Fact, w.Index) {
			if slices.Contains(openings, opening(hook)) || labels[draft.Label(hook)] || text.Graphemes(hook) > p.fold || !draft.Supported(w.Index, hook) {
				continue
			}
			if drafted, used, ok := w.fit(p, angle, hook, lines); ok {
				return drafted, used, true
			}
		}
	}
	return post{}, nil, false
}

// fit assembles as many of the statements and tags as the platform takes.
func (w *work) fit(p platform, angle draft.Angle, hook string, lines []draft.Line) (post, []draft.Line, bool) {
	rule := draft.Rule(p.limit)
	cta, address := w.callToAction(p)
	for used := len(lines); used >= 1; used-- {
		for tags := min(p.tags, len(w.tags)); tags >= 0; tags-- {
			first, body := w.assemble(p, hook, lines[:used], cta, w.tags[:tags])
			if rule.Measure(body) > rule.Max() {
				continue
			}
			return post{
				Platform: p.name, Angle: angle.Name, Hook: first, Body: body, CTA: cta, Hashtags: slices.Clone(w.tags[:tags]),
				UTMURL: address, MediaBrief: w.media(p, lines), EvidenceIDs: []string{},
			}, lines[:used], true
		}
	}
	return post{}, nil, false
}

// assemble joins the parts of a post; the first part is the opening.
func (w *work) assemble(p platform, hook string, lines []draft.Line, cta string, tags []string) (opening, body string) {
	parts := []string{hook}
	if answer := lines[0].Fact; answer.Role == draft.Answer {
		parts = append(parts, draft.Period(answer.Text))
	} else if rest := remainder(draft.Realise(lines[0].Fact), hook); rest != "" && p.name != "x" {
		parts = append(parts, rest)
	}
	for _, line := range lines[1:] {
		parts = append(parts, line.Text)
	}
	parts = append(draft.Named(parts, w.Brand), cta)
	if len(tags) > 0 {
		parts = append(parts, strings.Join(tags, " "))
	}
	gap := "\n\n"
	if p.name == "x" {
		gap = "\n"
	}
	return parts[0], strings.Join(parts, gap)
}

// remainder is what a statement says after its first sentence, when the hook is that sentence.
func remainder(whole, hook string) string {
	if rest, ok := strings.CutPrefix(whole, hook); ok {
		return strings.TrimSpace(rest)
	}
	return ""
}

// callToAction asks for one thing: to follow the known link, or to answer when no link is known.
func (w *work) callToAction(p platform) (cta, address string) {
	if w.link == "" {
		return "Questions? Reply here.", ""
	}
	address = draft.WithUTM(w.link, "social", p.name, w.campaign)
	label := w.label
	if label == "" {
		label = map[string]string{"signup": "Try it", "awareness": "Read more", "feedback": "Try it and tell us what is missing", "traffic": "See it here"}[w.in.Goal]
	}
	if p.linkInBio {
		return label + ": link in profile.", address
	}
	return label + ": " + address, address
}

// media says which picture a post needs. Instagram takes no post without one.
func (w *work) media(p platform, lines []draft.Line) *mediaBrief {
	if p.name == "x" {
		return nil
	}
	shown := lines[0]
	for _, line := range lines {
		if line.Role == draft.Change || line.Role == draft.Capability {
			shown = line
			break
		}
	}
	what := strings.TrimRight(draft.Unlabelled(draft.FirstSentence(shown.Text)), ".")
	where := "screenshot of the product"
	if path := w.shownRoute(); path != "" {
		where = "screenshot of route " + path
	}
	return &mediaBrief{Kind: "screenshot", WhatToShow: what, AltText: "Screenshot of " + w.Brand + ": " + draft.Lower(what), Source: where}
}

func (w *work) shownRoute() string {
	if w.link != "" {
		if u, err := url.Parse(w.link); err == nil && u.Path != "" && u.Path != "/" {
			return u.Path
		}
	}
	if len(w.Repo.Routes) > 0 {
		return w.Repo.Routes[0].Path
	}
	return ""
}

// keep checks a post and stores it when nothing blocks; a post that fails is named, not shown.
func (w *work) keep(ctx context.Context, c *sdk.Call, out *output, p platform, drafted post, siblings []string) (bool, error) {
	checked := w.judge(p, drafted, siblings)
	if !checked.Publishable {
		out.Dropped = append(out.Dropped, dropped{p.name, drafted.Angle + ": " + firstBlock(checked.Checks)})
		return false, nil
	}
	return true, w.store(ctx, c, out, drafted, checked, "deterministic")
}

func (w *work) judge(p platform, drafted post, siblings []string) draft.Checked {
	checker := draft.Checker{Index: w.Index}
	checked := checker.Check([]draft.Slot{{Path: "body", Text: drafted.Body, LimitRef: p.limit}}, siblings)
	if rule := draft.Rule(p.name + ".hashtags.max"); len(drafted.Hashtags) > rule.Max() {
		severity := draft.Warn
		if rule.Kind == "hard" {
			severity = draft.Block
		}
		checked.Add(rule.Rule, false, severity, fmt.Sprintf("%d hashtags of %d", len(drafted.Hashtags), rule.Max()))
	}
	if p.name == "instagram" && drafted.MediaBrief == nil {
		checked.Add("instagram.media.required", false, draft.Block, "no picture or video is named")
	}
	if text.Graphemes(drafted.Hook) > p.fold {
		checked.Add(p.name+".fold", false, draft.Warn, fmt.Sprintf("the opening has %d characters; %d show", text.Graphemes(drafted.Hook), p.fold))
	}
	return checked
}

func firstBlock(checks []sdk.Check) string {
	for _, check := range checks {
		if !check.OK && check.Severity == draft.Block {
			return check.Rule + ": " + check.Detail
		}
	}
	return "blocked"
}

func (w *work) store(ctx context.Context, c *sdk.Call, out *output, drafted post, checked draft.Checked, origin string) error {
	drafted.Counts = counts{Weighted: text.XWeight(drafted.Body), Graphemes: text.Graphemes(drafted.Body), FoldAt: platforms[drafted.Platform].fold}
	drafted.EvidenceIDs = checked.EvidenceIDs()
	drafted.Scores = draft.Scores{GroundedShare: checked.Grounded, GenericityRisk: checked.Risk.Score, LimitViolations: checked.Violations, Publishable: checked.Publishable}
	asset := sdk.Asset{Kind: "social_post", Channel: drafted.Platform, Title: title(drafted), Origin: origin}
	view, err := out.Store(ctx, c, asset, checked, map[string]any{"post": drafted})
	if err != nil {
		return err
	}
	drafted.AssetID = view.ID
	out.Posts = append(out.Posts, drafted)
	return nil
}

func title(p post) string {
	names := map[string]string{"x": "X", "linkedin": "LinkedIn", "instagram": "Instagram"}
	return names[p.Platform] + " post: " + text.CutGraphemes(strings.ReplaceAll(p.Hook, "\n", " "), 60)
}

// denied are tags that say nothing about the subject; platforms rank posts with them lower.
var denied = map[string]bool{"marketing": true, "viral": true, "explore": true, "reels": true, "startup": true, "business": true, "tech": true, "follow": true, "love": true, "new": true, "average": true}

// hashtags are the brand's own subjects, as one word each.
func hashtags(w *work) []string {
	var phrases []string
	for _, pillar := range w.DNA().Pillars {
		phrases = append(phrases, pillar.Keyphrases...)
	}
	var blocks []string
	for _, item := range w.Items {
		if !text.Instruction(item.Text()) {
			blocks = append(blocks, item.Quote)
		}
	}
	for _, phrase := range text.Keyphrases(blocks, 12) {
		phrases = append(phrases, phrase.Text)
	}
	out := []string{}
	for _, phrase := range phrases {
		words := text.ContentTokens(phrase)
		if len(words) == 0 || len(words) > 2 || denied[words[0].Lower] || slices.ContainsFunc(words, func(t text.Token) bool { return w.Index.Brand(t.Stem) || t.Number || !w.Index.Has(t.Stem) }) {
			continue
		}
		tag := "#"
		for _, word := range words {
			tag += camel(word.Text)
		}
		if len(words) == 1 && (text.PageShare(words[0].Stem) > 0.2 || strings.HasSuffix(words[0].Lower, "ly") || strings.HasSuffix(words[0].Lower, "ed")) || len(tag) < 4 {
			continue
		}
		if !slices.ContainsFunc(out, func(other string) bool { return strings.EqualFold(other, tag) }) {
			out = append(out, tag)
		}
	}
	return out[:min(5, len(out))]
}

func camel(word string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, word)
	return draft.Capital(letters)
}
