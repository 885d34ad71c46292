package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// unicodeTopLevel tells whether a top level domain in another script is listed.
func unicodeTopLevel(label string) bool {
	encoded, err := idna.ToASCII(label)
	return err == nil && strings.HasPrefix(encoded, "xn--") && listedTopLevel(encoded)
}

// punycodeLength is the length of a host label on the wire.
func punycodeLength(label string) int {
	encoded, err := idna.Punycode.ToASCII(label)
	if err != nil {
		return len(label)
	}
	return len(encoded)
}

// pathEnd returns where the address whose host ends at hostEnd ends: after port, path and query, without the
// punctuation that closes the sentence around it.
func pathEnd(s string, hostEnd int) int {
	end := hostEnd
	if end < len(s) && s[end] == ':' {
		digits := end + 1
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		if digits > end+1 {
			end = digits
		}
	}
	if short := shortLinkEnd(s, hostEnd); short != 0 {
		return short
	}
	if end < len(s) && s[end] == '/' {
		end = scanPath(s, end)
	}
	if end < len(s) && s[end] == '?' {
		end = scanQuery(s, end)
	}
	return end
}

const pathPunctuation = "!*';:=+,.$/%#-_~|&[]@‐‑‒–—―"

func scanPath(s string, start int) int {
	end := start + 1
	depth := 0
	good := end
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		switch {
		case r == '(' && strings.IndexByte(s[end:], ')') > 0:
			depth++
		case r == ')' && depth > 0:
			depth--
			good = end + size
		case isPathLetter(r):
			good = end + size
		case strings.ContainsRune("=_#/+-", r):
			good = end + size
		case !strings.ContainsRune(pathPunctuation, r):
			return good
		}
		end += size
	}
	return good
}

func isPathLetter(r rune) bool {
	if r < 0x80 {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.In(r, unicode.Cyrillic) || r >= 0xc0 && r <= 0x24f && r != 0xd7 && r != 0xf7
}

func scanQuery(s string, start int) int {
	end := start + 1
	good := start
	for end < len(s) {
		c := s[end]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !strings.ContainsRune("!?*'();:&=+$/%#[]-_.,~|@", rune(c)) {
			break
		}
		end++
		if letter || strings.IndexByte("_&=#/-", c) >= 0 {
			good = end
		}
	}
	if good == start {
		return start
	}
	return good
}

// listedTopLevel tells whether a name in ASCII is a top level domain of the public list.
func listedTopLevel(name string) bool {
	suffix, managed := publicsuffix.PublicSuffix("x." + name)
	return managed && suffix == name
}

// shortLinkEnd returns the end of a t.co address, whose path is at most 40 letters and
// digits: 0 for another host, -1 when the path is longer and the whole is no link.
func shortLinkEnd(s string, hostEnd int) int {
	if hostEnd < 4 || !strings.EqualFold(s[hostEnd-4:hostEnd], "t.co") || hostEnd > 4 && s[hostEnd-5] != '/' && s[hostEnd-5] != ' ' {
		return 0
	}
	if hostEnd >= len(s) || s[hostEnd] != '/' {
		return 0
	}
	end := hostEnd + 1
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z') {
		end++
	}
	if end-hostEnd-1 > 40 {
		return -1
	}
	if end < len(s) && s[end] == '?' {
		end = scanQuery(s, end)
	}
	return end
}

// unicodeTopLevelPrefix returns the length of the longest prefix of s that is a top level domain in its own script.
func unicodeTopLevelPrefix(s string) int {
	ends := []int{}
	for i, r := range s {
		if i > 0 {
			ends = append(ends, i)
		}
		if r < 0x250 || len(ends) > 20 {
			break
		}
	}
	ends = append(ends, len(s))
	for i := len(ends) - 1; i >= 0; i-- {
		if unicodeTopLevel(s[:ends[i]]) {
			return ends[i]
		}
	}
	return 0
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
