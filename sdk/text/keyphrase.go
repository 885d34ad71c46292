package text

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Keyphrase is a phrase of one to four words that says what a text is about.
type Keyphrase struct {
	Text  string  `json:"text"` // the most frequent spelling, in lower case unless it is always written otherwise
	Stem  string  `json:"-"`    // the stems, joined by spaces: two spellings of one phrase share it
	Score float64 `json:"score"`
	Count int     `json:"count"`
}

const maxPhraseWords = 4

// candidate is a phrase before ranking.
type candidate struct {
	stems     []string
	count     int
	first     int
	spellings map[string]int
}

// Keyphrases ranks the phrases of the given sentences or blocks and returns the best limit of them. Three rankings are
// fused by reciprocal rank: TextRank (how well a phrase's words are connected), RAKE (degree over frequency inside
// phrases) and the position of the first mention. A phrase inside a better one that is hardly ever used alone is left out.
func Keyphrases(blocks []string, limit int) []Keyphrase {
	candidates, degree, frequency, links := collectPhrases(blocks)
	if len(candidates) == 0 {
		return nil
	}
	keys := SortedKeys(candidates)
	ranks := textRank(links)
	byTextRank := func(key string) float64 {
		sum := 0.0
		for _, stem := range candidates[key].stems {
			sum += ranks[stem] * IDF(stem)
		}
		return sum
	}
	byRake := func(key string) float64 {
		sum := 0.0
		for _, stem := range candidates[key].stems {
			sum += float64(degree[stem]) / float64(frequency[stem])
		}
		return sum * float64(candidates[key].count)
	}
	byPosition := func(key string) float64 { return -float64(candidates[key].first) }
	scores := make(map[string]float64, len(keys))
	for _, measure := range []func(string) float64{byTextRank, byRake, byPosition} {
		order := slices.Clone(keys)
		values := make(map[string]float64, len(keys))
		for _, key := range keys {
			values[key] = measure(key)
		}
		slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(values[b], values[a]) })
		for rank, key := range order {
			scores[key] += 1 / float64(60+rank)
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })
	return pickPhrases(keys, candidates, scores, limit)
}

func pickPhrases(keys []string, candidates map[string]*candidate, scores map[string]float64, limit int) []Keyphrase {
	var out []Keyphrase
	for _, key := range keys {
		if len(out) == limit {
			break
		}
		phrase := candidates[key]
		covered := slices.ContainsFunc(out, func(better Keyphrase) bool {
			return strings.Contains(" "+better.Stem+" ", " "+key+" ") && phrase.count <= better.Count+1
		})
		if covered {
			continue
		}
		out = append(out, Keyphrase{Text: bestSpelling(phrase.spellings), Stem: key, Score: scores[key], Count: phrase.count})
	}
	return out
}

func collectPhrases(blocks []string) (candidates map[string]*candidate, degree, frequency map[string]int, links map[string]map[string]float64) {
	candidates, degree, frequency = map[string]*candidate{}, map[string]int{}, map[string]int{}
	links = map[string]map[string]float64{}
	position := 0
	for _, block := range blocks {
		for _, sentence := range Sentences(block) {
			for _, run := range phraseRuns(sentence.Text) {
				for i, token := range run {
					position++
					frequency[token.Stem]++
					degree[token.Stem] += len(run)
					for j := i + 1; j < len(run) && j <= i+3; j++ {
						link(links, token.Stem, run[j].Stem)
					}
				}
				addCandidates(candidates, sentence.Text, run, position-len(run))
			}
		}
	}
	return candidates, degree, frequency, links
}

// phraseRuns returns the runs of content words that no function word, number or punctuation interrupts.
func phraseRuns(sentence string) [][]Token {
	var runs [][]Token
	var run []Token
	flush := func() {
		if len(run) > 0 {
			runs = append(runs, run)
			run = nil
		}
	}
	for _, token := range Tokens(sentence) {
		if len(run) > 0 {
			if gap := sentence[run[len(run)-1].End:token.Start]; gap != " " && gap != "-" {
				flush()
			}
		}
		if token.Stop || token.Number || len(token.Lower) < 3 && strings.ToUpper(token.Text) != token.Text {
			flush()
			continue
		}
		run = append(run, token)
	}
	flush()
	return runs
}

func addCandidates(candidates map[string]*candidate, sentence string, run []Token, position int) {
	add := func(words []Token, at int) {
		stems := make([]string, len(words))
		for i, word := range words {
			stems[i] = word.Stem
		}
		key := strings.Join(stems, " ")
		phrase := candidates[key]
		if phrase == nil {
			phrase = &candidate{stems: stems, first: at, spellings: map[string]int{}}
			candidates[key] = phrase
		}
		phrase.count++
		phrase.spellings[sentence[words[0].Start:words[len(words)-1].End]]++
	}
	if len(run) <= maxPhraseWords {
		add(run, position)
	}
	for i := range run {
		for n := 1; n <= 2 && i+n <= len(run) && n < len(run); n++ {
			add(run[i:i+n], position+i)
		}
	}
}

func link(links map[string]map[string]float64, a, b string) {
	if a == b {
		return
	}
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if links[pair[0]] == nil {
			links[pair[0]] = map[string]float64{}
		}
		links[pair[0]][pair[1]]++
	}
}

// textRank is the stationary weight of each word in the graph of words that stand near each other.
func textRank(links map[string]map[string]float64) map[string]float64 {
	const damping, rounds = 0.85, 30
	words := SortedKeys(links)
	totals := make(map[string]float64, len(words))
	rank := make(map[string]float64, len(words))
	for _, word := range words {
		for _, neighbour := range SortedKeys(links[word]) {
			totals[word] += links[word][neighbour]
		}
		rank[word] = 1
	}
	neighbours := make(map[string][]string, len(words))
	for _, word := range words {
		neighbours[word] = SortedKeys(links[word])
	}
	for range rounds {
		next := make(map[string]float64, len(words))
		for _, word := range words {
			sum := 0.0
			for _, neighbour := range neighbours[word] {
				sum += rank[neighbour] * links[neighbour][word] / totals[neighbour]
			}
			next[word] = 1 - damping + damping*sum
		}
		rank = next
	}
	return rank
}

// bestSpelling prefers the frequent spelling, and a lower-case one among equals, since headings capitalise words.
func bestSpelling(spellings map[string]int) string {
	best := ""
	for _, spelling := range SortedKeys(spellings) {
		if best == "" || spellings[spelling] > spellings[best] || spellings[spelling] == spellings[best] && spelling > best {
			best = spelling
		}
	}
	return best
}

// SortedKeys returns the keys of a map in order, for loops whose result must not depend on map order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
