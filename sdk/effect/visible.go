package effect

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible shows text so that nothing in it can mislead a reader: characters that change
// direction, take no room or control a terminal appear as escapes such as \u{202E}.
// Line ends and tabs stay.
func Visible(s string) string {
	if !HasHidden(s) {
		return s
	}
	var out strings.Builder
	last := rune(0)
	for _, r := range s {
		if hidden(last, r) {
			fmt.Fprintf(&out, `\u{%04X}`, r)
		} else {
			out.WriteRune(r)
		}
		last = r
	}
	return out.String()
}

// HasHidden reports whether Visible would change s.
func HasHidden(s string) bool {
	last := rune(0)
	for _, r := range s {
		if hidden(last, r) {
			return true
		}
		last = r
	}
	return false
}

// hidden reports whether r cannot be seen where it stands, which depends on the rune before.
func hidden(last, r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case r == 0x200d || r == 0xfe0f: // joins and colours emoji, and hides elsewhere
		return !unicode.Is(unicode.So, last) && !unicode.Is(unicode.Sk, last) && (r != 0x200d || last != 0xfe0f)
	case r == 0x00ad || r == 0x034f || r == 0x061c || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x2800 || r == 0x3164 || r == 0xffa0:
		return true
	case r == unicode.ReplacementChar:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || r >= 0xfe00 && r <= 0xfe0e
}

// MixedScripts lists words that mix letters which look alike across Latin, Greek and
// Cyrillic, as false host names and brand names do.
func MixedScripts(s string) []string {
	found := []string{}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		n := 0
		for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic} {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script, r) }) {
				n++
			}
		}
		if n > 1 && len(found) < 10 {
			found = append(found, word)
		}
	}
	return found
}

// clip shortens a text for a title, to whole characters.
func clip(s string, max int) string {
	s = strings.Join(strings.Fields(Visible(s)), " ")
	runes := []rune(s)
	if len(runes) <= max {
		return s
	}
	return string(runes[:max-1]) + "…"
}
