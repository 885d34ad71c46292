package draft

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"unicode"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/text"
)

// ChannelRule is one rule of a channel, kept as data with its source. A hard rule blocks, a soft one warns, etiquette is
// shown to the person who posts.
type ChannelRule struct {
	Channel   string `json:"channel"`
	Rule      string `json:"rule"`
	Kind      string `json:"kind"`
	Text      string `json:"text"`
	Field     string `json:"field"`
	Value     any    `json:"value"`
	Count     string `json:"count"` // how to measure: weighted, grapheme, double_width; empty when the value is not a length
	When      string `json:"when"`
	Source    string `json:"source"`
	CheckedAt string `json:"checkedAt"`
	Conflicts []struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
	} `json:"conflicts"`
}

// LoadRules reads every channel rule file of a folder.
func LoadRules(fsys fs.FS, dir string) ([]ChannelRule, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []ChannelRule
	for _, name := range names {
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		var file struct {
			Rules []ChannelRule `json:"rules"`
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("channel rules %s: %w", name, err)
		}
		out = append(out, file.Rules...)
	}
	return out, nil
}

// Rules are the channel rules that ship with the platform.
var Rules = sync.OnceValue(func() []ChannelRule {
	rules, err := LoadRules(schemas.FS, "channel-rules")
	if err != nil {
		panic(err) // embedded data, checked by a test
	}
	return rules
})

// Rule returns a rule by its name. It panics when no file holds it: the name stands in our own code.
func Rule(name string) ChannelRule {
	for _, rule := range Rules() {
		if rule.Rule == name {
			return rule
		}
	}
	panic("no channel rule " + name)
}

// Max is the largest length or number that the rule allows.
func (r ChannelRule) Max() int {
	switch value := r.Value.(type) {
	case float64:
		return int(value)
	case []any:
		if last, ok := value[len(value)-1].(float64); ok {
			return int(last)
		}
	}
	return 0
}

// Measure is how the channel counts the length of s.
func (r ChannelRule) Measure(s string) int {
	switch r.Count {
	case "weighted":
		return text.XWeight(s)
	case "double_width":
		n := 0
		for _, c := range s {
			n++
			if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
				n++
			}
		}
		return n
	}
	return text.Graphemes(s)
}

// ChannelRules returns the rules of a channel by name, for packs that list what a person should mind.
func ChannelRules(channel string) []ChannelRule {
	var out []ChannelRule
	for _, rule := range Rules() {
		if rule.Channel == channel {
			out = append(out, rule)
		}
	}
	return out
}
