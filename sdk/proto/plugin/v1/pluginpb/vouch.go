package pluginpb

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
)

var (
	dropped = regexp.MustCompile(`(?is)<(script|style|noscript|template)\b.*?</(script|style|noscript|template)>|<!--.*?-->`)
	markup  = regexp.MustCompile(`(?s)<[^>]*>`)
)

// Vouches reports whether quote stands literally in a fetched body: in its bytes, or in
// its text once markup is taken away and white space is folded. Host and test host let
// evidence keep the trust "observed" only where it does.
func Vouches(body []byte, quote string) bool {
	want := fold(quote)
	if want == "" {
		return false
	}
	raw := string(body)
	if strings.Contains(fold(raw), want) {
		return true
	}
	text := dropped.ReplaceAllString(raw, " ")
	spaced := fold(html.UnescapeString(markup.ReplaceAllString(text, " ")))
	joined := fold(html.UnescapeString(markup.ReplaceAllString(text, "")))
	return strings.Contains(spaced, want) || strings.Contains(joined, want)
}

// TextOf is a value as it would stand in a body: a string as it is, anything else as JSON.
func TextOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(b)
}

func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

// Allows reports whether name is in list; an entry that ends in * covers every name
// that begins with what stands before it.
func Allows(list []string, name string) bool {
	for _, entry := range list {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok && strings.HasPrefix(name, prefix) || entry == name {
			return true
		}
	}
	return false
}
