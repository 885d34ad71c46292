// Package source turns what a caller hands over, a repository's context or Markdown, into evidence.
package source

import (
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// Block is a stretch of a document that says one thing: a paragraph, a list item, or an answer under its question.
type Block struct {
	Heading string // the heading it stands under
	Text    string
	Line    int  // line of the document, from 1
	Item    bool // an item of a list
	Lead    bool // the first paragraph of the document
}

var (
	headingPattern  = regexp.MustCompile(`^(#{1,6})\s+(.+?)\s*#*$`)
	itemPattern     = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.+)$`)
	imagePattern    = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)|!\[[^\]]*\]\[[^\]]*\]`)
	linkPattern     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)|\[([^\]]+)\]\[[^\]]*\]`)
	tagPattern      = regexp.MustCompile(`<!--[\s\S]*?-->|<[^>]{1,400}>`)
	emphasisPattern = regexp.MustCompile("\\*\\*|__|~~|`")
	slantPattern    = regexp.MustCompile(`(^|[\s("'“])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_]`)
	ruleOrTable     = regexp.MustCompile(`^\s*(?:[-=*_]{3,}|\|?[\s:|-]+\|[\s:|-]*)\s*$`)
	leadPattern     = regexp.MustCompile(`^(?:\*\*|__)([^*_]{3,80}?)[.:]?(?:\*\*|__)[.:]?\s*(?:[–—-]\s+)?(\S.*)$`)
	definition      = regexp.MustCompile(`^\s*\[[^\]]+\]:\s`)
)

// Markdown cuts a Markdown document into blocks. Code, images, badges, rules and link definitions are left out.
func Markdown(document string) []Block {
	m := markdown{lead: true}
	for number, line := range strings.Split(strings.ReplaceAll(tagOnOneLine(document), "\r\n", "\n"), "\n") {
		m.line(number+1, line)
	}
	m.flush()
	return m.blocks
}

// tagOnOneLine removes comments that span lines, keeping the line count.
func tagOnOneLine(document string) string {
	return regexp.MustCompile(`<!--[\s\S]*?-->`).ReplaceAllStringFunc(document, func(comment string) string {
		return strings.Repeat("\n", strings.Count(comment, "\n"))
	})
}

type markdown struct {
	blocks  []Block
	heading string
	open    *Block
	fence   string
	lead    bool
}

func (m *markdown) line(number int, line string) {
	trimmed := strings.TrimSpace(line)
	if m.fence != "" {
		if strings.HasPrefix(trimmed, m.fence) {
			m.fence = ""
		}
		return
	}
	for _, fence := range []string{"```", "~~~"} {
		if strings.HasPrefix(trimmed, fence) {
			m.flush()
			m.fence = fence
			return
		}
	}
	if trimmed == "" || ruleOrTable.MatchString(line) || definition.MatchString(line) {
		m.flush()
		return
	}
	if heading := headingPattern.FindStringSubmatch(line); heading != nil {
		m.flush()
		m.heading = inline(heading[2])
		return
	}
	if strings.HasPrefix(line, "    ") && m.open == nil || strings.HasPrefix(line, "\t") && m.open == nil {
		return
	}
	if item := itemPattern.FindStringSubmatch(line); item != nil {
		m.flush()
		m.item(number, item[1])
		return
	}
	if strings.HasPrefix(trimmed, "|") {
		m.flush() // each row of a table says its own thing
	}
	trimmed = strings.TrimSpace(strings.TrimLeft(strings.Trim(trimmed, "|"), "> "))
	if m.open == nil {
		m.open = &Block{Heading: m.heading, Line: number}
	} else {
		m.open.Text += " "
	}
	m.open.Text += strings.ReplaceAll(trimmed, " | ", ": ")
}

// item opens a list item. A bold lead (“**Bank matching.** Deposits are …”) is the heading of what follows it.
func (m *markdown) item(number int, body string) {
	heading := m.heading
	if lead := leadPattern.FindStringSubmatch(body); lead != nil {
		heading, body = inline(lead[1]), lead[2]
		m.open = &Block{Heading: m.heading, Text: lead[1], Line: number, Item: true}
		m.flush()
	}
	m.open = &Block{Heading: heading, Text: body, Line: number, Item: true}
}

func (m *markdown) flush() {
	if m.open == nil {
		return
	}
	block := *m.open
	m.open = nil
	block.Text = inline(block.Text)
	if text.WordCount(block.Text) < 2 {
		return
	}
	if m.lead && !block.Item {
		block.Lead = true
		m.lead = false
	}
	m.blocks = append(m.blocks, block)
}

// inline removes the marks of Markdown and HTML from a line of text.
func inline(s string) string {
	s = imagePattern.ReplaceAllString(s, "")
	s = linkPattern.ReplaceAllString(s, "$1$2")
	s = tagPattern.ReplaceAllString(s, " ")
	s = emphasisPattern.ReplaceAllString(s, "")
	s = slantPattern.ReplaceAllString(s, "$1$2")
	s = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&nbsp;", " ", "&quot;", `"`, "&#39;", "'").Replace(s)
	return text.CleanTo(s, text.MaxUntrusted)
}
