package branddna

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	colorful "github.com/lucasb-eyer/go-colorful"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
)

// Weights of the votes for a brand colour. A custom property that is named after the brand is the strongest sign; the
// theme colour of browsers the weakest, since it is mostly white or black.
const (
	voteNamedProperty = 5
	voteMaskIcon      = 4
	voteButton        = 4
	voteLink          = 2
	voteHeading       = 1
	voteThemeColor    = 1
)

// sameColor is the CIEDE2000 difference under which two colours are one.
const sameColor = 0.05

// declaration is one line of a style sheet.
type declaration struct{ selector, property, value string }

type sheet struct {
	declarations []declaration
	properties   map[string]string // custom properties
}

func parseSheets(sources []string) sheet {
	s := sheet{properties: map[string]string{}}
	for _, source := range sources {
		parser := css.NewParser(parse.NewInputString(source), false)
		var selectors []string
		for {
			kind, _, data := parser.Next()
			if kind == css.ErrorGrammar {
				break
			}
			switch kind {
			case css.BeginRulesetGrammar, css.QualifiedRuleGrammar:
				selectors = append(selectors, joinTokens(parser.Values()))
			case css.EndRulesetGrammar:
				selectors = nil
			case css.DeclarationGrammar, css.CustomPropertyGrammar:
				value := strings.TrimSpace(joinTokens(parser.Values()))
				property := strings.ToLower(string(data))
				if strings.HasPrefix(property, "--") {
					if _, set := s.properties[property]; !set {
						s.properties[property] = value
					}
				}
				s.declarations = append(s.declarations, declaration{strings.Join(selectors, ","), property, value})
			}
		}
	}
	return s
}

func joinTokens(tokens []css.Token) string {
	var b strings.Builder
	for _, token := range tokens {
		b.Write(token.Data)
	}
	return b.String()
}

var varPattern = regexp.MustCompile(`var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*(?:\([^()]*\))?[^()]*))?\)`)

// resolve replaces var() up to eight levels deep.
func (s sheet) resolve(value string) string {
	for range 8 {
		if !strings.Contains(value, "var(") {
			break
		}
		value = varPattern.ReplaceAllStringFunc(value, func(hit string) string {
			m := varPattern.FindStringSubmatch(hit)
			if set, ok := s.properties[strings.ToLower(m[1])]; ok {
				return set
			}
			return m[2]
		})
	}
	return value
}

var (
	hexPattern   = regexp.MustCompile(`#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b`)
	rgbPattern   = regexp.MustCompile(`rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})`)
	hslPattern   = regexp.MustCompile(`hsla?\(\s*(\d{1,3}(?:\.\d+)?)(?:deg)?[\s,]+(\d{1,3}(?:\.\d+)?)%[\s,]+(\d{1,3}(?:\.\d+)?)%`)
	oklchPattern = regexp.MustCompile(`oklch\(\s*(\d*\.?\d+)(%?)\s+(\d*\.?\d+)\s+(\d+(?:\.\d+)?)`)
	namedColors  = map[string]string{"white": "#ffffff", "black": "#000000", "red": "#ff0000", "blue": "#0000ff", "green": "#008000", "navy": "#000080", "teal": "#008080", "orange": "#ffa500", "purple": "#800080", "gray": "#808080", "grey": "#808080", "tomato": "#ff6347", "rebeccapurple": "#663399"}
)

// colorIn finds the first colour of a value.
func colorIn(value string) (colorful.Color, bool) {
	value = strings.ToLower(value)
	if m := hexPattern.FindString(value); m != "" {
		c, err := colorful.Hex(m)
		return c, err == nil
	}
	number := func(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f } //nolint:errcheck // the pattern took digits only
	if m := rgbPattern.FindStringSubmatch(value); m != nil {
		return colorful.Color{R: number(m[1]) / 255, G: number(m[2]) / 255, B: number(m[3]) / 255}.Clamped(), true
	}
	if m := hslPattern.FindStringSubmatch(value); m != nil {
		return colorful.Hsl(number(m[1]), number(m[2])/100, number(m[3])/100).Clamped(), true
	}
	if m := oklchPattern.FindStringSubmatch(value); m != nil {
		lightness := number(m[1])
		if m[2] == "%" {
			lightness /= 100
		}
		return colorful.OkLch(lightness, number(m[3]), number(m[4])).Clamped(), true
	}
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if code, ok := namedColors[word]; ok {
			c, err := colorful.Hex(code)
			return c, err == nil
		}
	}
	return colorful.Color{}, false
}

// vote is a colour with what speaks for it.
type vote struct {
	color   colorful.Color
	weight  float64
	sources []string
}

type ballot struct{ votes []vote }

func (b *ballot) add(value string, weight float64, source string) {
	color, ok := colorIn(value)
	if !ok {
		return
	}
	for i := range b.votes {
		if b.votes[i].color.DistanceCIEDE2000(color) <= sameColor {
			b.votes[i].weight += weight
			if !slices.Contains(b.votes[i].sources, source) {
				b.votes[i].sources = append(b.votes[i].sources, source)
			}
			return
		}
	}
	b.votes = append(b.votes, vote{color, weight, []string{source}})
}

func chroma(c colorful.Color) float64 { _, chroma, _ := c.OkLch(); return chroma }

var (
	brandProperty  = regexp.MustCompile(`(?:brand|primary|accent|cta)`)
	buttonSelector = regexp.MustCompile(`(?i)(?:^|[\s,.>])(?:button|\.?btn[\w-]*|\.?cta[\w-]*|\.button[\w-]*)(?:[\s,.:>]|$)`)
	linkSelector   = regexp.MustCompile(`(?:^|,)\s*a(?:\s*$|:link|,)`)
	headSelector   = regexp.MustCompile(`(?:^|[\s,])h[1-3](?:[\s,]|$)`)
	bodySelector   = regexp.MustCompile(`(?:^|,)\s*(?:html|body|:root)\s*(?:,|$)`)
)

// visual finds colours and fonts in what the home page declares.
func visual(home *page) brand.Visual {
	out := brand.Visual{Colors: []brand.Color{}, Fonts: []brand.Font{}, ContrastWarnings: []string{}}
	if home == nil {
		return out
	}
	s := parseSheets(home.css)
	var chromatic, background, ink ballot
	for _, d := range s.declarations {
		value := s.resolve(d.value)
		switch {
		case strings.HasPrefix(d.property, "--") && brandProperty.MatchString(d.property):
			chromatic.add(value, voteNamedProperty, d.property)
		case strings.HasPrefix(d.property, "background") && buttonSelector.MatchString(d.selector):
			chromatic.add(value, voteButton, "button")
		case d.property == "color" && linkSelector.MatchString(d.selector):
			chromatic.add(value, voteLink, "link")
		case d.property == "color" && headSelector.MatchString(d.selector):
			chromatic.add(value, voteHeading, "heading")
		case strings.HasPrefix(d.property, "background") && bodySelector.MatchString(d.selector):
			background.add(value, 1, "body")
		case d.property == "color" && bodySelector.MatchString(d.selector):
			ink.add(value, 1, "body")
		}
	}
	if mask := home.meta(`link[rel="mask-icon"]`, "color"); mask != "" {
		chromatic.add(mask, voteMaskIcon, "mask-icon")
	}
	if theme := home.meta(`meta[name="theme-color"]`, "content"); theme != "" {
		if color, ok := colorIn(theme); ok && chroma(color) >= 0.03 {
			chromatic.add(theme, voteThemeColor, "theme-color")
		}
	}
	out.Colors = palette(chromatic, background, ink)
	out.ContrastWarnings = contrastWarnings(out.Colors)
	out.Fonts = fonts(s)
	return out
}

func palette(chromatic, background, ink ballot) []brand.Color {
	out := []brand.Color{}
	add := func(role string, v vote) {
		out = append(out, brand.Color{Role: role, Hex: v.color.Hex(), Weight: v.weight, Sources: v.sources})
	}
	colored := slices.Clone(chromatic.votes)
	slices.SortStableFunc(colored, func(a, b vote) int {
		if gray := cmp.Compare(boolInt(chroma(a.color) < 0.03), boolInt(chroma(b.color) < 0.03)); gray != 0 {
			return gray
		}
		return cmp.Compare(b.weight, a.weight)
	})
	for i, role := range []string{"primary", "secondary", "accent"} {
		if i < len(colored) {
			add(role, colored[i])
		}
	}
	if len(background.votes) > 0 {
		add("background", background.votes[0])
	}
	if len(ink.votes) > 0 {
		add("text", ink.votes[0])
	}
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func contrastWarnings(colors []brand.Color) []string {
	byRole := map[string]string{}
	for _, c := range colors {
		byRole[c.Role] = c.Hex
	}
	out := []string{}
	for _, pair := range [][2]string{{"text", "background"}, {"primary", "background"}} {
		a, errA := colorful.Hex(byRole[pair[0]])
		b, errB := colorful.Hex(byRole[pair[1]])
		if errA != nil || errB != nil {
			continue
		}
		if ratio := contrast(a, b); ratio < 4.5 {
			out = append(out, fmt.Sprintf("%s on %s has a contrast of %.1f; text needs 4.5", pair[0], pair[1], ratio))
		}
	}
	return out
}

func contrast(a, b colorful.Color) float64 {
	la, lb := luminance(a), luminance(b)
	return (math.Max(la, lb) + 0.05) / (math.Min(la, lb) + 0.05)
}

func luminance(c colorful.Color) float64 {
	r, g, b := c.LinearRgb()
	return 0.2126*r + 0.7152*g + 0.0722*b
}

var genericFonts = map[string]bool{"serif": true, "sans-serif": true, "monospace": true, "system-ui": true, "inherit": true, "initial": true, "unset": true, "ui-sans-serif": true, "ui-serif": true, "ui-monospace": true, "-apple-system": true, "blinkmacsystemfont": true, "cursive": true, "var": true}

func fonts(s sheet) []brand.Font {
	out := []brand.Font{}
	roles := []struct {
		role    string
		pattern *regexp.Regexp
	}{{"body", bodySelector}, {"heading", headSelector}, {"button", buttonSelector}}
	for _, r := range roles {
		for _, d := range s.declarations {
			if d.property != "font-family" || !r.pattern.MatchString(d.selector) {
				continue
			}
			for _, family := range strings.Split(s.resolve(d.value), ",") {
				family = text.OneLine(strings.Trim(strings.TrimSpace(family), `"'`), 60)
				if family != "" && !genericFonts[strings.ToLower(family)] {
					out = append(out, brand.Font{Role: r.role, Family: family, Source: "css " + r.role})
					break
				}
			}
			break
		}
	}
	return out
}
