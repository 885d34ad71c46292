package ground

import (
	_ "embed"
	"strings"
	"sync"
)

// swapFile holds what two invented brands of different trades say of themselves, written for this test.
//
//go:embed swap_brands.txt
var swapFile string

// swapBrands are the indexes of the invented brands.
var swapBrands = sync.OnceValue(func() []*Index {
	var out []*Index
	for _, section := range strings.Split(swapFile, "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		var items []Evidence
		for _, line := range strings.Split(body, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				items = append(items, Evidence{Kind: PageText, Quote: line, Trust: Observed})
			}
		}
		out = append(out, NewIndex(strings.TrimSpace(name), items, ""))
	}
	return out
})

// swapTest scores the copy against other brands. Copy that fits them about as well says nothing that is the brand's own.
func swapTest(copy string, own float64) SwapTest {
	nearest := 1.0
	for _, other := range swapBrands() {
		nearest = min(nearest, other.CopyRisk(copy))
	}
	difference := nearest - own
	if difference >= swapMargin {
		return SwapTest{Difference: round4(difference), Reason: "fits this evidence clearly better than that of other brands"}
	}
	return SwapTest{Difference: round4(difference), CouldBeAnyones: true, Reason: "could be any competitor's: it fits the evidence of unrelated brands about as well"}
}
