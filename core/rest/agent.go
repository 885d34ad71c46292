package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

func (s *server) agentRoutes() []route {
	return []route{{"POST /api/agent/message", "sendMessage", s.sendMessage}}
}

// answer is what sendMessage replies.
type answer struct {
	Reply     string         `json:"reply"`
	RunID     string         `json:"runId"`
	ReviewURL string         `json:"reviewUrl"`
	Next      *core.NextCall `json:"next,omitempty"`
}

// sendMessage hands plain words to the operator whose description has most in common
// with them, or answers from the run named. Operators draft; none decides.
func (s *server) sendMessage(w http.ResponseWriter, r *http.Request) error {
	var in struct{ Message, RunID string }
	if err := decode(r, &in); err != nil {
		return err
	}
	p := requestOf(r).principal
	snapshot := s.Registry.Snapshot()
	operators := snapshot.Operators()
	if len(operators) == 0 {
		return core.Errf(core.KindUnavailable, "no_operator", "No operator is installed, so nobody can answer. GET /api/plugins shows what is.")
	}
	if in.RunID != "" {
		return s.replyRun(w, r, in.RunID)
	}
	op := fitting(operators, in.Message)
	entry, ok := snapshot.Lookup(op.PrimaryTool)
	if !ok {
		return core.Errf(core.KindUnavailable, "no_operator", "The operator %s has lost its tool %s.", op.Name, op.PrimaryTool)
	}
	args, err := json.Marshal(map[string]string{wordsField(entry): in.Message})
	if err != nil {
		return err
	}
	result, err := s.Dispatcher.Call(r.Context(), p, tool.Request{Tool: op.PrimaryTool, Args: args})
	if err != nil {
		return err
	}
	return s.replyMessage(w, r, result)
}

// replyRun answers a message about a run from what the run is now: a question about it
// must not change its goal, and only the pages and the decision calls decide.
func (s *server) replyRun(w http.ResponseWriter, r *http.Request, runID string) error {
	run, err := s.Runs.Get(r.Context(), requestOf(r).principal, runID)
	if err != nil {
		return err
	}
	waiting := run.Counts[string(core.ActionStatusPending)] + run.Counts[string(core.ActionStatusProposed)]
	said := []string{run.StatusReason, fmt.Sprintf("%d drafts, %d proposed actions, %d of them waiting for a decision.", len(run.AssetIds), len(run.ActionIds), waiting)}
	return reply(w, answer{Reply: strings.TrimSpace(strings.Join(said, " ")), RunID: run.ID, ReviewURL: run.ReviewURL, Next: run.Next})
}

func (s *server) replyMessage(w http.ResponseWriter, r *http.Request, result *tool.Result) error {
	out := answer{RunID: result.RunID, ReviewURL: result.ReviewURL}
	var said struct {
		UserMessage string `json:"userMessage"`
		AgentGuide  struct {
			UserMessage string `json:"userMessage"`
		} `json:"agentGuide"`
		NextToolCalls []core.NextCall `json:"nextToolCalls"`
	}
	_ = json.Unmarshal(result.Structured, &said) // an operator may say none of this
	switch {
	case said.UserMessage != "":
		out.Reply = said.UserMessage
	case said.AgentGuide.UserMessage != "":
		out.Reply = said.AgentGuide.UserMessage
	default:
		out.Reply = strings.Join(result.Lead, "\n")
	}
	if len(said.NextToolCalls) > 0 {
		out.Next = &said.NextToolCalls[0]
	}
	if out.RunID != "" {
		run, err := s.Runs.Get(r.Context(), requestOf(r).principal, out.RunID)
		if err != nil {
			return err
		}
		out.ReviewURL = run.ReviewURL
		if out.Reply == "" {
			out.Reply = run.StatusReason
		}
		if out.Next == nil {
			out.Next = run.Next
		}
	}
	return reply(w, out)
}

// fitting picks the operator that shares most words with the message; the first one
// when none shares any.
func fitting(operators []core.Operator, message string) core.Operator {
	said := words(message)
	best, most := operators[0], 0
	for _, op := range operators {
		n := 0
		for word := range words(op.Name + " " + op.Title + " " + op.Description) {
			if said[word] {
				n++
			}
		}
		if op.Status == core.OperatorStatusAvailable && n > most {
			best, most = op, n
		}
	}
	return best
}

// words are the longer words of a text; short ones say little about what it is about.
func words(text string) map[string]bool {
	const shortest = 4
	set := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c < 0x80 }) {
		if len(word) >= shortest {
			set[strings.TrimSuffix(word, "s")] = true
		}
	}
	return set
}

// wordsField is the field of a tool's input that takes plain words.
func wordsField(e *tool.Entry) string {
	fields, _ := e.Doc.InputSchema["properties"].(map[string]any)
	for _, name := range []string{"goal", "message", "question", "request"} {
		if _, ok := fields[name]; ok {
			return name
		}
	}
	return "goal"
}
