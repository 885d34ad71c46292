package egress

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// at reads the scalar that a JSON pointer names, as text. An empty pointer is the whole
// document, which is text only when it is a scalar itself.
func at(document []byte, pointer string) (string, bool) {
	v, ok := node(document, pointer)
	if !ok {
		return "", false
	}
	switch x := v.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return strconv.FormatBool(x), true
	}
	return "", false
}

// node reads the value that a JSON pointer names.
func node(document []byte, pointer string) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	if pointer == "" {
		return v, true
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(rest, "/") {
		token = unescape.Replace(token)
		switch x := v.(type) {
		case map[string]any:
			if v, ok = x[token]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) || token != strconv.Itoa(i) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}
