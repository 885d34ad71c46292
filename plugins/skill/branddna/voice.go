package branddna

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
)

// minVoiceWords is the least text from which a manner of writing can be told.
const minVoiceWords = 40

var (
	passivePattern     = regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been|being) (?:\w+ly )?\w+(?:ed|en)\b`)
	contractionPattern = regexp.MustCompile(`(?i)\b\w+['’](?:s|re|ll|ve|d|t|m)\b`)
	emojiPattern       = regexp.MustCompile(`[\x{1F300}-\x{1FAFF}\x{2600}-\x{27BF}]`)
	boosterPattern     = regexp.MustCompile(`(?i)\b(?:very|really|truly|extremely|incredibly|absolutely|totally|best|amazing|ultimate|powerful)\b`)
	hedgePattern       = regexp.MustCompile(`(?i)\b(?:may|might|could|perhaps|usually|often|sometimes|about|roughly|approximately|on average|up to)\b`)
)

// voice measures how the brand writes. English text only: other languages give no metrics, since the rules do not hold there.
func voice(sentences []string, english bool) brand.Voice {
	out := brand.Voice{Metrics: map[string]float64{}, Adjectives: []brand.Adjective{}, Do: []string{}, Dont: []string{}}
	all := strings.Join(sentences, "\n")
	words := float64(text.WordCount(all))
	if !english || words < minVoiceWords {
		return out
	}
	var lengths []float64
	counts := map[string]float64{}
	var you, numbers, direct []string
	for _, s := range sentences {
		lengths = append(lengths, float64(text.WordCount(s)))
		for _, token := range text.Tokens(s) {
			switch token.Lower {
			case "i", "my", "me":
				counts["i"]++
			case "we", "our", "us", "we're":
				counts["we"]++
			case "you", "your", "yours", "you're":
				counts["you"]++
			}
			if token.Number {
				counts["number"]++
			}
		}
		lower := strings.ToLower(s)
		if strings.Contains(lower, "you") {
			you = append(you, s)
		}
		if len(text.Quantities(s)) > 0 {
			numbers = append(numbers, s)
		}
		if imperative(s) {
			counts["imperative"]++
			direct = append(direct, s)
		}
		counts["question"] += boolFloat(strings.HasSuffix(s, "?"))
		counts["exclamation"] += boolFloat(strings.HasSuffix(s, "!"))
		counts["passive"] += boolFloat(passivePattern.MatchString(s))
	}
	n := float64(len(sentences))
	mean, deviation := meanAndDeviation(lengths)
	for name, value := range map[string]float64{
		"sentenceLength": mean, "sentenceLengthDeviation": deviation, "grade": text.Grade(all), "readingEase": text.ReadingEase(all),
		"iShare": counts["i"] / words, "weShare": counts["we"] / words, "youShare": counts["you"] / words,
		"imperativeRate": counts["imperative"] / n, "questionRate": counts["question"] / n, "exclamationRate": counts["exclamation"] / n, "passiveRate": counts["passive"] / n,
		"numbersPer100Words": 100 * counts["number"] / words, "contractionsPer100Words": 100 * float64(len(contractionPattern.FindAllString(all, -1))) / words,
		"emojiPer100Words": 100 * float64(len(emojiPattern.FindAllString(all, -1))) / words, "boostersPer100Words": 100 * float64(len(boosterPattern.FindAllString(all, -1))) / words,
		"hedgesPer100Words": 100 * float64(len(hedgePattern.FindAllString(all, -1))) / words,
	} {
		out.Metrics[name] = math.Round(value*1000) / 1000
	}
	describe(&out, sentences, you, numbers, direct)
	return out
}

// describe adds a word only where a number passes its mark and two quotes show it.
func describe(v *brand.Voice, sentences, you, numbers, direct []string) {
	add := func(word, because string, quotes []string, do string) {
		if len(quotes) < 2 {
			return
		}
		v.Adjectives = append(v.Adjectives, brand.Adjective{Word: word, Because: because, Quotes: quotes[:2]})
		v.Do = append(v.Do, do)
	}
	m := v.Metrics
	if m["youShare"] >= 0.02 || m["imperativeRate"] >= 0.2 {
		add("direct", fmt.Sprintf("speaks to the reader: %.1f %% of the words are you or your, %.0f %% of the sentences are imperative", 100*m["youShare"], 100*m["imperativeRate"]), append(direct, you...), "Speak to the reader and start with a verb.")
	}
	if m["numbersPer100Words"] >= 2 {
		add("exact", fmt.Sprintf("%.1f numbers in 100 words", m["numbersPer100Words"]), numbers, "Give the number.")
	}
	if m["sentenceLength"] <= 13 {
		add("concise", fmt.Sprintf("%.0f words in an average sentence", m["sentenceLength"]), sentences, "Keep sentences to about a dozen words.")
	}
	if m["grade"] >= 13 {
		add("technical", fmt.Sprintf("reads at school grade %.0f", m["grade"]), sentences, "Use the terms of the trade.")
	}
	if m["exclamationRate"] == 0 {
		v.Dont = append(v.Dont, "No exclamation marks.")
	}
	if m["emojiPer100Words"] == 0 {
		v.Dont = append(v.Dont, "No emoji.")
	}
	if m["boostersPer100Words"] < 0.3 {
		v.Dont = append(v.Dont, "No boosters such as “very” or “best”.")
	}
	if m["contractionsPer100Words"] == 0 {
		v.Dont = append(v.Dont, "No contractions.")
	}
}

// imperative tells whether a sentence opens with a bare verb. The test is coarse: a first word that is no function word,
// carries no inflection, and is followed by an article, a possessive or “to”.
func imperative(s string) bool {
	tokens := text.Tokens(s)
	if len(tokens) < 3 || tokens[0].Stop || tokens[0].Number {
		return false
	}
	first := tokens[0].Lower
	for _, ending := range []string{"s", "ed", "ing", "ly", "tion"} {
		if strings.HasSuffix(first, ending) {
			return false
		}
	}
	switch tokens[1].Lower {
	case "a", "an", "the", "your", "to", "each", "every", "all", "in", "how", "up":
		return true
	}
	return false
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}

func boolFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
