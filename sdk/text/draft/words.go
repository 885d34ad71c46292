package draft

import "fmt"

// Plural is a number with its noun: “1 commit”, “2 commits”.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AreWaiting is “1 action is” or “2 actions are”.
func AreWaiting(n int) string {
	if n == 1 {
		return "1 action is"
	}
	return fmt.Sprintf("%d actions are", n)
}

// Clip cuts s to at most limit characters.
func Clip(s string, limit int) string {
	runes := []rune(s)
	return string(runes[:min(len(runes), limit)])
}
