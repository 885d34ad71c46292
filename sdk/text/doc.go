// Package text holds the language work that skills and operators share: words and sentences, stems, background word
// frequencies, sanitising of untrusted text, length counters of publishing channels, keyphrases and similarity.
//
// Everything here is pure: no clock, no network, no randomness. The same input gives the same output on every machine,
// because drafts are compared by digest. English is the language of the stemmer, the background table and the word
// lists; text in other languages is segmented and counted correctly, but its stems are its lower-cased words.
package text
