package text

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxUntrusted is the longest piece of untrusted text, in characters, that one evidence item may hold.
const MaxUntrusted = 2000

// Clean makes untrusted text harmless to show and to compare: invalid UTF-8, control, bidirectional and invisible
// characters are removed, runs of space become one, and the result is cut to MaxUntrusted characters. Line breaks stay.
func Clean(s string) string { return CleanTo(s, MaxUntrusted) }

// CleanTo is Clean with another limit in characters.
func CleanTo(s string, limit int) string {
	var b strings.Builder
	b.Grow(min(len(s), limit*4))
	count := 0
	pendingSpace, pendingBreak := false, false
	for _, r := range s {
		if r == '\n' {
			pendingBreak = true
			continue
		}
		if unicode.IsSpace(r) {
			pendingSpace = true
			continue
		}
		if Invisible(r) || r == utf8.RuneError {
			continue
		}
		if b.Len() > 0 && (pendingBreak || pendingSpace) {
			if count+1 >= limit {
				break
			}
			if pendingBreak {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
			count++
		}
		pendingSpace, pendingBreak = false, false
		if count >= limit {
			break
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}

// OneLine is CleanTo with line breaks turned into spaces, for labels, titles and quoted fields.
func OneLine(s string, limit int) string {
	return CleanTo(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\u2028", " ", "\u2029", " ").Replace(s), limit)
}

// Invisible tells whether a character has no place in text that a person is asked to approve: controls, bidirectional
// overrides and isolates, zero-width characters, tags and variation selectors that carry hidden text. The zero-width
// joiner stays, since emoji are built with it.
func Invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\u200d' || r == '\ufe0f':
		return false
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cs, r), unicode.Is(unicode.Co, r):
		return true
	case r >= 0xfe00 && r <= 0xfe0e, r >= 0xe0100 && r <= 0xe01ef, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true
	}
	return r == 0x2028 || r == 0x2029
}

var placeholderPattern = regexp.MustCompile(`(?i)\[[^\]\n]{1,60}\](?:[^(]|$)|\{\{[^}\n]*\}\}|\$\{[^}\n]*\}|<[a-z][a-z _-]*(?:name|here|url|link|company|product)[a-z _-]*>|\b(?:tbd|tba|xxx+|lorem ipsum|lorem|your (?:company|product|brand|name|business|tagline) (?:here|name)|(?:insert|add) [a-z ]{2,30} here|example\.com/your)\b`)

// Placeholders returns the unfilled template parts of s: "[name]", "{{first_name}}", "TBD", "lorem". A merge field named
// in allowed ("first_name" allows "{{first_name}}") is not one.
func Placeholders(s string, allowed ...string) []string {
	var out []string
	for _, hit := range placeholderPattern.FindAllString(s, -1) {
		if field, ok := strings.CutPrefix(hit, "{{"); ok {
			if contains(allowed, strings.TrimSpace(strings.TrimSuffix(field, "}}"))) {
				continue
			}
		}
		if strings.HasPrefix(hit, "[") {
			if end := strings.IndexByte(hit, ']'); end >= 0 {
				hit = hit[:end+1]
			}
			if hit == "[x]" || hit == "[ ]" {
				continue
			}
		}
		out = append(out, strings.TrimSpace(hit))
	}
	return out
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
