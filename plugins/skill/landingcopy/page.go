package landingcopy

import (
	"fmt"
	"html"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// page is the copy of a landing page, part by part.
type page struct {
	Meta        meta           `json:"meta"`
	Hero        hero           `json:"hero"`
	ValueProps  []valueProp    `json:"valueProps"`
	HowItWorks  []string       `json:"howItWorks"`
	SocialProof []sourced      `json:"socialProof"`
	Objections  []sourced      `json:"objections"`
	FAQ         []question     `json:"faq"`
	FinalCTA    *cta           `json:"finalCta,omitempty"`
	JSONLD      map[string]any `json:"jsonLd"`
	Markdown    string         `json:"markdown"`
	HTML        string         `json:"html"`

	extra []draft.Slot // the caller's own parts that have no place above
}

type meta struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

type hero struct {
	Headline string `json:"headline"`
	Sub      string `json:"sub"`
	CTA      *cta   `json:"cta,omitempty"`
	Proof    string `json:"proof,omitempty"`
}

type cta struct {
	Label string `json:"label"`
	Href  string `json:"href"`
}

type valueProp struct {
	Feature     string   `json:"feature"`
	Benefit     string   `json:"benefit"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type sourced struct {
	Text        string   `json:"text"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type question struct {
	Q           string   `json:"q"`
	A           string   `json:"a"`
	EvidenceIDs []string `json:"evidenceIds"`
}

func emptyPage() page {
	return page{ValueProps: []valueProp{}, HowItWorks: []string{}, SocialProof: []sourced{}, Objections: []sourced{}, FAQ: []question{}, JSONLD: map[string]any{}}
}

// slots are the texts of the page with the rules that limit them.
func (p *page) slots() []draft.Slot {
	var out []draft.Slot
	add := func(path, text, limit string) {
		if text != "" {
			out = append(out, draft.Slot{Path: path, Text: text, LimitRef: limit})
		}
	}
	add("meta.title", p.Meta.Title, "landing.title.max")
	add("meta.description", p.Meta.Description, "landing.description.max")
	add("hero.headline", p.Hero.Headline, "landing.headline.max")
	add("hero.sub", p.Hero.Sub, "landing.sub.max")
	add("hero.proof", p.Hero.Proof, "")
	for i, v := range p.ValueProps {
		add(fmt.Sprintf("valueProps[%d]", i), v.Feature+"\n"+v.Benefit, "")
	}
	for i, s := range p.HowItWorks {
		add(fmt.Sprintf("howItWorks[%d]", i), s, "")
	}
	for i, s := range p.SocialProof {
		add(fmt.Sprintf("socialProof[%d]", i), s.Text, "")
	}
	for i, s := range p.Objections {
		add(fmt.Sprintf("objections[%d]", i), s.Text, "")
	}
	for i, f := range p.FAQ {
		add(fmt.Sprintf("faq[%d]", i), f.Q+" "+f.A, "")
	}
	return append(out, p.extra...)
}

// render writes the page as Markdown, as HTML without any markup that the texts bring along, and the FAQ as linked data.
func (p *page) render(brand string) {
	var md, h strings.Builder
	e := html.EscapeString
	h.WriteString("<main>\n<section>\n")
	fmt.Fprintf(&md, "# %s\n\n%s\n", p.Hero.Headline, p.Hero.Sub)
	fmt.Fprintf(&h, "<h1>%s</h1>\n<p>%s</p>\n", e(p.Hero.Headline), e(p.Hero.Sub))
	link := func(c *cta) {
		if c != nil {
			fmt.Fprintf(&md, "\n[%s](%s)\n", c.Label, c.Href)
			fmt.Fprintf(&h, "<p><a href=\"%s\">%s</a></p>\n", e(c.Href), e(c.Label))
		}
	}
	link(p.Hero.CTA)
	if p.Hero.Proof != "" {
		fmt.Fprintf(&md, "\n%s\n", p.Hero.Proof)
		fmt.Fprintf(&h, "<p>%s</p>\n", e(p.Hero.Proof))
	}
	h.WriteString("</section>\n")
	section := func(title string, lines [][2]string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&md, "\n## %s\n", title)
		fmt.Fprintf(&h, "<section>\n<h2>%s</h2>\n", e(title))
		for _, line := range lines {
			if line[0] != "" {
				fmt.Fprintf(&md, "\n### %s\n", line[0])
				fmt.Fprintf(&h, "<h3>%s</h3>\n", e(line[0]))
			}
			fmt.Fprintf(&md, "\n%s\n", line[1])
			fmt.Fprintf(&h, "<p>%s</p>\n", e(line[1]))
		}
		h.WriteString("</section>\n")
	}
	section("What it does", pairs(p.ValueProps, func(v valueProp) [2]string { return [2]string{v.Feature, v.Benefit} }))
	section("How it works", pairs(p.HowItWorks, func(s string) [2]string { return [2]string{"", s} }))
	section("Results", pairs(p.SocialProof, func(s sourced) [2]string { return [2]string{"", s.Text} }))
	section("Good to know", pairs(p.Objections, func(s sourced) [2]string { return [2]string{"", s.Text} }))
	section("Questions", pairs(p.FAQ, func(q question) [2]string { return [2]string{q.Q, q.A} }))
	if p.FinalCTA != nil {
		h.WriteString("<section>\n")
		link(p.FinalCTA)
		h.WriteString("</section>\n")
	}
	h.WriteString("</main>\n")
	p.Markdown, p.HTML = md.String(), h.String()
	p.JSONLD = p.linkedData()
}

func pairs[T any](list []T, pair func(T) [2]string) [][2]string {
	var out [][2]string
	for _, item := range list {
		out = append(out, pair(item))
	}
	return out
}

func (p *page) linkedData() map[string]any {
	entries := []any{}
	for _, f := range p.FAQ {
		entries = append(entries, map[string]any{"@type": "Question", "name": f.Q, "acceptedAnswer": map[string]any{"@type": "Answer", "text": f.A}})
	}
	return map[string]any{"@context": "https://schema.org", "@type": "FAQPage", "mainEntity": entries}
}
