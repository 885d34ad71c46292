// Package emailsequence is the skill that drafts a short sequence of e-mails from evidence, with the parts that law and
// mailbox providers ask for. It sends nothing.
package emailsequence

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

const version = "1.0.0"

// Plugin is the skill.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "emailsequence", Kind: schemas.ManifestKindSkill, Version: version, Title: "E-mail sequence", Protocol: 1,
			Description: "Drafts a sequence of up to four e-mails from evidence; sends nothing.",
			Needs:       schemas.Needs{Memory: []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead}},
		},
		Tools: []sdk.Tool{{Document: schemas.MustTool("mkt_generate_email_sequence"), Run: run}},
	}
}

type sender struct {
	Name          string `json:"name"`
	Email         string `json:"email"`
	PostalAddress string `json:"postalAddress"`
	ReplyTo       string `json:"replyTo"`
}

type input struct {
	BrandDNAID     string          `json:"brandDnaId"`
	BrandDNA       json.RawMessage `json:"brandDna"`
	Type           string          `json:"type"`
	Trigger        string          `json:"trigger"`
	Sender         sender          `json:"sender"`
	Jurisdictions  []string        `json:"jurisdictions"`
	LawfulBasis    string          `json:"lawfulBasis"`
	ListSource     string          `json:"listSource"`
	UnsubscribeURL string          `json:"unsubscribeUrl"`
	Link           string          `json:"link"`
	RepoContext    json.RawMessage `json:"repoContext"`
	Emails         int             `json:"emails"`
	Mode           string          `json:"mode"`
	Drafts         struct {
		Emails []givenEmail `json:"emails"`
	} `json:"drafts"`
}

type givenEmail struct {
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

type output struct {
	*draft.Envelope
	Emails        []email   `json:"emails"`
	Timing        []timing  `json:"timing"`
	Requested     int       `json:"requested"`
	Produced      int       `json:"produced"`
	Because       []string  `json:"because"`
	SendBlockedBy []blocker `json:"sendBlockedBy"`
}

type timing struct {
	N   int `json:"n"`
	Day int `json:"day"`
}

// blocker is what must be known before a send may be staged.
type blocker struct {
	Field string `json:"field"`
	Rule  string `json:"rule"`
	Why   string `json:"why"`
}

func run(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{Trigger: "manual", Jurisdictions: []string{"US", "EU"}, Emails: 4}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	mode, err := draft.ModeOf(in.Mode, len(in.Drafts.Emails) > 0)
	if err != nil {
		return nil, err
	}
	desk, err := brand.Prepare(ctx, c, brand.Order{BrandDNAID: in.BrandDNAID, BrandDNA: in.BrandDNA, RepoContext: in.RepoContext, Stated: stated(in)})
	if err != nil {
		return nil, err
	}
	if len(desk.Facts) < 2 {
		return nil, draft.NothingToSay("e-mails")
	}
	env := draft.NewEnvelope(c, version, mode, map[string]any{"type": in.Type, "trigger": in.Trigger, "jurisdictions": in.Jurisdictions})
	env.Evidence = draft.AllToSDK(desk.Items)
	env.BrandDNARef = desk.Ref()
	out := &output{Envelope: env, Emails: []email{}, Timing: []timing{}, Because: []string{}, SendBlockedBy: blockers(in)}
	w := &work{Desk: desk, in: in, out: out}
	w.link, w.label = brand.Destination(w.Record, w.Repo, in.Link)
	if mode == draft.Caller {
		err = w.check(ctx, c)
	} else {
		err = w.write(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	for _, b := range out.SendBlockedBy {
		env.Gap(b.Field, "What is "+b.Field+"?", b.Why)
	}
	out.Produced = len(out.Emails)
	env.Finish(c, fmt.Sprintf("%d e-mails", len(out.Emails)))
	return out, nil
}

func stated(in input) []ground.Evidence {
	var items []ground.Evidence
	for _, s := range [][2]string{{"ownerHints.sender", in.Sender.Name}, {"ownerHints.postalAddress", in.Sender.PostalAddress}, {"ownerHints.listSource", in.ListSource}} {
		if s[1] != "" {
			items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: s[0], Quote: s[1], Trust: ground.OwnerStated})
		}
	}
	return items
}
