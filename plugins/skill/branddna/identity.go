package branddna

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// linkedData is the part of JSON-LD that names a brand.
type linkedData struct {
	Type     json.RawMessage `json:"@type"`
	Graph    []linkedData    `json:"@graph"`
	Name     string          `json:"name"`
	Category string          `json:"applicationCategory"`
	Logo     json.RawMessage `json:"logo"`
}

var namingTypes = regexp.MustCompile(`Organization|WebSite|SoftwareApplication|Product|Corporation|LocalBusiness|WebApplication|MobileApplication`)

func linked(p *page) []linkedData {
	var out []linkedData
	p.doc.Find(`script[type="application/ld+json"]`).Each(func(_ int, s *goquery.Selection) {
		var one linkedData
		var many []linkedData
		raw := []byte(s.Text())
		switch {
		case json.Unmarshal(raw, &many) == nil:
			out = append(out, many...)
		case json.Unmarshal(raw, &one) == nil:
			out = append(append(out, one), one.Graph...)
		}
	})
	kept := out[:0]
	for _, item := range out {
		if namingTypes.Match(item.Type) {
			kept = append(kept, item)
		}
	}
	return kept
}

// headlineOf is the title of a readme: the collector names it, a plain text begins with it.
func headlineOf(r source.Readme) string {
	if r.Headline != "" {
		return r.Headline
	}
	first, _, _ := strings.Cut(strings.TrimSpace(r.Excerpt), "\n")
	title, ok := strings.CutPrefix(first, "# ")
	if !ok || text.WordCount(title) > 4 { // a longer line is a slogan, not a name
		return ""
	}
	return strings.TrimSpace(title)
}

// identity names the brand from its home page, else from its repository.
func identity(home *page, repo *source.Repo, hint string) brand.Identity {
	if home == nil {
		return repoIdentity(repo, hint)
	}
	out := brand.Identity{URL: home.url.String(), Description: home.meta(`meta[name="description"]`, "content")}
	data := linked(home)
	for _, item := range data {
		if out.Name == "" {
			out.Name = text.OneLine(item.Name, 80)
		}
		if out.Category == "" && !strings.HasSuffix(item.Category, "Application") {
			out.Category = text.OneLine(item.Category, 60)
		}
	}
	for _, candidate := range []string{hint, out.Name, home.meta(`meta[property="og:site_name"]`, "content"), home.meta(`meta[name="application-name"]`, "content"), titleName(home), domainLabel(home.url)} {
		if candidate != "" && !text.Instruction(candidate) {
			out.Name = candidate
			break
		}
	}
	for _, b := range home.blocks {
		if n := text.WordCount(b.text); b.tag == "h1" && n >= 3 && n <= 14 && !text.Instruction(b.text) {
			out.Tagline = b.text
			break
		}
	}
	if description := home.meta(`meta[property="og:description"]`, "content"); out.Tagline == "" && description != "" {
		out.Tagline = firstSentence(description)
	}
	if out.Category == "" {
		out.Category = categoryOf(out, home)
	}
	out.Logo = logo(home, data, out.Name)
	return out
}

func repoIdentity(repo *source.Repo, hint string) brand.Identity {
	out := brand.Identity{Name: hint, Description: text.OneLine(repo.Project.Description, 500)}
	headline := headlineOf(repo.Readme)
	for _, candidate := range []string{repo.Project.Name, headline} {
		if out.Name == "" && !text.Instruction(candidate) {
			out.Name = text.OneLine(candidate, 80)
		}
	}
	if i := strings.LastIndex(out.Name, "/"); i >= 0 {
		out.Name = out.Name[i+1:]
	}
	if headline = text.OneLine(headline, 80); strings.EqualFold(headline, out.Name) {
		out.Name = headline // written as the project writes it
	}
	if len(repo.Deploy.URLs) > 0 {
		out.URL = repo.Deploy.URLs[0]
	}
	for _, b := range source.Markdown(repo.Readme.Excerpt) {
		if b.Lead && !text.Instruction(b.Text) {
			if first := firstSentence(b.Text); draft.FitForCopy(first) {
				out.Tagline = first
			}
			if out.Description == "" {
				out.Description = text.OneLine(b.Text, 500)
			}
		}
	}
	if text.Instruction(out.Description) {
		out.Description = out.Tagline
	}
	out.Category = categoryIn(out.Name, out.Description, out.Tagline)
	return out
}

func firstSentence(s string) string {
	if spans := text.Sentences(s); len(spans) > 0 {
		return spans[0].Text
	}
	return s
}

var titleBreak = regexp.MustCompile(`\s+[|–—·•-]\s+|:\s+`)

// titleName is the part of the title that is the domain's own label.
func titleName(p *page) string {
	label := strings.ToLower(domainLabel(p.url))
	for _, part := range titleBreak.Split(text.OneLine(p.doc.Find("title").First().Text(), 200), -1) {
		if strings.ToLower(strings.ReplaceAll(part, " ", "")) == strings.ReplaceAll(label, "-", "") {
			return part
		}
	}
	return ""
}

func domainLabel(u *url.URL) string {
	labels := strings.Split(strings.TrimPrefix(u.Hostname(), "www."), ".")
	return labels[0]
}

var categoryPattern = regexp.MustCompile(`(?i)\b(?:is|are) an? ((?:[\p{L}-]+ ){0,3}(?:app|tool|library|framework|platform|service|system|queue|database|editor|planner|monitor|notebook|plugin|extension|server|client|engine|language|store|marketplace|game|course|newsletter|agency|studio|shop|cms|crm|api|cli|sdk|generator|tracker|dashboard|assistant|runtime|package|module|website|bot))\b`)

var categoryTail = regexp.MustCompile(`(?i)^an? ((?:[\p{L}-]+ ){0,3}(?:app|tool|library|framework|platform|service|system|queue|database|editor|planner|monitor|notebook|plugin|extension|server|client|engine|cms|crm|api|cli|sdk|generator|tracker|dashboard|assistant|runtime|package|module|bot))\b`)

func categoryOf(identity brand.Identity, home *page) string {
	texts := []string{identity.Description, identity.Tagline}
	for _, b := range home.blocks[:min(len(home.blocks), 12)] {
		texts = append(texts, b.text)
	}
	return categoryIn(identity.Name, texts...)
}

// categoryIn finds what the brand calls itself: “X is a job queue”, “A CMS that …”.
func categoryIn(_ string, texts ...string) string {
	for _, pattern := range []*regexp.Regexp{categoryPattern, categoryTail} {
		for _, s := range texts {
			if m := pattern.FindStringSubmatch(s); m != nil && !text.Instruction(s) {
				return strings.ToLower(strings.TrimSpace(m[1]))
			}
		}
	}
	return ""
}

func logo(home *page, data []linkedData, name string) *brand.Logo {
	for _, item := range data {
		var address string
		var object struct{ URL string }
		if json.Unmarshal(item.Logo, &address) == nil && address != "" || json.Unmarshal(item.Logo, &object) == nil && object.URL != "" {
			if found := home.absolute(address + object.URL); found != "" {
				return &brand.Logo{URL: found, Kind: "jsonld", Confidence: 0.9}
			}
		}
	}
	var found *brand.Logo
	home.doc.Find(`header a img, nav a img, a[href="/"] img`).EachWithBreak(func(_ int, s *goquery.Selection) bool {
		alt := strings.ToLower(s.AttrOr("alt", ""))
		if src := home.absolute(s.AttrOr("src", "")); src != "" && (alt == "" || strings.Contains(alt, "logo") || strings.Contains(alt, strings.ToLower(name))) {
			found = &brand.Logo{URL: src, Kind: "header", Confidence: 0.7}
		}
		return found == nil
	})
	if found != nil {
		return found
	}
	for _, selector := range []string{`link[rel="mask-icon"]`, `link[rel="apple-touch-icon"]`, `link[rel~="icon"]`} {
		if href := home.meta(selector, "href"); href != "" {
			return &brand.Logo{URL: home.absolute(href), Kind: "icon", Confidence: 0.4}
		}
	}
	return nil
}
