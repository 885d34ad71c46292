package sim

import (
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// StatesDoc draws the transition table as a page for docs/states.md.
func StatesDoc() string {
	var b strings.Builder
	b.WriteString("# States of an action and of a run\n\n")
	b.WriteString("Generated from `core.ActionTransitions` by `go run ./core/sim/statesdoc`. Do not edit; a test fails when this page is stale.\n\n")
	b.WriteString("## Action\n\nA pair of state and event that is not in the table is refused. `claimed` means certainly not sent, `sending` means\nperhaps sent, and `unknown` never goes back to `approved`.\n\n")
	b.WriteString("```mermaid\nstateDiagram-v2\n  [*] --> proposed: propose\n")
	for _, t := range core.ActionTransitions() {
		fmt.Fprintf(&b, "  %s --> %s: %s\n", t.From, t.To, t.Event)
	}
	for _, s := range core.ActionStatuses() {
		if s.IsFinal() {
			fmt.Fprintf(&b, "  %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\n| From | Event | To | Who | What must hold |\n|---|---|---|---|---|\n| — | propose | proposed | system | the write tool compiled it; its endpoints are in the manifest |\n")
	for _, t := range core.ActionTransitions() {
		guard := t.Guard
		if guard == "" {
			guard = "—"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", t.From, t.Event, t.To, t.Who, guard)
	}
	b.WriteString("\nFinal (but for being superseded): ")
	final := []string{}
	for _, s := range core.ActionStatuses() {
		if s.IsFinal() {
			final = append(final, "`"+string(s)+"`")
		}
	}
	b.WriteString(strings.Join(final, ", ") + ".\n\n")
	b.WriteString(runDoc)
	n, bad := Explorer{}.Explore()
	if bad != nil {
		panic("sim: " + bad.String())
	}
	fmt.Fprintf(&b, "## Why this table\n\n`core/sim` walks every order of events of one action with two revisions, two hosts that may stall or die at any step,\nfour claims, leases that end, edits, revokes and people who settle unknown outcomes: %d states, in none of which\nanything is sent twice, unseen, or after a no. Taking any one guard away makes it find such a state.\n", n)
	return b.String()
}

const runDoc = "## Run\n\nA run is `created`, `gathering` and `drafting` while it is worked on. From then on its status is computed from its actions\n" +
	"and the measurement window alone (`core.RunStatusOf`), first match:\n\n" +
	"| Actions | Status |\n|---|---|\n" +
	"| none | completed |\n| one is unknown | needs_attention |\n| one is claimed or sending | executing |\n" +
	"| some wait, some are approved or done | partially_approved |\n| some wait | awaiting_approval |\n| some are approved | approved |\n" +
	"| some failed | needs_attention |\n| some succeeded, less than 24 hours ago | measuring |\n| some succeeded | completed |\n" +
	"| expired, not fewer than rejected or revoked | expired |\n| rejected or revoked | rejected |\n| all cancelled | cancelled |\n\n"
