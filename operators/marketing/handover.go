package marketing

import (
	"context"
	"fmt"
	"regexp"

	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// gatherFromMemory works from the brand that the workspace remembers, when the call brings nothing to read.
func (k *campaign) gatherFromMemory(ctx context.Context) error {
	var err error
	if k.desk, err = brand.Prepare(ctx, k.c, brand.Order{RepoContext: k.raw}); err != nil {
		return err
	}
	if len(k.desk.Facts) == 0 {
		k.desk = nil
		return draft.NothingToSay("this goal")
	}
	k.link, _ = brand.Destination(k.desk.Record, k.desk.Repo, "")
	k.env.Evidence = draft.AllToSDK(k.desk.Items)
	k.env.BrandDNARef = k.desk.Ref()
	if k.connections, err = k.c.Host.Connections(ctx); err != nil {
		k.env.Warn("What is connected could not be read: %v", err)
	}
	return nil
}

// operatorWords lead from the words of a goal to the operator that answers it.
var operatorWords = []struct {
	operator, tool string
	pattern        *regexp.Regexp
}{
	{"finance", "finance_diagnose", regexp.MustCompile(`(?i)\b(?:cash|runway|burn|invoices?|overdue|reconcil\w+|budget|variance|expenses?|payroll|books|bank|vat|tax|spend)\b`)},
	{"support", "support_diagnose", regexp.MustCompile(`(?i)\b(?:tickets?|support|inbox|sla|complaints?|escalat\w+|customer (?:is )?(?:angry|unhappy))\b`)},
	{"sales", "sales_diagnose", regexp.MustCompile(`(?i)\b(?:deals?|pipeline|quota|prospects?|crm|leads?|sales|close this)\b`)},
	{"operations", "ops_diagnose", regexp.MustCompile(`(?i)\b(?:incident|sprint|capacity|vendors?|delivery|backlog|deploy|outage|project plan)\b`)},
}

// handOver names the operator that fits a goal outside marketing. Nothing is drafted for it.
func (d *diagnosis) handOver() diagnoseAnswer {
	d.k = d.bare()
	operator, tool := "another operator", toolOperators
	for _, o := range operatorWords {
		if o.pattern.MatchString(d.in.Goal) {
			operator, tool = "the "+o.operator+" operator", o.tool
			break
		}
	}
	message := fmt.Sprintf("This goal is not about marketing. It belongs to %s (%s), if it is installed. Nothing was drafted or published.", operator, tool)
	d.more = nil
	return d.bareAnswer(message, []nextCall{{toolOperators, map[string]any{}, "See which operators are installed; " + tool + " would be the one to call.", "now", true}})
}

var runPattern = regexp.MustCompile(`\brun_[0-9A-Za-z]{20,40}\b`)

// resume points a goal about a running launch to the tool that continues it.
func (d *diagnosis) resume() diagnoseAnswer {
	d.k = d.bare()
	if id := runPattern.FindString(d.in.Goal); id != "" {
		return d.bareAnswer("This is about a launch that is under way. Its one next step is the answer of "+toolContinue+".",
			[]nextCall{{toolContinue, map[string]any{"runId": id}, "It names the one next step.", "now", true}})
	}
	return d.bareAnswer("This is about a launch that is under way. Which one? "+toolHealth+" lists them.",
		[]nextCall{{toolHealth, map[string]any{}, "It lists what is open.", "now", true}})
}

func (d *diagnosis) bare() *campaign {
	k := &campaign{c: d.c, actions: []actionView{}, blocked: []blockedChannel{}, skills: []skillRun{}}
	k.env = draft.NewEnvelope(d.c, version, draft.Deterministic, map[string]any{"goal": d.in.Goal})
	d.plan = []need{}
	return k
}

func (d *diagnosis) bareAnswer(message string, next []nextCall) diagnoseAnswer {
	d.k.env.Finish(d.c, "nothing")
	d.k.env.AgentGuide = draft.Guide(d.c, message)
	d.k.env.AgentGuide.MustWait = false
	return diagnoseAnswer{
		Envelope: d.k.env, Intent: d.what, EvidencePlan: d.plan, SkillsRun: d.k.skills, Actions: d.k.actions,
		Risk:      riskView{Factual: "low", Policy: "low", Spend: "none", Privacy: "low", Reversible: true, Overall: "low"},
		Questions: []draft.Gap{}, ReviewURL: d.c.ReviewURL, UserMessage: message, NextToolCalls: next,
		AgentProofLine: "Nothing was drafted; nothing published.",
	}
}
