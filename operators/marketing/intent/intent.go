// Package intent tells what a marketing goal asks for. It is a multinomial logistic regression over words and letters,
// trained on our own phrases the first time it is used; the same phrases always give the same model.
package intent

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

//go:embed data/*.jsonl
var data embed.FS

// Intents.
const (
	Brand        = "brand"
	Social       = "social"
	Ads          = "ads"
	Landing      = "landing"
	Email        = "email"
	WeeklyReport = "weekly_report"
	Anomaly      = "anomaly"
	Launch       = "launch"
	Continue     = "continue_launch"
	Advice       = "advice_other"
	OutOfScope   = "out_of_scope"
)

// Names lists the intents in order.
func Names() []string {
	return []string{Brand, Social, Ads, Landing, Email, WeeklyReport, Anomaly, Launch, Continue, Advice, OutOfScope}
}

// Result is what a goal asks for, as far as the words tell.
type Result struct {
	Top       []Scored `json:"top"` // at most three, best first
	Abstained bool     `json:"abstained"`
	Why       []string `json:"why"` // the words that spoke loudest
	Source    string   `json:"source"`
}

// Scored is an intent with its probability.
type Scored struct {
	Name        string  `json:"name"`
	Probability float64 `json:"probability"`
}

// Thresholds below which no intent is taken for granted, and from which on a second one counts too.
const (
	minProbability = 0.35
	minMargin      = 0.08
	secondShare    = 0.6
)

// Of classifies a goal. hasRepo says that a repository context came with it, which speaks for a launch.
func Of(goal string, hasRepo bool) Result {
	m := model()
	features := m.features(goal, hasRepo)
	p := m.predict(features)
	order := slices.Clone(m.labels)
	index := map[string]int{}
	for i, label := range m.labels {
		index[label] = i
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(p[index[b]], p[index[a]]) })
	out := Result{Source: "phrases", Why: m.why(features, index[order[0]])}
	for _, label := range order[:3] {
		out.Top = append(out.Top, Scored{label, math.Round(p[index[label]]*1000) / 1000})
	}
	out.Abstained = p[index[order[0]]] < minProbability || p[index[order[0]]]-p[index[order[1]]] < minMargin
	return out
}

// Second is the second intent of a goal that asks for two things; "" when there is none.
func (r Result) Second() string {
	if len(r.Top) > 1 && r.Top[1].Probability >= secondShare*r.Top[0].Probability {
		return r.Top[1].Name
	}
	return ""
}

type classifier struct {
	labels  []string
	vocab   map[string]int
	idf     []float64
	weights [][]float64 // per label: one weight a feature, the last is the bias
}

type feature struct {
	id    int
	value float64
}

var model = sync.OnceValue(train)

type sample struct {
	label int
	names map[string]float64
}

// train fits the model by full-batch gradient descent with AdaGrad steps and L2 regularisation: no randomness, so that
// every process has the same model.
func train() *classifier {
	m := &classifier{labels: Names(), vocab: map[string]int{}}
	var samples []sample
	for i, label := range m.labels {
		for _, phrase := range phrases(label) {
			samples = append(samples, sample{i, rawFeatures(phrase, false)})
		}
	}
	documents := map[string]int{}
	for _, s := range samples {
		for _, name := range text.SortedKeys(s.names) {
			documents[name]++
		}
	}
	for _, name := range text.SortedKeys(documents) {
		if documents[name] < 2 && strings.HasPrefix(name, "c:") {
			continue // letters seen once only memorise
		}
		m.vocab[name] = len(m.vocab)
		m.idf = append(m.idf, math.Log(1+float64(len(samples))/float64(documents[name])))
	}
	vectors := make([][]feature, len(samples))
	for i, s := range samples {
		vectors[i] = m.vector(s.names)
	}
	m.fit(vectors, samples)
	return m
}

func phrases(label string) []string {
	raw, err := data.ReadFile("data/" + label + ".jsonl")
	if err != nil {
		panic(err) // embedded
	}
	var out []string
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	for scanner.Scan() {
		var line struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			panic(err) // embedded, checked by a test
		}
		out = append(out, line.Text)
	}
	return out
}

func (m *classifier) fit(vectors [][]feature, samples []sample) {
	const rounds, rate, decay = 120, 0.5, 2e-4
	size := len(m.vocab) + 1
	m.weights = make([][]float64, len(m.labels))
	squares := make([][]float64, len(m.labels))
	for k := range m.weights {
		m.weights[k], squares[k] = make([]float64, size), make([]float64, size)
	}
	gradient := make([][]float64, len(m.labels))
	for k := range gradient {
		gradient[k] = make([]float64, size)
	}
	for range rounds {
		for k := range gradient {
			clear(gradient[k])
		}
		for i, v := range vectors {
			p := m.predict(v)
			for k := range p {
				delta := p[k]
				if k == samples[i].label {
					delta--
				}
				for _, f := range v {
					gradient[k][f.id] += delta * f.value
				}
				gradient[k][size-1] += delta
			}
		}
		for k := range gradient {
			for j := range gradient[k] {
				g := gradient[k][j]/float64(len(vectors)) + decay*m.weights[k][j]
				squares[k][j] += g * g
				if squares[k][j] > 0 {
					m.weights[k][j] -= rate * g / (math.Sqrt(squares[k][j]) + 1e-8)
				}
			}
		}
	}
}

func (m *classifier) predict(v []feature) []float64 {
	scores := make([]float64, len(m.labels))
	top := math.Inf(-1)
	for k := range m.labels {
		s := m.weights[k][len(m.vocab)]
		for _, f := range v {
			s += m.weights[k][f.id] * f.value
		}
		scores[k] = s
		top = max(top, s)
	}
	sum := 0.0
	for k := range scores {
		scores[k] = math.Exp(scores[k] - top)
		sum += scores[k]
	}
	for k := range scores {
		scores[k] /= sum
	}
	return scores
}

func (m *classifier) features(goal string, hasRepo bool) []feature {
	return m.vector(rawFeatures(goal, hasRepo))
}

// vector weighs features by log frequency and rarity and scales the whole to length one.
func (m *classifier) vector(names map[string]float64) []feature {
	var out []feature
	length := 0.0
	for _, name := range text.SortedKeys(names) {
		id, known := m.vocab[name]
		if !known {
			continue
		}
		value := (1 + math.Log(names[name])) * m.idf[id]
		out = append(out, feature{id, value})
		length += value * value
	}
	for i := range out {
		out[i].value /= math.Sqrt(length)
	}
	return out
}

var (
	dropPattern = regexp.MustCompile(`(?i)\b(?:drop(?:ped)?|fell|fall(?:en)?|down|spik(?:e|ed)|crash(?:ed)?|collapsed?|decline[sd]?|lost|jumped|declin\w+)\b`)
	runPattern  = regexp.MustCompile(`\brun_[0-9A-Za-z]{6,}`)
)

// rawFeatures are stems, pairs of words, letters inside words, and a few signs such as a percentage or a run id.
func rawFeatures(s string, hasRepo bool) map[string]float64 {
	out := map[string]float64{}
	if len(s) > 4000 {
		s = s[:4000]
	}
	if len(text.Addresses(s)) > 0 {
		out["f:url"]++
	}
	if strings.Contains(s, "%") || strings.Contains(s, "percent") {
		out["f:percent"]++
	}
	if dropPattern.MatchString(s) {
		out["f:drop"]++
	}
	if runPattern.MatchString(s) {
		out["f:run"]++
	}
	if hasRepo {
		out["w:launch"]++
	}
	previous := "^"
	for _, token := range text.Tokens(s) {
		word := token.Stem
		if token.Number {
			word = "0"
		}
		out["w:"+word]++
		out["b:"+previous+" "+word]++
		previous = word
		padded := " " + token.Lower + " "
		for _, n := range []int{3, 4} {
			for i := 0; i+n <= len(padded); i++ {
				out["c:"+padded[i:i+n]]++
			}
		}
	}
	return out
}

// why names the words that spoke loudest for a label.
func (m *classifier) why(v []feature, label int) []string {
	names := make(map[int]string, len(v))
	for name, id := range m.vocab {
		names[id] = name
	}
	ordered := slices.Clone(v)
	slices.SortStableFunc(ordered, func(a, b feature) int {
		return cmp.Compare(m.weights[label][b.id]*b.value, m.weights[label][a.id]*a.value)
	})
	out := []string{}
	for _, f := range ordered {
		if name := names[f.id]; len(out) < 4 && m.weights[label][f.id] > 0 && (strings.HasPrefix(name, "w:") || strings.HasPrefix(name, "f:")) {
			out = append(out, name[2:])
		}
	}
	return out
}
