package socialposts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// check judges the caller's own posts. Their text is kept as it is; what blocks one is named beside it.
func (w *work) check(ctx context.Context, c *sdk.Call, out *output) error {
	var bodies []string
	for _, given := range w.in.Drafts.Posts {
		bodies = append(bodies, given.Body)
	}
	for _, given := range w.in.Drafts.Posts {
		p := platforms[given.Platform]
		drafted := post{
			Platform: given.Platform, Angle: "caller", Body: given.Body, Hashtags: given.Hashtags, EvidenceIDs: []string{},
			Hook: draft.FirstSentence(text.OneLine(given.Body, 400)),
		}
		if drafted.Hashtags == nil {
			drafted.Hashtags = []string{}
		}
		if len(given.MediaBrief) > 0 {
			drafted.MediaBrief = &mediaBrief{Kind: "caller", WhatToShow: text.OneLine(string(given.MediaBrief), 400), AltText: "", Source: "caller"}
			var named mediaBrief
			if json.Unmarshal(given.MediaBrief, &named) == nil && named.WhatToShow != "" {
				drafted.MediaBrief = &named
			}
		}
		checked := w.judge(p, drafted, bodies)
		if err := w.store(ctx, c, out, drafted, checked, "caller"); err != nil {
			return err
		}
	}
	out.Requested = len(w.in.Drafts.Posts)
	return nil
}

// defaultWindows are times at which readers of a platform are usually there. They are a default and called one.
var defaultWindows = map[string]string{"x": "09:00–11:00", "linkedin": "08:00–10:00", "instagram": "18:00–20:00"}

var defaultDays = []string{"Tuesday", "Wednesday", "Thursday"}

func defaultCadence(perPlatform int) cadence {
	n := min(3, max(1, perPlatform))
	return cadence{PerWeek: n, Days: defaultDays[:n], Basis: "default"}
}

// schedule spreads the posts of a platform over the default days, from the start of the campaign when it is given.
func schedule(posts []post, in input) {
	start, err := time.Parse(time.DateOnly, in.CampaignStart)
	next := map[string]int{}
	for i := range posts {
		n := next[posts[i].Platform]
		next[posts[i].Platform]++
		day := defaultDays[n%len(defaultDays)]
		if err == nil {
			day = onDay(start, n).Format(time.DateOnly)
		}
		posts[i].Slot = slot{Day: day, Window: defaultWindows[posts[i].Platform] + " " + in.Timezone, Reason: "default window: no history of this account was read"}
	}
}

// onDay is the n-th default day on or after start.
func onDay(start time.Time, n int) time.Time {
	for day := start; ; day = day.AddDate(0, 0, 1) {
		if weekday := day.Weekday(); weekday < time.Tuesday || weekday > time.Thursday {
			continue
		}
		if n == 0 {
			return day
		}
		n--
	}
}
