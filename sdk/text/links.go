package text

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxHostLength is the longest host name for which X makes a link.
const maxHostLength = 253

// maxURLLength is the longest address for which X makes a link.
const maxURLLength = 4096

// Links finds the web addresses that X turns into links, with or without a protocol. An e-mail address, a mention, a
// hashtag or a cashtag holds none.
func Links(s string) []Span {
	var out []Span
	for at := 0; at < len(s); {
		start, end := nextLink(s, at)
		if start < 0 {
			break
		}
		out = append(out, Span{Start: start, End: end, Text: s[start:end]})
		at = end
	}
	return out
}

var addressPattern = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"“”]+`)

// Addresses finds everything in s that is written as a web address: what Links finds, and any word that opens with a
// protocol, whether or not its top level domain exists. Punctuation at the end belongs to the sentence.
func Addresses(s string) []Span {
	var out []Span
	for _, at := range addressPattern.FindAllStringIndex(s, -1) {
		end := at[0] + len(strings.TrimRight(s[at[0]:at[1]], ".,;:!?)]}'’"))
		out = append(out, Span{Start: at[0], End: end, Text: s[at[0]:end]})
	}
	for _, link := range Links(s) {
		if !slices.ContainsFunc(out, func(other Span) bool { return link.Start < other.End && other.Start < link.End }) {
			out = append(out, link)
		}
	}
	slices.SortFunc(out, func(a, b Span) int { return a.Start - b.Start })
	return out
}

// nextLink looks for the first link at or after from by its first dot: the host is what stands around it.
func nextLink(s string, from int) (int, int) {
	for dot := from; dot < len(s); dot++ {
		if s[dot] != '.' {
			continue
		}
		runStart, runEnd := hostRun(s, from, dot)
		start, hostStart, protocol := withProtocol(s, from, runStart)
		if !mayStart(s, start, protocol) {
			dot = max(dot, runEnd-1)
			continue
		}
		hostStart, hostEnd, ok := hostWithin(s, hostStart, runEnd, protocol)
		if !ok {
			dot = max(dot, runEnd-1)
			continue
		}
		if !protocol {
			start = hostStart
		}
		end := pathEnd(s, hostEnd)
		if end < 0 || end-start > maxURLLength {
			dot = max(dot, max(end, hostEnd)-1)
			continue
		}
		return start, end
	}
	return -1, -1
}

func hostRun(s string, from, dot int) (int, int) {
	start := dot
	for start > from {
		r, size := utf8.DecodeLastRuneInString(s[from:start])
		if !isHostRune(r) {
			break
		}
		start -= size
	}
	end := dot
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !isHostRune(r) {
			break
		}
		end += size
	}
	return start, end
}

func isHostRune(r rune) bool {
	return r == '.' || r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.Is(unicode.So, r)
}

func withProtocol(s string, from, hostStart int) (start, host int, ok bool) {
	before := strings.ToLower(s[max(from, hostStart-len("https://")):hostStart])
	for _, protocol := range []string{"https://", "http://"} {
		if strings.HasSuffix(before, protocol) {
			return hostStart - len(protocol), hostStart, true
		}
	}
	return hostStart, hostStart, false
}

func mayStart(s string, start int, protocol bool) bool {
	if start == 0 {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(s[:start])
	if strings.ContainsRune("@＠$#＃", r) {
		return false
	}
	if protocol {
		return !(r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)))
	}
	return !strings.ContainsRune("-_./+:", r)
}

// hostWithin finds the host inside a run of host characters. Without a protocol the host is plain ASCII, so that a name
// written between letters of another script is still found; with one it may hold any letters.
func hostWithin(s string, start, end int, protocol bool) (int, int, bool) {
	if !protocol {
		return bareHost(s, start, end)
	}
	hostEnd, ok := validHost(s[start:end], true)
	return start, start + hostEnd, ok && !followedByAt(s, end)
}

// bareHost finds a host without a protocol in s[start:end]: Latin letters, then perhaps a top level domain of another script.
func bareHost(s string, start, end int) (int, int, bool) {
	for start < end {
		latinStart := runEnd(s, start, end, func(r rune) bool { return !isHostLatin(r) })
		latinEnd := runEnd(s, latinStart, end, isHostLatin)
		if hostEnd, ok := validHost(s[latinStart:latinEnd], false); ok && !followedByAt(s, latinEnd) {
			return latinStart, latinStart + hostEnd, true
		}
		if latinEnd > latinStart && s[latinEnd-1] == '.' && labelsAreValid(strings.Split(s[latinStart:latinEnd-1], ".")) {
			if cut := unicodeTopLevelPrefix(s[latinEnd:end]); cut > 0 {
				return latinStart, latinEnd + cut, true
			}
		}
		start = latinEnd
	}
	return 0, 0, false
}

func runEnd(s string, start, end int, in func(rune) bool) int {
	for start < end {
		r, size := utf8.DecodeRuneInString(s[start:])
		if !in(r) {
			break
		}
		start += size
	}
	return start
}

func isHostLatin(r rune) bool {
	return r == '.' || r == '-' || r == '_' || r != '/' && isPathLetter(r) && r < 0x250
}

// followedByAt tells whether what stands at the offset makes the run before it the local part of an e-mail address.
func followedByAt(s string, at int) bool {
	for at < len(s) && (isHostLatin(rune(s[at])) || s[at] == '+') && s[at] < 0x80 {
		at++
	}
	return at < len(s) && s[at] == '@'
}

// validHost returns the length of the longest prefix of run that is a host with a known top level domain.
func validHost(run string, protocol bool) (int, bool) {
	labels := strings.Split(run, ".")
	labels = labels[:min(len(labels), maxHostLength/2)]
	for n := len(labels); n >= 2; n-- {
		host := strings.Join(labels[:n], ".")
		tail := labels[n-1]
		if cut := knownTopLevel(tail); cut > 0 && (cut == len(tail) || (n == len(labels) || protocol) && tail[cut] != '-' && tail[cut] != '_') {
			host = host[:len(host)-len(tail)+cut]
			if len(host) <= maxHostLength && labelsAreValid(strings.Split(host, ".")) {
				return len(host), true
			}
		}
	}
	return 0, false
}

// knownTopLevel returns the length of the prefix of label that is a top level domain, or 0. ASCII domains end where
// another script or a hyphen begins.
func knownTopLevel(label string) int {
	ascii := 0
	for ascii < len(label) && label[ascii] < 0x80 && label[ascii] != '-' && label[ascii] != '_' {
		ascii++
	}
	candidate := label
	if ascii > 0 {
		candidate = label[:ascii]
	}
	lower := strings.ToLower(candidate)
	if len(lower) < 2 {
		return 0
	}
	if listedTopLevel(lower) && !strings.ContainsAny(lower, "0123456789") {
		return len(candidate)
	}
	if ascii == 0 && unicodeTopLevel(lower) {
		return len(candidate)
	}
	return 0
}

func labelsAreValid(labels []string) bool {
	for i, label := range labels {
		if label == "" || len(label) > 63 && i == len(labels)-1 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.HasPrefix(label, "_") || strings.HasSuffix(label, "_") {
			return false
		}
		if strings.Contains(label, "_") && i >= len(labels)-2 {
			return false
		}
		if len(label) > 4*63 || punycodeLength(label) > 63 || strings.HasPrefix(label, "xn--") && !isASCII(label) {
			return false
		}
	}
	return true
}
