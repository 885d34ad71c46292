// Package usage counts tool calls, credits and cost per workspace, and compares them
// with the budget of its plan.
package usage

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// allTools is the tool name under which a day's calls are counted together.
const allTools = "*"

// Meter counts. It is safe for concurrent use.
type Meter struct {
	db    *store.DB
	clock core.Clock
	batch store.Batch[[]store.Usage]
}

// New makes a Meter on a database.
func New(db *store.DB, clock core.Clock) *Meter { return &Meter{db: db, clock: clock} }

// Record counts one call of a tool and returns when that is durable. Calls that end at
// the same time share a transaction. A failed call costs no credits.
func (m *Meter) Record(ctx context.Context, ws store.WorkspaceID, tool string, credits float64, failed bool) error {
	return m.RecordCost(ctx, ws, tool, credits, 0, failed)
}

// RecordCost is Record with the money the call cost, in micros of Currency.
func (m *Meter) RecordCost(ctx context.Context, ws store.WorkspaceID, tool string, credits float64, micros int64, failed bool) error {
	month := store.Usage{WorkspaceID: ws, Tool: tool, Calls: 1, Credits: credits, CostMicros: micros}
	if failed {
		month.Errors, month.Credits = 1, 0
	}
	now := m.clock.Now().UTC()
	day := month
	month.Period, day.Period, day.Tool = now.Format("2006-01"), now.Format("2006-01-02"), allTools
	return m.batch.Do(ctx, []store.Usage{month, day}, m.write)
}

func (m *Meter) write(ctx context.Context, items [][]store.Usage) error {
	type key struct {
		ws           store.WorkspaceID
		period, tool string
	}
	sums := map[key]*store.Usage{}
	for _, u := range slices.Concat(items...) {
		k := key{u.WorkspaceID, u.Period, u.Tool}
		sum := sums[k]
		if sum == nil {
			sum = &store.Usage{WorkspaceID: k.ws, Period: k.period, Tool: k.tool}
			sums[k] = sum
		}
		sum.Calls += u.Calls
		sum.Errors += u.Errors
		sum.Credits += u.Credits
		sum.CostMicros += u.CostMicros
	}
	rows := make([]*store.Usage, 0, len(sums))
	for _, sum := range sums {
		rows = append(rows, sum)
	}
	slices.SortFunc(rows, func(a, b *store.Usage) int { // one order of locks on every host
		return strings.Compare(string(a.WorkspaceID)+a.Period+a.Tool, string(b.WorkspaceID)+b.Period+b.Tool)
	})
	return m.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, row := range rows {
			if err := tx.AddUsage(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// Usage reads the counts of the present calendar month with the guardrails of the plan.
func (m *Meter) Usage(ctx context.Context, ws store.WorkspaceID) (*core.Usage, error) {
	now := m.clock.Now().UTC()
	plan, err := m.plan(ctx, ws)
	if err != nil {
		return nil, err
	}
	rows, err := m.db.UsageOf(ctx, ws, now.Format("2006-01"))
	if err != nil {
		return nil, err
	}
	today, err := m.db.UsageOf(ctx, ws, now.Format("2006-01-02"))
	if err != nil {
		return nil, err
	}
	from := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	u := &core.Usage{ByTool: make([]core.ToolUsage, 0, len(rows)), Currency: Currency, Plan: plan.Name,
		Period: core.UsagePeriod{From: from, To: from.AddDate(0, 1, 0)}}
	for _, r := range rows {
		u.ByTool = append(u.ByTool, core.ToolUsage{Tool: r.Tool, Calls: int(r.Calls), Credits: round(r.Credits), Errors: int(r.Errors)})
		u.Calls += int(r.Calls)
		u.CostMicros += int(r.CostMicros)
		u.Credits.Used += r.Credits
	}
	u.Credits.Used = round(u.Credits.Used)
	u.Credits.Included = plan.Credits
	u.Credits.Remaining = round(max(plan.Credits-u.Credits.Used, 0))
	calls := 0.0
	for _, r := range today {
		calls += float64(r.Calls)
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	u.Guardrails = []core.Guardrail{
		guardrail("monthly_credits", plan, plan.Credits, u.Credits.Used, u.Period.To),
		guardrail("daily_calls", plan, float64(plan.CallsPerDay), calls, midnight),
	}
	return u, nil
}

func guardrail(name string, plan Plan, limit, used float64, resets time.Time) core.Guardrail {
	g := core.Guardrail{Name: name, Limit: limit, Used: used, ResetsAt: &resets, Action: core.UsageGuardrailsElemActionWarn}
	if plan.Blocks {
		g.Action = core.UsageGuardrailsElemActionBlock
	}
	return g
}

// Allow refuses a further call with budget_exceeded once a guardrail that blocks is
// used up. Calls that run already are not stopped, so a budget can be passed by them.
func (m *Meter) Allow(ctx context.Context, ws store.WorkspaceID) error {
	u, err := m.Usage(ctx, ws)
	if err != nil {
		return err
	}
	for _, g := range u.Guardrails {
		if g.Action == core.UsageGuardrailsElemActionBlock && g.Used >= g.Limit {
			e := core.Errf(core.KindRateLimited, "budget_exceeded", "The plan %s allows %.0f %s; they are used up until %s. Wait, or have an owner change the plan.",
				u.Plan, g.Limit, strings.ReplaceAll(g.Name, "_", " "), g.ResetsAt.Format(time.RFC3339))
			e.RetryAfter = g.ResetsAt.Sub(m.clock.Now())
			return e
		}
	}
	return nil
}

// plan is the plan of the workspace; one that is not known has none to name.
func (m *Meter) plan(ctx context.Context, ws store.WorkspaceID) (Plan, error) {
	w, err := m.db.Workspace(ctx, ws)
	if core.IsKind(err, core.KindNotFound) {
		return PlanOf(FreePlan), nil
	}
	if err != nil {
		return Plan{}, err
	}
	return PlanOf(w.Plan), nil
}

// round keeps sums of fractions from showing more digits than were counted.
func round(credits float64) float64 { return math.Round(credits*1000) / 1000 }
