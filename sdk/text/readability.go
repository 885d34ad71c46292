package text

import "strings"

// Grade is the Flesch–Kincaid grade of English text: the school year in which it is easily read. It is 0 for no text.
func Grade(s string) float64 {
	words, sentences, syllables := readingCounts(s)
	if words == 0 {
		return 0
	}
	return 0.39*words/sentences + 11.8*syllables/words - 15.59
}

// ReadingEase is the Flesch reading ease of English text: 100 is easy, 0 is hard.
func ReadingEase(s string) float64 {
	words, sentences, syllables := readingCounts(s)
	if words == 0 {
		return 0
	}
	return 206.835 - 1.015*words/sentences - 84.6*syllables/words
}

func readingCounts(s string) (words, sentences, syllables float64) {
	for _, token := range Tokens(s) {
		words++
		syllables += float64(Syllables(token.Lower))
	}
	return words, max(1, float64(len(Sentences(s)))), syllables
}

// Syllables estimates the syllables of an English word by its groups of vowels.
func Syllables(word string) int {
	n, vowel := 0, false
	for _, r := range word {
		is := strings.ContainsRune("aeiouyäöüáéíóú", r)
		if is && !vowel {
			n++
		}
		vowel = is
	}
	if strings.HasSuffix(word, "e") && !strings.HasSuffix(word, "le") && n > 1 {
		n--
	}
	return max(1, n)
}
