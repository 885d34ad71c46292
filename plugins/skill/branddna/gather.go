package branddna

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

const (
	maxPageBytes = 1_500_000
	maxSheets    = 12
	maxCSSBytes  = 2_000_000
	maxBlocks    = 160
)

var (
	challengeHint = regexp.MustCompile(`(?i)\b(?:checking your browser|just a moment|attention required|verify you are human|enable javascript and cookies to continue|access denied|captcha)\b`)
	parkedHint    = regexp.MustCompile(`(?i)\b(?:this domain (?:is|may be) for sale|buy this domain|domain (?:is )?parked|parked free|website coming soon|future home of)\b`)
	// pageWords lead from the home page to the pages that say most about a brand, best first.
	pageWords = []string{"pricing", "about", "features", "customers", "product", "docs", "blog"}
)

// gather reads the pages named in the input.
func gather(ctx context.Context, c *sdk.Call, in input) ([]*page, error) {
	if len(in.Pages) > 0 {
		return given(in.Pages)
	}
	if in.URL == "" {
		return nil, nil
	}
	home, err := fetchPage(ctx, c, in.URL)
	if err != nil {
		return nil, err
	}
	if err := usable(home); err != nil {
		return nil, err
	}
	pages := []*page{home}
	for _, address := range furtherPages(home, in.MaxPages-1) {
		next, err := fetchPage(ctx, c, address)
		if err != nil {
			c.Log.Debug("page left out", "url", address, "error", err)
			continue
		}
		pages = append(pages, next)
		c.Progress(float64(len(pages)), float64(in.MaxPages), "read "+address)
	}
	fetchSheets(ctx, c, home)
	return pages, nil
}

func given(list []givenPage) ([]*page, error) {
	var out []*page
	for i, g := range list {
		p, err := readPage(g.URL, []byte(g.HTML), "", g.CSS)
		if err != nil {
			f := sdk.Fail("invalid_input", "The page %s cannot be read: %v", g.URL, err)
			f.Fields = []sdk.FieldError{{Pointer: fmt.Sprintf("/pages/%d/html", i), Message: "is not HTML"}}
			return nil, f
		}
		out = append(out, p)
	}
	if err := usable(out[0]); err != nil {
		return nil, err
	}
	return out, nil
}

func fetchPage(ctx context.Context, c *sdk.Call, address string) (*page, error) {
	reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "page", URL: address})
	if err != nil {
		return nil, blocked(address, err.Error())
	}
	switch {
	case reply.Status == 401 || reply.Status == 403 || reply.Status == 429 || reply.Status == 503:
		return nil, blocked(address, fmt.Sprintf("the server answered %d", reply.Status))
	case reply.Status != 200:
		f := blocked(address, fmt.Sprintf("the server answered %d", reply.Status))
		f.Retryable = reply.Status >= 500
		return nil, f
	}
	final := reply.FinalURL
	if final == "" {
		final = address
	}
	return readPage(final, reply.Body[:min(len(reply.Body), maxPageBytes)], reply.EvidenceID, nil)
}

func blocked(address, why string) *sdk.Failure {
	f := sdk.Fail("fetch_blocked", "The page %s could not be read: %s. Nothing is assumed about the brand.", text.OneLine(address, 300), text.OneLine(why, 300))
	f.Retryable = true
	f.WhatWouldHelp = []string{"Give the HTML of the page in pages.", "Give a repository context in repoContext.", "Check that the address is public."}
	return f
}

// usable refuses pages that say nothing of a brand.
func usable(p *page) error {
	var all strings.Builder
	for _, b := range p.blocks {
		all.WriteString(b.text + "\n")
	}
	title := p.doc.Find("title").First().Text()
	switch words := p.words(); {
	case challengeHint.MatchString(title) || words < 60 && challengeHint.MatchString(all.String()):
		return blocked(p.url.String(), "the server showed a challenge instead of the page")
	case parkedHint.MatchString(title+"\n"+all.String()) && words < 300:
		f := sdk.Fail("insufficient_evidence", "The page %s is a parked or empty site.", p.url)
		f.WhatWouldHelp = []string{"Give the address of the live site."}
		return f
	case words < 120 && p.scripts > 5:
		f := sdk.Fail("needs_render", "The page %s shows %d words without running its scripts.", p.url, words)
		f.WhatWouldHelp = []string{"Open the page in a browser and give the rendered HTML in pages."}
		return f
	case words < 8:
		f := sdk.Fail("insufficient_evidence", "The page %s shows only %d words.", p.url, words)
		f.WhatWouldHelp = []string{"Give a page that describes the product.", "Give a README in repoContext."}
		return f
	}
	return nil
}

// furtherPages picks linked pages of the same site by what their address or label says.
func furtherPages(home *page, limit int) []string {
	var out []string
	taken := map[string]bool{home.url.String(): true}
	for _, word := range pageWords {
		if len(out) >= limit {
			break
		}
		for _, l := range home.links {
			address := home.absolute(l.href)
			u, err := url.Parse(address)
			if address == "" || err != nil || u.Hostname() != home.url.Hostname() || taken[address] || strings.Count(strings.Trim(u.Path, "/"), "/") > 1 {
				continue
			}
			if strings.Contains(strings.ToLower(u.Path), word) || strings.EqualFold(l.text, word) {
				taken[address] = true
				out = append(out, address)
				break
			}
		}
	}
	return out[:min(len(out), max(0, limit))]
}

// fetchSheets reads the linked style sheets of the home page. A sheet that cannot be read is left out.
func fetchSheets(ctx context.Context, c *sdk.Call, home *page) {
	total := 0
	for i, node := range home.doc.Find(`link[rel~="stylesheet"][href]`).Nodes {
		if i >= maxSheets || total > maxCSSBytes {
			break
		}
		address := home.absolute(attr(node, "href"))
		if address == "" {
			continue
		}
		reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "page", URL: address})
		if err != nil || reply.Status != 200 {
			c.Log.Debug("style sheet left out", "url", address)
			continue
		}
		body := reply.Body[:min(len(reply.Body), maxCSSBytes-min(total, maxCSSBytes))]
		total += len(body)
		home.css = append(home.css, string(body))
	}
}

// evidence turns the blocks of the pages into items. Text that speaks to a machine becomes an item of its own.
func evidence(pages []*page) []ground.Evidence {
	var out []ground.Evidence
	add := func(p *page, kind, locator, fact, quote string) {
		trust := ground.OwnerStated
		if p.fetchID != "" {
			trust = ground.Observed
		}
		e := ground.Evidence{Kind: kind, Source: p.url.String(), Locator: locator, Fact: fact, URL: p.url.String(), Trust: trust, FetchID: p.fetchID}
		kept, aside := text.WithoutInstructions(quote)
		if text.Instruction(fact) {
			e.Fact = ""
		}
		if kept != "" {
			e.Quote = kept
			out = append(out, e)
		}
		if aside != "" {
			e.Fact, e.Quote, e.Locator = "", aside, locator+"#set-aside"
			out = append(out, e)
		}
	}
	seen := map[string]bool{}
	for i, cta := range ctas(pages) {
		add(pages[0], ground.PageText, fmt.Sprintf("%s[%d]", draft.CTALocator, i), "", cta.Text)
	}
	for _, p := range pages {
		if description := p.meta(`meta[name="description"]`, "content"); description != "" && !seen[description] {
			seen[description] = true
			add(p, ground.PageMeta, "meta[name=description]", "", description)
		}
		n := 0
		for _, b := range p.blocks {
			if b.chrome || seen[b.text] || n >= maxBlocks {
				continue
			}
			n++
			seen[b.text] = true
			fact := b.heading
			if isHeading(b.tag) || b.heading == b.text {
				fact = ""
			}
			add(p, ground.PageText, b.locator(), fact, b.text)
		}
	}
	return out
}
