package effect

import "testing"

// A header that stands twice is sent once: what was approved must be what is sent.
func TestNoHeaderStandsTwice(t *testing.T) {
	ep := []Endpoint{{ID: "hook", Class: "write", Transport: "http", Host: "a.example.com", Method: "POST", Path: "/x", Headers: []string{"X-Ref"}}}
	for name, c := range map[string]struct {
		h  HTTPStep
		ok bool
	}{
		"once":                 {HTTPStep{Headers: []Pair{{"X-Ref", "a"}, {"Content-Type", "text/plain"}}, IdempotencyHeader: "Idempotency-Key"}, true},
		"twice":                {HTTPStep{Headers: []Pair{{"X-Ref", "a"}, {"x-ref", "b"}}}, false},
		"also for idempotency": {HTTPStep{Headers: []Pair{{"X-Ref", "a"}}, IdempotencyHeader: "X-REF"}, false},
	} {
		s := Sealed{Kind: "x.post", Target: Target{Label: "x"}, Steps: []Step{{Endpoint: "hook", HTTP: &c.h}}}
		if _, err := Resolve(s, ep, Connection{}); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
