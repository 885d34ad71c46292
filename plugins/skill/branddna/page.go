package branddna

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// page is one HTML page, read.
type page struct {
	url      *url.URL
	fetchID  string // evidence id of the fetch; empty when the caller gave the HTML
	doc      *goquery.Document
	css      []string
	blocks   []block
	links    []link
	scripts  int
	language string
}

// block is a stretch of a page that says one thing.
type block struct {
	tag     string // h1, h2, p, li …
	index   int    // how many of this tag came before
	heading string // nearest heading above, for prose
	text    string
	chrome  bool // navigation, header or footer
}

func (b block) locator() string { return fmt.Sprintf("%s[%d]", b.tag, b.index) }

type link struct {
	text, href string
	button     bool
	chrome     bool
}

var (
	blockTags   = map[string]bool{"h1": true, "h2": true, "h3": true, "h4": true, "p": true, "li": true, "blockquote": true, "figcaption": true, "dt": true, "dd": true, "td": true, "summary": true}
	skippedTags = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "svg": true, "iframe": true, "select": true, "form": false}
	chromeTags  = map[string]bool{"nav": true, "footer": true, "header": true}
	consentHint = regexp.MustCompile(`(?i)cookie|consent|gdpr`)
	buttonHint  = regexp.MustCompile(`(?i)\b(?:btn|button|cta)`)
)

// readPage parses a page; address is where it was found.
func readPage(address string, body []byte, fetchID string, css []string) (*page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	p := &page{url: u, doc: doc, fetchID: fetchID, css: css}
	p.language, _ = doc.Find("html").Attr("lang")
	p.scripts = doc.Find("script[src]").Length()
	doc.Find("style").Each(func(_ int, s *goquery.Selection) { p.css = append(p.css, s.Text()) })
	walker := blockWalker{page: p, counts: map[string]int{}}
	for _, node := range doc.Find("body").Nodes {
		walker.walk(node, false)
	}
	walker.dropRepeats()
	return p, nil
}

type blockWalker struct {
	page    *page
	counts  map[string]int
	heading string
}

func (w *blockWalker) walk(n *html.Node, chrome bool) {
	if n.Type == html.ElementNode {
		if skippedTags[n.Data] || hidden(n) || consentHint.MatchString(attr(n, "id")+" "+attr(n, "class")) {
			return
		}
		if chromeTags[n.Data] && !(n.Data == "header" && hasHeading(n)) {
			chrome = true
		}
		w.link(n, chrome)
		if blockTags[n.Data] || n.Data == "div" && onlyInline(n) {
			w.add(n, chrome)
			w.linksBelow(n, chrome)
			return
		}
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		w.walk(child, chrome)
	}
}

func (w *blockWalker) linksBelow(n *html.Node, chrome bool) {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if child.Type == html.ElementNode {
			w.link(child, chrome)
			w.linksBelow(child, chrome)
		}
	}
}

func (w *blockWalker) link(n *html.Node, chrome bool) {
	if n.Data != "a" && n.Data != "button" {
		return
	}
	w.page.links = append(w.page.links, link{
		text: text.OneLine(textOf(n), 80), href: attr(n, "href"), chrome: chrome,
		button: n.Data == "button" || buttonHint.MatchString(attr(n, "class")) || attr(n, "role") == "button",
	})
}

func (w *blockWalker) add(n *html.Node, chrome bool) {
	body := text.Clean(textOf(n))
	if isHeading(n.Data) {
		w.heading = body // even of one word, such as the name of a plan
	}
	if text.WordCount(body) < 2 || !chrome && linkDensity(n, body) > 0.5 && text.WordCount(body) < 12 {
		return
	}
	index := w.counts[n.Data]
	w.counts[n.Data]++
	b := block{tag: n.Data, index: index, text: body, chrome: chrome}
	if !isHeading(n.Data) {
		b.heading = w.heading
	}
	w.page.blocks = append(w.page.blocks, b)
}

// dropRepeats keeps the first of equal blocks.
func (w *blockWalker) dropRepeats() {
	seen := map[string]bool{}
	kept := w.page.blocks[:0]
	for _, b := range w.page.blocks {
		if !seen[b.text] {
			seen[b.text] = true
			kept = append(kept, b)
		}
	}
	w.page.blocks = kept
}

func isHeading(tag string) bool {
	return len(tag) == 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '6'
}

func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch {
		case a.Key == "hidden", a.Key == "aria-hidden" && a.Val == "true":
			return true
		case a.Key == "style" && regexp.MustCompile(`(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)`).MatchString(a.Val):
			return true
		}
	}
	return false
}

func hasHeading(n *html.Node) bool {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if child.Type == html.ElementNode && (child.Data == "h1" || hasHeading(child)) {
			return true
		}
	}
	return false
}

// onlyInline tells whether an element holds text and no block, so that it is a paragraph in all but name.
func onlyInline(n *html.Node) bool {
	direct := false
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		switch {
		case child.Type == html.TextNode:
			direct = direct || strings.TrimSpace(child.Data) != ""
		case child.Type == html.ElementNode:
			switch child.Data {
			case "a", "b", "strong", "em", "i", "span", "br", "code", "small", "sup", "sub", "mark", "img":
			default:
				return false
			}
		}
	}
	return direct
}

func linkDensity(n *html.Node, body string) float64 {
	linked := 0
	var count func(*html.Node, bool)
	count = func(n *html.Node, inside bool) {
		inside = inside || n.Data == "a"
		if n.Type == html.TextNode && inside {
			linked += len(strings.TrimSpace(n.Data))
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			count(child, inside)
		}
	}
	count(n, false)
	return float64(linked) / float64(max(1, len(body)))
}

// textOf is the text that a reader sees, with a space where a tag breaks the line.
func textOf(n *html.Node) string {
	var b strings.Builder
	var write func(*html.Node)
	write = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(strings.Join(strings.FieldsFunc(n.Data, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
		case n.Type == html.ElementNode && (skippedTags[n.Data] || hidden(n)):
			return
		case n.Type == html.ElementNode && (n.Data == "br" || blockTags[n.Data] || n.Data == "div"):
			b.WriteByte(' ')
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			write(child)
		}
	}
	write(n)
	return strings.TrimSpace(b.String())
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// words counts the words that readers see outside navigation and footer.
func (p *page) words() int {
	n := 0
	for _, b := range p.blocks {
		if !b.chrome {
			n += text.WordCount(b.text)
		}
	}
	return n
}

func (p *page) absolute(href string) string {
	u, err := p.url.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	u.Fragment = ""
	return u.String()
}

func (p *page) meta(selector, attribute string) string {
	value, _ := p.doc.Find(selector).First().Attr(attribute)
	return text.OneLine(value, 500)
}
