package advariants

import (
	"fmt"
	"math"
)

// baseline is what is known of today's ads.
type baseline struct {
	CVR           float64  `json:"cvr"`
	CTR           *float64 `json:"ctr"`
	CPC           *float64 `json:"cpc"`
	DailyClicks   *float64 `json:"dailyClicks"`
	DailyVisitors *float64 `json:"dailyVisitors"`
	Currency      string   `json:"currency"`
}

// testPlan says what a verdict between the variants costs, or that it cannot be had.
type testPlan struct {
	Arms        int        `json:"arms"`
	Alpha       float64    `json:"alpha"`
	Power       float64    `json:"power"`
	MDE         float64    `json:"mde"`
	PerArm      int        `json:"perArm"`
	Total       int        `json:"total"`
	Days        *int       `json:"days"` // null when the traffic is not known
	Cost        *float64   `json:"cost"` // null when the price of a click is not known
	Currency    string     `json:"currency,omitempty"`
	Testable    bool       `json:"testable"`
	WaysOut     []string   `json:"waysOut"`
	Assumptions []scenario `json:"assumptions"`
	Rules       []string   `json:"rules"`
	Formula     string     `json:"formula"`
}

// scenario is the sample size for an assumed baseline, when none was given.
type scenario struct {
	CVR    float64 `json:"cvr"`
	PerArm int     `json:"perArm"`
}

// maxTestDays is how long a test may run before the season has changed.
const maxTestDays = 56

// plan computes the test of arms variants against each other.
func plan(in input, arms int) testPlan {
	out := testPlan{
		Arms: arms, Alpha: in.Alpha, Power: in.Power, MDE: in.MDE, Testable: true, WaysOut: []string{}, Assumptions: []scenario{},
		Formula: "n = (z(1−α/2)·√(2p̄(1−p̄)) + z(power)·√(p₁(1−p₁) + p₂(1−p₂)))² / (p₁−p₂)²",
		Rules: []string{
			"Decide the end before the start; do not stop early because one variant looks better.",
			"Check that the arms got equal traffic (χ² test; below p = 0.001 the split is broken and the test is void).",
			"Watch the cost of a result and the rate of refunds beside the rate that is tested.",
		},
	}
	if arms > 2 {
		out.Rules = append(out.Rules, "With more than two arms, judge by Holm's correction; the sample size already divides α by the comparisons.")
	}
	alpha := in.Alpha / float64(max(1, arms-1))
	if in.Baseline == nil {
		for _, rate := range []float64{0.01, 0.03, 0.05} {
			out.Assumptions = append(out.Assumptions, scenario{rate, perArm(rate, rate*(1+in.MDE), alpha, in.Power)})
		}
		out.Testable = false
		out.WaysOut = []string{"Give baseline.cvr and the daily clicks; the table shows three assumed rates meanwhile."}
		return out
	}
	b := *in.Baseline
	out.PerArm = perArm(b.CVR, min(0.999, b.CVR*(1+in.MDE)), alpha, in.Power)
	out.Total = out.PerArm * arms
	out.Currency = b.Currency
	if b.CPC != nil {
		cost := math.Round(float64(out.Total)**b.CPC*100) / 100
		out.Cost = &cost
	}
	traffic := b.DailyClicks
	if traffic == nil {
		traffic = b.DailyVisitors
	}
	if traffic == nil || *traffic <= 0 {
		out.WaysOut = append(out.WaysOut, "Give baseline.dailyClicks to learn how many days the test takes.")
		return out
	}
	weeks := math.Ceil(float64(out.Total) / *traffic / 7)
	days := int(max(1, weeks)) * 7
	out.Days = &days
	if days > maxTestDays {
		out.Testable = false
		out.WaysOut = append(out.WaysOut,
			fmt.Sprintf("Look for a bigger effect: %.0f %% instead of %.0f %% needs about a quarter of the clicks.", 200*in.MDE, 100*in.MDE),
			"Test a step before the sale, such as the click rate, which happens more often.", "Test two variants instead of "+fmt.Sprint(arms)+".")
	}
	return out
}

// perArm is the number of visitors that each arm needs to tell two rates apart.
func perArm(p1, p2, alpha, power float64) int {
	mean := (p1 + p2) / 2
	a := quantile(1-alpha/2) * math.Sqrt(2*mean*(1-mean))
	b := quantile(power) * math.Sqrt(p1*(1-p1)+p2*(1-p2))
	return int(math.Ceil((a + b) * (a + b) / ((p1 - p2) * (p1 - p2))))
}

// quantile is the inverse of the standard normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
