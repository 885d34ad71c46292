package marketing

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// site is the home page as read for the checklist; nil when there is no address.
type site struct {
	status   int
	fetchID  string
	doc      *goquery.Document
	blocked  bool // robots.txt keeps every crawler out
	sitemap  bool
	notFound int // status of a page that cannot exist
}

// readSite reads the page that answers to the address, its robots file and a page that cannot exist. What cannot be read stays unknown.
func readSite(ctx context.Context, c *sdk.Call, address string) *site {
	reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "page", URL: address})
	if err != nil {
		return nil
	}
	s := &site{status: reply.Status, fetchID: reply.EvidenceID}
	if s.doc, err = goquery.NewDocumentFromReader(bytes.NewReader(reply.Body)); err != nil {
		s.doc = nil
	}
	base, err := url.Parse(address)
	if err != nil {
		return s
	}
	read := func(path string) (int, string) {
		u := *base
		u.Path, u.RawQuery, u.Fragment = path, "", ""
		reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "page", URL: u.String()})
		if err != nil {
			return 0, ""
		}
		return reply.Status, string(reply.Body)
	}
	if status, robots := read("/robots.txt"); status == 200 {
		s.blocked = blocksAll(robots)
		s.sitemap = regexp.MustCompile(`(?im)^\s*sitemap\s*:`).MatchString(robots)
	}
	s.notFound, _ = read("/this-page-does-not-exist")
	return s
}

// blocksAll tells whether a robots file forbids everything to every crawler.
func blocksAll(robots string) bool {
	all := false
	for _, line := range strings.Split(robots, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(strings.SplitN(line, "#", 2)[0]), ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "user-agent":
			all = value == "*"
		case "disallow":
			if all && value == "/" {
				return true
			}
		}
	}
	return false
}

// checkItem is one line of the list of what should be in place after a build.
type checkItem struct {
	ID          string   `json:"id"`
	Text        string   `json:"text"`
	State       string   `json:"state"` // done, todo, unknown
	EvidenceIDs []string `json:"evidenceIds"`
	Fix         string   `json:"fix,omitempty"`
	Blocking    bool     `json:"blocking"`
}

const (
	done    = "done"
	todo    = "todo"
	unknown = "unknown"
)

// buildChecklist computes the list from what was read; nothing is assumed.
func (k *campaign) buildChecklist() []checkItem {
	out := k.siteItems()
	add := func(id, what, state, fix string, blocking bool, ids ...string) {
		out = append(out, item(id, what, state, fix, blocking, ids...))
	}
	dna := k.desk.DNA()
	signup := k.repo.Find("signup", "sign-up", "register", "start", "join", "try")
	add("signup", "A sign-up or start page exists and is linked", stateOf(signup != "" || len(dna.CTAs) > 0, len(k.repo.Routes) > 0 || k.site != nil), "Add a page where people can start, and link it from the home page.", false)
	add("pricing", "A price can be found", stateOf(k.repo.Find("pricing", "plans") != "" || k.desk.Pool.Has(draft.Price), len(k.repo.Routes) > 0 || k.site != nil), "Say what it costs, even if it is free.", false)
	add("analytics", "Visits or events are counted", stateOf(len(k.repo.Analytics) > 0 || k.siteHas(`script[src*="analytics"],script[src*="plausible"],script[src*="gtag"],script[src*="umami"],script[src*="matomo"]`), len(k.repo.Commits) > 0 || k.site != nil), "Count visits before the launch, or nothing can be measured after it.", false)
	changelog := string(k.repo.Changelog)
	add("changelog", "The changelog names this change", stateOf(changelog != "" && text.Cosine(changelog, k.repo.WhatChanged) >= 0.3, true), "Add the drafted entry.", false)
	secrets := int(k.repo.Redactions)
	add("secrets", "No secrets in what was collected", stateOf(secrets == 0, true), fmt.Sprintf("%d values that look like secrets were found and removed: take them out of the repository and replace them.", secrets), secrets > 0)
	state, id := k.readmeSays()
	add("readme", "The README says what it is in its first 40 words", state, "Begin the README with one sentence: what it is, and for whom.", false, id)
	return out
}

// siteItems are the lines that need the page.
func (k *campaign) siteItems() []checkItem {
	s := k.site
	read := s != nil && s.doc != nil && s.status == 200
	var id string
	if s != nil {
		id = s.fetchID
	}
	known := func(ok bool) string { return stateOf(ok, read) }
	items := []checkItem{
		item("url", "The address answers", stateOf(read, s != nil), "Deploy it, or correct the address.", s != nil && !read, id),
		item("title", "The page has a title and a description", known(k.siteHas("title") && k.siteHas(`meta[name="description"][content]`)), "Add both; search results and links show them.", false, id),
		item("preview", "Links show a picture (og:image)", known(k.siteHas(`meta[property="og:image"][content]`)), "Add an og:image of 1200×630.", false, id),
		item("favicon", "The page has an icon", known(k.siteHas(`link[rel~="icon"],link[rel="apple-touch-icon"]`)), "Add a favicon.", false, id),
		item("viewport", "The page is laid out for phones", known(k.siteHas(`meta[name="viewport"]`)), "Add a viewport meta tag.", false, id),
		item("index", "Search engines may read it", known(read && !s.blocked && !k.siteHas(`meta[name="robots"][content*="noindex"]`)), "Take the block out of robots.txt or the robots meta tag.", read && (s.blocked || k.siteHas(`meta[name="robots"][content*="noindex"]`)), id),
		item("legal", "Privacy and terms are linked", known(k.siteHas(`a[href*="privacy"],a[href*="datenschutz"]`) && k.siteHas(`a[href*="terms"],a[href*="imprint"],a[href*="impressum"],a[href*="legal"]`)), "Link a privacy page and terms.", false, id),
		item("notfound", "A missing page answers as missing", stateOf(read && s.notFound == 404, read && s.notFound != 0), "Answer unknown addresses with 404.", false, id),
	}
	return items
}

func (k *campaign) siteHas(selector string) bool {
	return k.site != nil && k.site.doc != nil && k.site.doc.Find(selector).Length() > 0
}

// readmeSays looks for the product's kind or subject in the first 40 words of the README.
func (k *campaign) readmeSays() (state, evidenceID string) {
	if strings.TrimSpace(k.repo.Readme.Excerpt) == "" {
		return unknown, ""
	}
	var words []string
	for _, b := range source.Markdown(k.repo.Readme.Excerpt) {
		words = append(words, strings.Fields(b.Text)...)
		if len(words) >= 40 {
			break
		}
	}
	opening := strings.Join(words[:min(40, len(words))], " ")
	for _, e := range k.desk.Items {
		if e.Kind == ground.RepoReadme && strings.HasPrefix(opening, draft.FirstSentence(e.Quote)) {
			evidenceID = e.ID
			break
		}
	}
	category := k.desk.DNA().Identity.Category
	says := len(words) >= 5 && (text.StemOverlap(opening, category) > 0 || text.Cosine(opening, category) > 0 || text.Cosine(opening, k.desk.DNA().Identity.Tagline) > 0.5)
	return stateOf(says, true), evidenceID
}

func stateOf(ok, known bool) string {
	switch {
	case !known:
		return unknown
	case ok:
		return done
	}
	return todo
}

func item(id, what, state, fix string, blocking bool, ids ...string) checkItem {
	out := checkItem{ID: id, Text: what, State: state, EvidenceIDs: []string{}, Blocking: blocking && state == todo}
	for _, e := range ids {
		if e != "" && state == done {
			out.EvidenceIDs = append(out.EvidenceIDs, e)
		}
	}
	if state == todo {
		out.Fix = fix
	}
	return out
}
