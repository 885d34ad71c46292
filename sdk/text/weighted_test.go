package text

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// publicData returns the folder of public test sets, or skips the test when it is not on this machine.
func publicData(t *testing.T, parts ...string) string {
	t.Helper()
	roots := []string{os.Getenv("SALLYPORT_TEST_DATA")}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			roots = append(roots, filepath.Join(dir, "shared", "data"))
		}
	}
	for _, root := range roots {
		path := filepath.Join(append([]string{root}, parts...)...)
		if _, err := os.Stat(path); root != "" && err == nil {
			return path
		}
	}
	t.Skipf("not run: the public data set %s is absent (set SALLYPORT_TEST_DATA)", filepath.Join(parts...))
	return ""
}

type weightedCase struct {
	Description string `yaml:"description"`
	Text        string `yaml:"text"`
	Expected    struct {
		WeightedLength int  `yaml:"weightedLength"`
		Valid          bool `yaml:"valid"`
	} `yaml:"expected"`
}

func TestXWeightConformance(t *testing.T) {
	raw, err := os.ReadFile(publicData(t, "twitter-text", "conformance", "validate.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests struct {
			Weighted []weightedCase `yaml:"WeightedTweetsCounterTest"`
			Emoji    []weightedCase `yaml:"WeightedTweetsWithDiscountedEmojiCounterTest"`
			Marks    []weightedCase `yaml:"UnicodeDirectionalMarkerCounterTest"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	checked := 0
	check := func(cases []weightedCase, wholeEmoji bool) {
		for _, c := range cases {
			checked++
			got := weigh(c.Text, wholeEmoji)
			if got != c.Expected.WeightedLength {
				t.Errorf("%s: weight %d, want %d\n%.200q", c.Description, got, c.Expected.WeightedLength, c.Text)
			}
			if wholeEmoji && XValid(c.Text) != c.Expected.Valid {
				t.Errorf("%s: valid %v, want %v", c.Description, !c.Expected.Valid, c.Expected.Valid)
			}
		}
	}
	check(file.Tests.Weighted, false)
	check(file.Tests.Emoji, true)
	check(file.Tests.Marks, true)
	if checked != 44 {
		t.Errorf("checked %d weighted cases, the suite has 44", checked)
	}
}

func TestXWeight(t *testing.T) {
	for text, want := range map[string]int{
		"":                                  0,
		"plain text":                        10,
		"see https://example.com/a/b?c=d":   27,
		"mail me at name@example.com":       27,
		"日本":                                4,
		"👨‍👩‍👧‍👦 family":                    9,
		"the file main.unknowntld is small": 33,
	} {
		if got := XWeight(text); got != want {
			t.Errorf("XWeight(%q) = %d, want %d", text, got, want)
		}
	}
	if XValid("") || XValid("a\ufffe") {
		t.Error("an empty post or one with a forbidden character counts as valid")
	}
}

func TestLinksConformance(t *testing.T) {
	raw, err := os.ReadFile(publicData(t, "twitter-text", "conformance", "extract.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests struct {
			URLs []struct {
				Description string   `yaml:"description"`
				Text        string   `yaml:"text"`
				Expected    []string `yaml:"expected"`
			} `yaml:"urls"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Tests.URLs) != 91 {
		t.Errorf("checked %d cases, the suite has 91", len(file.Tests.URLs))
	}
	for _, c := range file.Tests.URLs {
		var got []string
		for _, link := range Links(c.Text) {
			got = append(got, link.Text)
		}
		if strings.Join(got, " ") != strings.Join(c.Expected, " ") {
			t.Errorf("%s: %.200q\n got %q\nwant %q", c.Description, c.Text, got, c.Expected)
		}
	}
}
