package usage

// Plan is what a workspace may use in a calendar month.
type Plan struct {
	Name        string
	Title       string
	PriceMicros int64 // per month, in millionths of the currency unit
	Credits     float64
	CallsPerDay int64
	// Blocks says that a spent budget stops further calls. In the free mode, which runs
	// on one's own machine with one's own model key, it only warns.
	Blocks bool
}

// Currency of prices and costs, ISO 4217.
const Currency = "USD"

// FreePlan is the plan of a workspace that names none, or one that is not known.
const FreePlan = "free"

// Plans lists the plans, cheapest first.
func Plans() []Plan {
	return []Plan{
		{Name: FreePlan, Title: "Free, with your own model key", Credits: 1_000, CallsPerDay: 5_000},
		{Name: "individual", Title: "Individual", PriceMicros: 19_000_000, Credits: 2_000, CallsPerDay: 5_000, Blocks: true},
		{Name: "operator", Title: "Operator", PriceMicros: 99_000_000, Credits: 12_000, CallsPerDay: 20_000, Blocks: true},
		{Name: "business", Title: "Business", PriceMicros: 299_000_000, Credits: 40_000, CallsPerDay: 50_000, Blocks: true},
		{Name: "agency", Title: "Agency", PriceMicros: 999_000_000, Credits: 150_000, CallsPerDay: 150_000, Blocks: true},
	}
}

// PlanOf is the plan with a name.
func PlanOf(name string) Plan {
	plans := Plans()
	for _, p := range plans {
		if p.Name == name {
			return p
		}
	}
	return plans[0]
}
