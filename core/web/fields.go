package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// fieldView is one text of an action's input that a person may edit.
type fieldView struct {
	ID, Name, Pointer, Value string
	Long                     bool
}

// pointer writes a path as the rest of a JSON pointer.
func pointer(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	return strings.Join(parts, "/")
}

// textsOf lists the texts of the input, however deep, in order of their names.
func textsOf(a core.Action) []fieldView {
	var out []fieldView
	eachText(map[string]any(a.Input), nil, func(path []string, text string) {
		out = append(out, fieldView{ID: "f" + strconv.Itoa(len(out)) + "-" + a.ID, Name: strings.Join(path, " › "), Pointer: pointer(path), Value: text, Long: len(text) > 60 || strings.Contains(text, "\n")})
	})
	return out
}

func eachText(v any, path []string, do func(path []string, text string)) {
	switch v := v.(type) {
	case string:
		do(path, v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachText(v[key], append(path[:len(path):len(path)], key), do)
		}
	case []any:
		for i, item := range v {
			eachText(item, append(path[:len(path):len(path)], strconv.Itoa(i)), do)
		}
	}
}

// withTexts is the input with some of its texts changed. Only what is a text already can
// be changed; browsers send line ends as CRLF, inputs hold LF.
func withTexts(input core.ActionInput, changed map[string]string) any {
	return mapTexts(map[string]any(input), nil, func(path []string, text string) string {
		if to, ok := changed[pointer(path)]; ok {
			return strings.ReplaceAll(to, "\r\n", "\n")
		}
		return text
	})
}

func mapTexts(v any, path []string, to func(path []string, text string) string) any {
	switch v := v.(type) {
	case string:
		return to(path, v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = mapTexts(item, append(path[:len(path):len(path)], key), to)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = mapTexts(item, append(path[:len(path):len(path)], strconv.Itoa(i)), to)
		}
		return out
	}
	return v
}
