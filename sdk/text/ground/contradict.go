package ground

// antonyms are word pairs of which one denies the other.
var antonyms = [][2]string{
	{"online", "offline"}, {"free", "paid"}, {"public", "private"}, {"add", "remove"}, {"enable", "disable"}, {"include", "exclude"},
	{"increase", "decrease"}, {"faster", "slower"}, {"open", "closed"}, {"supported", "unsupported"}, {"manual", "automatic"}, {"manually", "automatically"},
	{"required", "optional"}, {"encrypted", "unencrypted"}, {"hosted", "self-hosted"}, {"more", "fewer"}, {"always", "never"}, {"before", "after"}, {"local", "remote"},
}

// opposes tells whether the item's nearest sentence denies s: one is negated and the other not, or an antonym stands in its place.
func (item *indexedItem) opposes(s string) (string, bool) {
	claim := indexSentence(s)
	best, shared := -1, 0
	for i, sentence := range item.sentences {
		n := 0
		for stem := range claim.stems {
			if sentence.stems[stem] {
				n++
			}
		}
		if n > shared {
			best, shared = i, n
		}
	}
	if best < 0 {
		return "", false
	}
	sentence := item.sentences[best]
	if float64(shared) < 0.6*float64(len(claim.stems)) {
		return "", false
	}
	if sentence.negated != claim.negated {
		return sentence.text, true
	}
	for _, pair := range antonyms {
		for _, side := range [][2]string{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			if claim.lowers[side[0]] && sentence.lowers[side[1]] && !sentence.lowers[side[0]] && !claim.lowers[side[1]] {
				return sentence.text, true
			}
		}
	}
	return "", false
}
