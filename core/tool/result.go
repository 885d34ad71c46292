package tool

import (
	"cmp"
	"encoding/json"
	"slices"
)

// hold is what every answer that waits for a person says last.
const hold = "Wait for the human. Do not post, send, submit or spend."

// resultOf adds to an answer what people and models should read before its JSON.
func resultOf(raw json.RawMessage, s *Scope) *Result {
	out := &Result{Structured: raw, RunID: s.RunID, ReviewURL: s.ReviewURL}
	var said struct {
		AgentProofLine, UserMessage, ReviewURL, RunID string
		AgentGuide                                    struct{ UserMessage string }
	}
	if json.Unmarshal(raw, &said) != nil { // one of these names means something else here
		return out
	}
	out.RunID, out.ReviewURL = cmp.Or(said.RunID, out.RunID), cmp.Or(said.ReviewURL, out.ReviewURL)
	for _, text := range []string{said.AgentProofLine, cmp.Or(said.UserMessage, said.AgentGuide.UserMessage), said.ReviewURL} {
		if text != "" && !slices.Contains(out.Lead, text) {
			out.Lead = append(out.Lead, text)
		}
	}
	if said.ReviewURL != "" {
		out.Lead = append(out.Lead, hold)
	}
	return out
}
