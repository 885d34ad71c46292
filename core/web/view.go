package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
)

//go:embed templates static
var files embed.FS

// pair hands the page and one of its items to a nested template.
type pair struct{ Page, Item any }

// funcs are the functions of the templates.
func funcs(clock core.Clock) template.FuncMap {
	return template.FuncMap{
		"visible":  visible,
		"plain":    plain,
		"words":    words,
		"sentence": sentence,
		"ago":      func(v any) string { return relative(v, clock.Now()) },
		"stamp":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"machine":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"parts":    parts,
		"tone":     tone,
		"plural":   plural,
		"undo":     undo,
		"money":    money,
		"proof":    proof,
		"open":     openOf,
		"pair":     func(page, item any) pair { return pair{page, item} },
	}
}

func words(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") }

// sentence is words with a capital letter at the start.
func sentence(v any) string {
	text := words(v)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// visible makes text safe to judge: characters that hide, reorder or imitate show up as
// escapes instead of acting. Everything else is escaped by the template as text.
func visible(v any) template.HTML {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case *string:
		if v != nil {
			text = *v
		}
	default:
		text = fmt.Sprint(v)
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `<span class="hidden-char">byte %02X</span>`, text[i])
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case isHidden(r):
			fmt.Fprintf(&b, `<span class="hidden-char">U+%04X</span>`, r)
		default:
			template.HTMLEscape(&b, []byte(string(r)))
		}
	}
	return template.HTML(b.String()) //nolint:gosec // every rune was escaped above
}

// isHidden reports characters that a reader cannot see but a program obeys.
func isHidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case unicode.Is(unicode.Zs, r) && r != ' ':
		return true
	case r == 0x034F || r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0 || (r >= 0x17B4 && r <= 0x17B5):
		return true
	case unicode.Is(unicode.Variation_Selector, r) && r != 0xFE0F:
		return true
	}
	return false
}

// plain is visible for places that hold text only, as titles and labels.
func plain(v any) string {
	var b strings.Builder
	for _, r := range fmt.Sprint(v) {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case isHidden(r) || r == utf8.RuneError:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shorten is plain, cut for a title.
func shorten(text string) string {
	runes := []rune(plain(text))
	if len(runes) <= 60 {
		return string(runes)
	}
	return string(runes[:59]) + "…"
}

// parts lays the content of a draft out by its names: texts as they are, the rest as JSON.
func parts(content core.AssetContent) []pairView {
	var out []pairView
	for _, name := range slices.Sorted(maps.Keys(content)) {
		text, ok := content[name].(string)
		if !ok {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(content[name]); err != nil {
				b.WriteString(err.Error())
			}
			text = strings.TrimSpace(b.String())
		}
		whole := true
		text = (&budget{left: showLimit}).take(text, &whole)
		if !whole {
			text += "\n… the rest is in the interface for programs"
		}
		out = append(out, pairView{Name: name, Value: text})
	}
	return out
}

func relative(v any, now time.Time) string {
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v == nil {
			return ""
		}
		t = *v
	}
	d := now.Sub(t)
	future := d < 0
	if future {
		d = -d
	}
	var text string
	switch {
	case d < time.Minute:
		text = fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		text = fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		text = fmt.Sprintf("%d h", int(d.Hours()))
	default:
		text = fmt.Sprintf("%d days", int(d.Hours()/24))
	}
	if future {
		return "in " + text
	}
	return text + " ago"
}

// tone picks the colour of a tag; the word itself carries the meaning.
func tone(v any) string {
	switch fmt.Sprint(v) {
	case "succeeded", "completed", "approved", "supported", "low", "ok", "measuring", "connected":
		return "ok"
	case "pending", "proposed", "awaiting_approval", "partially_approved", "partial", "medium", "claimed", "sending", "executing", "needs_reauth", "connecting":
		return "warn"
	case "failed", "unknown", "rejected", "revoked", "expired", "cancelled", "needs_attention", "unsupported", "contradicted", "high", "refused", "error":
		return "bad"
	}
	return ""
}

func undo(v any) string {
	switch fmt.Sprint(v) {
	case "reversible":
		return "Can be undone."
	case "externally_reversible":
		return "Can be undone by hand, where it lands."
	}
	return "Cannot be unsent."
}

func money(micros int, currency string) string {
	if micros == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%.2f %s", float64(micros)/1e6, currency)
}

func proof(v any) string {
	switch fmt.Sprint(v) {
	case "P1":
		return "a signed-in approver"
	case "P3":
		return "a passkey"
	}
	return "a sign-in of the last five minutes"
}
