package text

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
	"sync"
)

//go:embed background.txt
var backgroundFile string

// backgroundWords is the length, in content words, that the shares of background.txt assume for a page.
const backgroundWords = 300

// rareShare is the share of pages given to a word that no band lists.
const rareShare = 0.004

// background maps a stem to the share of pages that hold it. The first band that lists a word wins.
var background = sync.OnceValue(func() map[string]float64 {
	table := make(map[string]float64, 2000)
	share := 0.0
	for _, line := range strings.Split(backgroundFile, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line), 64); err == nil {
			share = value
			continue
		}
		for _, word := range strings.Fields(line) {
			stem := Stem(word)
			if _, listed := table[stem]; !listed {
				table[stem] = share
			}
		}
	}
	return table
})

// PageShare estimates the share of English product pages on which the stem stands at least once, in (0, 1).
func PageShare(stem string) float64 {
	if share, ok := background()[stem]; ok {
		return share
	}
	return rareShare
}

// IDF is the inverse document frequency of a stem: near 0 for a word of every page, 5.5 for a rare one.
func IDF(stem string) float64 { return -math.Log(PageShare(stem)) }

// BackgroundProbability is the chance that a content word of an average page is this stem. It follows from the page
// share when occurrences are independent: share = 1 − exp(−probability · words of a page).
func BackgroundProbability(stem string) float64 {
	return -math.Log(1-PageShare(stem)) / backgroundWords
}
