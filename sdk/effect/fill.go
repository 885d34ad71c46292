package effect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Accept checks what a reply holds against the capture: whole match, length, and text
// only. What it accepts may be filled in.
func (c Capture) Accept(value string) error {
	whole, err := regexp.Compile(`^(?:` + c.Pattern + `)$`)
	if err != nil {
		return fmt.Errorf("capture %q: %w", c.Name, err)
	}
	if !utf8.ValidString(value) || utf8.RuneCountInString(value) > c.MaxLength || !whole.MatchString(value) {
		return fmt.Errorf("the reply's value for capture %q does not fit its pattern", c.Name)
	}
	return nil
}

// Fill puts captured values into the blanks of an HTTP step: escaped in the address,
// as part of a JSON string in a JSON body, as they are elsewhere. A blank without value
// is an error, so that no request with a hole leaves.
func (s ResolvedStep) Fill(values map[string]string) (ResolvedStep, error) {
	if s.HTTP == nil {
		return s, nil
	}
	missing := ""
	put := func(text string, escape func(string) string) string {
		return capturePlace.ReplaceAllStringFunc(text, func(place string) string {
			value, ok := values[capturePlace.FindStringSubmatch(place)[1]]
			if !ok {
				missing = place
			}
			return escape(value)
		})
	}
	plain := func(v string) string { return v }
	h := *s.HTTP
	path, query, hasQuery := strings.Cut(h.URL, "?")
	h.URL = put(path, url.PathEscape)
	if hasQuery {
		h.URL += "?" + put(query, url.QueryEscape)
	}
	asText, isJSON := plain, false
	h.Headers = make([]Pair, len(s.HTTP.Headers))
	for i, p := range s.HTTP.Headers {
		h.Headers[i] = Pair{Name: p.Name, Value: put(p.Value, plain)}
		if strings.ContainsAny(h.Headers[i].Value, "\r\n\x00") {
			return s, fmt.Errorf("a captured value would break header %q", p.Name)
		}
		isJSON = isJSON || strings.EqualFold(p.Name, "Content-Type") && strings.Contains(p.Value, "json")
	}
	if isJSON {
		asText = jsonInner
	}
	if capturePlace.Match(h.Body) {
		h.Body = []byte(put(string(h.Body), asText))
	}
	if missing != "" {
		return s, fmt.Errorf("%s has no value", missing)
	}
	s.HTTP = &h
	return s, nil
}

// jsonInner escapes a text for the inside of a JSON string.
func jsonInner(v string) string {
	b, _ := json.Marshal(v) // a string always marshals
	return string(b[1 : len(b)-1])
}

// keepBlanks escapes everything but the blanks of captures.
func keepBlanks(text string, escape func(string) string) string {
	var out strings.Builder
	last := 0
	for _, at := range capturePlace.FindAllStringIndex(text, -1) {
		out.WriteString(escape(text[last:at[0]]))
		out.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	out.WriteString(escape(text[last:]))
	return out.String()
}
