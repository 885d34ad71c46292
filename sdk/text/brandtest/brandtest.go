// Package brandtest holds ten invented brands for tests of copy: what each says of itself, as sentences, as a web page
// and as the context of a repository. Test code only; any likeness to a real brand is accidental.
package brandtest

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
)

//go:embed brands.txt
var file string

// Brand is one invented brand.
type Brand struct {
	Name, Domain, Category, Color string
	Hero, Sub, Problem, Audience  string
	Proof, Limit, Versus          string
	Features, Prices, FAQ, CTAs   []Pair
	Commits                       []string
	Copy                          []string // short texts that the brand might write itself
}

// Pair is a heading with its text, a question with its answer, a label with its address or a plan with its price.
type Pair struct{ A, B, C string }

// All returns the brands, always in the same order.
func All() []Brand {
	var out []Brand
	for _, line := range strings.Split(file, "\n") {
		if head, ok := strings.CutPrefix(line, "# "); ok {
			f := fields(head)
			out = append(out, Brand{Name: f[0], Domain: f[1], Category: f[2], Color: f[3]})
			continue
		}
		if key, value, ok := strings.Cut(line, ": "); ok {
			out[len(out)-1].set(key, value)
		}
	}
	return out
}

func fields(s string) [4]string {
	var out [4]string
	for i, part := range strings.SplitN(s, " | ", 4) {
		out[i] = strings.TrimSpace(part)
	}
	return out
}

func (b *Brand) set(key, value string) {
	f := fields(value)
	pair := Pair{f[0], f[1], f[2]}
	switch key {
	case "hero":
		b.Hero = value
	case "sub":
		b.Sub = value
	case "problem":
		b.Problem = value
	case "audience":
		b.Audience = value
	case "proof":
		b.Proof = value
	case "limit":
		b.Limit = value
	case "versus":
		b.Versus = value
	case "feature":
		b.Features = append(b.Features, pair)
	case "price":
		b.Prices = append(b.Prices, pair)
	case "faq":
		b.FAQ = append(b.FAQ, pair)
	case "cta":
		b.CTAs = append(b.CTAs, pair)
	case "commit":
		b.Commits = append(b.Commits, value)
	case "copy":
		b.Copy = append(b.Copy, value)
	}
}

// Lines returns what the brand says of itself, a statement or two each.
func (b Brand) Lines() []string {
	out := []string{b.Hero, b.Sub, b.Problem, b.Audience, b.Proof, b.Limit}
	if b.Versus != "" {
		out = append(out, b.Versus)
	}
	for _, feature := range b.Features {
		out = append(out, feature.A+". "+feature.B)
	}
	for _, faq := range b.FAQ {
		out = append(out, faq.A+" "+faq.B)
	}
	for _, price := range b.Prices {
		out = append(out, fmt.Sprintf("%s: %s per %s", price.A, price.B, price.C))
	}
	return out
}

// URL is the address of the brand's home page.
func (b Brand) URL() string { return "https://" + b.Domain + "/" }

// HTML is the brand's home page.
func (b Brand) HTML() string {
	var w strings.Builder
	e := html.EscapeString
	fmt.Fprintf(&w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s – %s</title><meta name="description" content="%s">
<meta property="og:site_name" content="%s"><meta name="viewport" content="width=device-width"><link rel="mask-icon" href="/mask.svg" color="%s">
<script type="application/ld+json">{"@context":"https://schema.org","@type":"SoftwareApplication","name":%q,"applicationCategory":%q}</script>
<style>:root{--brand-primary:%s;--ink:#1a1a1a}body{font-family:"Source Sans 3",sans-serif;color:var(--ink);background:#fff}h1,h2{font-family:"Fraunces",serif}a{color:var(--brand-primary)}.cta{background:var(--brand-primary);color:#fff}</style></head><body>
<header><nav><a href="/"><img src="/logo.svg" alt="%s logo" width="120"></a><a href="/pricing">Pricing</a><a href="/docs">Docs</a></nav></header><main>
`, e(b.Name), e(b.Hero), e(b.Sub), e(b.Name), b.Color, b.Name, b.Category, b.Color, e(b.Name))
	fmt.Fprintf(&w, "<section><h1>%s</h1><p>%s</p>", e(b.Hero), e(b.Sub))
	for _, cta := range b.CTAs {
		fmt.Fprintf(&w, `<a class="cta" href="%s">%s</a>`, e(cta.B), e(cta.A))
	}
	fmt.Fprintf(&w, "</section>\n<section><p>%s</p><p>%s</p></section>\n<section>", e(b.Problem), e(b.Audience))
	for _, feature := range b.Features {
		fmt.Fprintf(&w, "<h2>%s</h2><p>%s</p>\n", e(feature.A), e(feature.B))
	}
	fmt.Fprintf(&w, "</section>\n<section><p>%s</p><p>%s</p><p>%s</p></section>\n", e(b.Proof), e(b.Limit), e(b.Versus))
	if len(b.Prices) > 0 {
		w.WriteString(`<section id="pricing"><h2>Pricing</h2>`)
		for _, price := range b.Prices {
			fmt.Fprintf(&w, "<div><h3>%s</h3><p>%s per %s</p></div>", e(price.A), e(price.B), e(price.C))
		}
		w.WriteString("</section>\n")
	}
	w.WriteString(`<section id="faq"><h2>Questions</h2>`)
	for _, faq := range b.FAQ {
		fmt.Fprintf(&w, "<h3>%s</h3><p>%s</p>\n", e(faq.A), e(faq.B))
	}
	fmt.Fprintf(&w, "</section></main><footer><a href=\"/privacy\">Privacy</a><a href=\"/terms\">Terms</a></footer></body></html>\n")
	return w.String()
}

// Readme is the brand's README in Markdown.
func (b Brand) Readme() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# %s\n\n%s. %s\n\n%s\n\n%s\n\n## Features\n\n", b.Name, b.Hero, b.Sub, b.Problem, b.Audience)
	for _, feature := range b.Features {
		fmt.Fprintf(&w, "- **%s.** %s\n", feature.A, feature.B)
	}
	w.WriteString("\n## FAQ\n\n")
	for _, faq := range b.FAQ {
		fmt.Fprintf(&w, "### %s\n\n%s\n\n", faq.A, faq.B)
	}
	fmt.Fprintf(&w, "## Limits\n\n%s\n\n## Results\n\n%s\n", b.Limit, b.Proof)
	return w.String()
}

// RepoContext is what the collector would say of the brand's repository.
func (b Brand) RepoContext() map[string]any {
	commits, routes := []any{}, []any{}
	for i, subject := range b.Commits {
		commits = append(commits, map[string]any{"sha": fmt.Sprintf("%07x", 0xabc0000+i), "date": "2026-11-1" + fmt.Sprint(i), "subject": subject, "filesChanged": 3, "userVisible": !strings.HasPrefix(subject, "chore") && !strings.HasPrefix(subject, "docs")})
	}
	for _, cta := range b.CTAs {
		routes = append(routes, map[string]any{"path": cta.B, "methods": []any{"GET"}, "kind": "page"})
	}
	return map[string]any{
		"schema":        "repo-context/1",
		"project":       map[string]any{"name": b.Name, "version": "1.4.0", "description": b.Sub},
		"whatChanged":   b.Commits[0],
		"recentCommits": commits,
		"routes":        routes,
		"readme":        map[string]any{"path": "README.md", "headline": b.Name, "excerpt": b.Readme()},
	}
}
