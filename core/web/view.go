package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
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

// funcs are the functions of the templates, bound to the time of the request.
func funcs(now time.Time) template.FuncMap {
	return template.FuncMap{
		"visible": visible,
		"words":   func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
		"ago":     func(v any) string { return relative(v, now) },
		"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"json":    indent,
		"tone":    tone,
		"plural":  plural,
		"undo":    undo,
		"money":   money,
		"proof":   proof,
		"waiting": func(counts core.RunCounts) int {
			return counts[string(core.ActionStatusPending)] + counts[string(core.ActionStatusProposed)]
		},
		"pair": func(page, item any) pair { return pair{page, item} },
	}
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

func indent(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
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
	case "succeeded", "completed", "approved", "supported", "low", "ok", "measuring":
		return "ok"
	case "pending", "proposed", "awaiting_approval", "partially_approved", "partial", "medium", "claimed", "sending", "executing":
		return "warn"
	case "failed", "unknown", "rejected", "revoked", "expired", "cancelled", "needs_attention", "unsupported", "contradicted", "high", "refused":
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
