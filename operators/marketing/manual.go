package marketing

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
	"github.com/sallyport-dev/sallyport/sdk/text"
)

// handWork is the input of mkt_post_by_hand.
type handWork struct {
	Channel   string      `json:"channel"`
	Title     string      `json:"title"`
	Text      string      `json:"text"`
	Fields    []handField `json:"fields,omitempty"`
	Checklist []string    `json:"checklist,omitempty"`
	OpenURL   string      `json:"openUrl,omitempty"`
}

type handField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// byHand compiles work that a person does: the approved text, further fields and what to mind. It has no steps, so
// nothing is ever sent by the platform.
func byHand(_ context.Context, c *sdk.Call) (*effect.Sealed, error) {
	var in handWork
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	for pointer, s := range map[string]string{"/title": in.Title, "/text": in.Text} {
		if strings.ContainsFunc(s, text.Invisible) {
			f := sdk.Fail("invalid_input", "The %s holds invisible characters, which a reviewer could not see.", strings.TrimPrefix(pointer, "/"))
			f.Fields = []sdk.FieldError{{Pointer: pointer, Message: "holds invisible characters"}}
			return nil, f
		}
	}
	manual := &effect.Manual{Title: in.Title, Text: in.Text, Checklist: in.Checklist, OpenURL: in.OpenURL}
	for _, f := range in.Fields {
		manual.Fields = append(manual.Fields, effect.Pair{Name: f.Name, Value: f.Value})
	}
	return &effect.Sealed{
		Kind:        "manual.task",
		Explanation: "A person does this by hand and reports where the result stands.",
		Target:      effect.Target{AccountID: in.Channel, Label: channelTitle(in.Channel)},
		Manual:      manual,
	}, nil
}
