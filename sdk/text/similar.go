package text

import (
	"math"
	"strings"
)

// NearDuplicate is the share of four-word runs that two texts have in common, between 0 and 1. Texts shorter than four
// words are compared by their words.
func NearDuplicate(a, b string) float64 { return jaccard(wordGrams(a, 4), wordGrams(b, 4)) }

// StemOverlap is the share of content stems that two texts have in common (Jaccard), between 0 and 1.
func StemOverlap(a, b string) float64 { return jaccard(setOf(Stems(a)), setOf(Stems(b))) }

// Cosine is the cosine of the idf-weighted stem counts of two texts, between 0 and 1.
func Cosine(a, b string) float64 { return CosineTo(b)(a) }

// CosineTo is Cosine against one text, prepared once.
func CosineTo(b string) func(a string) float64 {
	vb := stemWeights(b)
	lengthB := norm2(vb)
	return func(a string) float64 {
		va := stemWeights(a)
		length := norm2(va) * lengthB
		if length == 0 {
			return 0
		}
		dot := 0.0
		for _, stem := range SortedKeys(va) {
			dot += va[stem] * vb[stem]
		}
		return dot / length
	}
}

func stemWeights(s string) map[string]float64 {
	weights := map[string]float64{}
	for _, stem := range Stems(s) {
		weights[stem] += IDF(stem)
	}
	return weights
}

func norm2(v map[string]float64) float64 {
	// Summed in the order of the stems: floating point addition depends on order, and equal input must give equal output.
	sum := 0.0
	for _, key := range SortedKeys(v) {
		sum += v[key] * v[key]
	}
	return math.Sqrt(sum)
}

func wordGrams(s string, n int) map[string]bool {
	tokens := Tokens(s)
	words := make([]string, len(tokens))
	for i, token := range tokens {
		words[i] = token.Stem
	}
	if len(words) < n {
		return setOf(words)
	}
	set := make(map[string]bool, len(words))
	for i := 0; i+n <= len(words); i++ {
		set[strings.Join(words[i:i+n], " ")] = true
	}
	return set
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, item := range list {
		set[item] = true
	}
	return set
}

func jaccard(a, b map[string]bool) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	both := 0
	for item := range a {
		if b[item] {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
