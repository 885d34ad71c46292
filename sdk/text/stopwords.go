package text

import "strings"

// stopWords are the function words of English: articles, pronouns, prepositions, conjunctions, auxiliaries and the
// adverbs of degree and time that fit any sentence.
var stopWords = wordSet(`a about above across after afterwards again against all almost alone along already also although always am among an and another any anybody anyone
anything anywhere are aren't around as at away be became because become becomes been before behind being below beside besides between beyond both but by can can't cannot
could couldn't did didn't do does doesn't doing don't done down during each either else enough etc even ever every everybody everyone everything everywhere except few for from
further get gets getting got had hadn't has hasn't have haven't having he he'd he'll he's hence her here here's hers herself him himself his how however i i'd i'll i'm i've if in
indeed instead into is isn't it it'd it'll it's its itself just least less let let's like many may maybe me might mine more moreover most mostly much must my myself
namely neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once one one's only onto or other others otherwise our ours ourselves out
over own per perhaps please quite rather really same shall she she'd she'll she's should shouldn't since so some somebody someone something sometimes somewhere still such than
that that's the their theirs them themselves then there there's thereby therefore these they they'd they'll they're they've this those though through throughout thus to
together too toward towards under unless until up upon us very via want wants was wasn't we we'd we'll we're we've well were weren't what what's whatever when whenever where
whereas wherever whether which while who who's whoever whole whom whose why will with within without won't would wouldn't yet you you'd you'll you're you've your yours
yourself yourselves`)

func wordSet(list string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}
