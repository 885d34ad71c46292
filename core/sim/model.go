// Package sim explores the life of an action exhaustively: every order in which people,
// two hosts, a sweeper and crashes can act on the real transition table.
package sim

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/core"
)

// Bounds of the model. Within them every state is visited.
const (
	hosts     = 2
	revisions = 2
	maxClaims = 4
)

// where a host is with the action.
type stage int8

const (
	idle    stage = iota
	holding       // claimed it; connecting
	free          // passed the sending mark: nothing but its own will keeps it from writing
	wrote         // the provider has the bytes; the reply is not recorded
)

// host is one executor. It remembers what it was handed, as a stalled process does.
type host struct {
	stage    stage
	revision int8
	claim    int8
}

// state is everything that matters, small enough to be a map key.
type state struct {
	status   core.ActionStatus
	revision int8
	seen     int8 // revision the approver looked at; 0 none
	approved int8 // revision the approval in force is for; 0 none
	agreed   int8 // bit per revision a person ever approved after looking
	claims   int8
	once     bool // claimed once: content is frozen
	lease    bool // alive
	hosts    [hosts]host
	ledger   [revisions + 1]int8 // what the provider got, per revision
}

// Rules are the guards that stand beside the table. The zero value is what the service
// does; each field takes one guard away, to show that the explorer would notice.
type Rules struct {
	ApproveUnseen   bool // a yes counts for the content of now, whatever was looked at
	ClaimUnguarded  bool // a claim does not look whether another host was faster
	MarkUnchecked   bool // a host looks at the action only when it claims, not when it begins to send
	EditAfterClaim  bool // content may change after a claim
	RearmUnknown    bool // an unknown outcome is approved again
	RearmSending    bool // the sweep takes sending for not sent
	RevokeSending   bool // a yes can be taken back while it is sent
	ReplaceTooEarly bool // an outcome is settled or replaced while the sender may live
}

// step is one thing that happens.
type step struct {
	name string
	next state
}

// Explorer walks all states breadth-first.
type Explorer struct {
	Rules Rules
	// Next is the transition table; core.NextActionStatus when nil.
	Next func(core.ActionStatus, core.ActionEvent) (core.ActionStatus, error)
}

// Finding is how to get to a state that must not be, shortest way first.
type Finding struct {
	Problem string
	Trace   []string
}

func (f Finding) String() string { return fmt.Sprintf("%s after %v", f.Problem, f.Trace) }

// Explore visits every state that can be reached. It returns how many there are and
// the first violation, if any.
func (x Explorer) Explore() (states int, bad *Finding) {
	if x.Next == nil {
		x.Next = core.NextActionStatus
	}
	type origin struct {
		from state
		name string
	}
	first := state{status: core.ActionStatusProposed, revision: 1}
	came := map[state]origin{first: {}}
	trace := func(s state, last string) []string {
		steps := []string{last}
		for s != first {
			o := came[s]
			steps = append([]string{o.name}, steps...)
			s = o.from
		}
		return steps
	}
	for frontier := []state{first}; len(frontier) > 0; {
		var following []state
		for _, s := range frontier {
			for _, t := range x.steps(s) {
				if problem := violated(s, t); problem != "" {
					return len(came), &Finding{problem, trace(s, t.name)}
				}
				if _, known := came[t.next]; !known {
					came[t.next] = origin{s, t.name}
					following = append(following, t.next)
				}
			}
		}
		frontier = following
	}
	return len(came), nil
}

// violated says what a step breaks.
func violated(s state, t step) string {
	sent := 0
	for r := 1; r <= revisions; r++ {
		n := t.next.ledger[r]
		sent += int(n)
		if n > s.ledger[r] {
			if t.next.agreed&(1<<r) == 0 {
				return "content was sent that nobody approved after looking at it"
			}
			if int(s.approved) != r {
				return "content was sent whose approval was void"
			}
			if s.status != core.ActionStatusSending && s.status != core.ActionStatusUnknown {
				return "it was sent while it was " + string(s.status)
			}
		}
	}
	if sent > 1 {
		return "it was sent twice"
	}
	return ""
}
