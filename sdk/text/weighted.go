package text

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"golang.org/x/text/unicode/norm"
)

// XLimit is the weighted length of a post that every account of X may publish.
const XLimit = 280

const shortenedURLWeight = 23

// XWeight is the length of a post as X counts it: characters of the common alphabets weigh one, all others two, an
// emoji two however many code points it has, and a link 23 whatever its length.
func XWeight(s string) int { return weigh(s, true) }

// weigh counts emoji whole, or by code point as X did before its third set of rules.
func weigh(s string, wholeEmoji bool) int {
	s = norm.NFC.String(s)
	total, offset := 0, 0
	for _, link := range Links(s) {
		total += weightWithoutLinks(s[offset:link.Start], wholeEmoji) + shortenedURLWeight
		offset = link.End
	}
	return total + weightWithoutLinks(s[offset:], wholeEmoji)
}

// XValid tells whether X takes the post: not empty, not longer than XLimit, none of the characters it refuses.
func XValid(s string) bool {
	if strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\ufffe\ufeff\uffff") {
		return false
	}
	return XWeight(s) <= XLimit
}

func weightWithoutLinks(s string, wholeEmoji bool) int {
	total := 0
	iter := graphemes.FromString(s)
	for iter.Next() {
		cluster := iter.Value()
		if wholeEmoji && isEmoji(cluster) {
			total += 2
			continue
		}
		for _, r := range cluster {
			total += runeWeight(r)
		}
	}
	return total
}

func runeWeight(r rune) int {
	switch {
	case r <= 4351, r >= 8192 && r <= 8205, r >= 8208 && r <= 8223, r >= 8242 && r <= 8247:
		return 1
	}
	return 2
}

// isEmoji tells whether a grapheme cluster is shown as one emoji. A lone regional indicator or skin tone is one too.
func isEmoji(cluster string) bool {
	first, size := utf8.DecodeRuneInString(cluster)
	rest := cluster[size:]
	switch {
	case first >= 0x1f000 && first <= 0x1faff:
		return true
	case first == '#' || first == '*' || first >= '0' && first <= '9':
		return strings.ContainsRune(rest, 0x20e3)
	case first == 0xa9 || first == 0xae:
		return strings.ContainsRune(rest, 0xfe0f)
	case first >= 0x2190 && first <= 0x2bff, first == 0x203c, first == 0x2049, first == 0x2122, first == 0x2139, first == 0x3030, first == 0x303d, first == 0x3297, first == 0x3299:
		return !strings.ContainsRune(rest, 0xfe0e)
	}
	return false
}
