// Package smtp is the connector to any mail server: it compiles one e-mail to one
// recipient into the exact message that core sends after approval. It opens no socket.
package smtp

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

//go:embed manifest.json
var manifest []byte

// Plugin is the connector.
func Plugin() sdk.Plugin {
	p := sdk.Plugin{Tools: []sdk.Tool{{Document: schemas.MustTool("smtp_send"), Compile: compile}}}
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("smtp: manifest.json: %v", err))
	}
	return p
}

type input struct {
	To             string            `json:"to"`
	From           string            `json:"from"`
	ReplyTo        string            `json:"replyTo"`
	Subject        string            `json:"subject"`
	Text           string            `json:"text"`
	HTML           string            `json:"html"`
	Headers        map[string]string `json:"headers"`
	UnsubscribeURL string            `json:"unsubscribeUrl"`
}

// compile turns the input into one envelope and one message; without a connection into
// a message that a person sends.
func compile(_ context.Context, c *sdk.Call) (*effect.Sealed, error) {
	var in input
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	connected := c.Connection != nil && c.Connection.Status == "connected"
	if in.From == "" && connected {
		in.From = c.Connection.Fields["from"]
	}
	m, err := read(in, c.ActionID, connected)
	if err != nil {
		return nil, err
	}
	sealed := &effect.Sealed{
		Kind:        "email.send",
		Explanation: fmt.Sprintf("One e-mail to %s with the subject %q.", m.to.Address, in.Subject),
		Target:      effect.Target{AccountID: m.to.Address, Label: m.to.Address},
		Reach:       1,
	}
	if !connected {
		sealed.Manual = byHand(in)
		return sealed, nil
	}
	sealed.Connection = c.Connection.Name
	sealed.Steps = []effect.Step{{
		Endpoint: "smtp.send",
		Mail:     &effect.MailStep{From: m.from.Address, To: []string{m.to.Address}, Message: m.bytes()},
	}}
	return sealed, nil
}

// read checks the input. The sender may stay open only where a person sends by hand.
func read(in input, actionID string, needFrom bool) (*message, error) {
	m := &message{id: actionID, subject: in.Subject, text: in.Text, html: in.HTML, headers: in.Headers, unsubURL: in.UnsubscribeURL}
	var err error
	if m.to, err = address("/to", in.To); err != nil {
		return nil, err
	}
	if in.From != "" || needFrom {
		if m.from, err = address("/from", in.From); err != nil {
			return nil, err
		}
	}
	if in.ReplyTo != "" {
		if m.replyTo, err = address("/replyTo", in.ReplyTo); err != nil {
			return nil, err
		}
	}
	if strings.ContainsAny(in.Subject, "\r\n\x00") {
		return nil, field("/subject", "must be one line")
	}
	if strings.ContainsAny(in.UnsubscribeURL, "\r\n\x00<> ") {
		return nil, field("/unsubscribeUrl", "is not an address")
	}
	return m, checkHeaders(in.Headers)
}

func byHand(in input) *effect.Manual {
	m := &effect.Manual{
		Title:     "Send this e-mail from your own mailbox",
		Text:      in.Text,
		Fields:    []effect.Pair{{Name: "To", Value: in.To}, {Name: "Subject", Value: in.Subject}},
		Checklist: []string{"Copy recipient, subject and text unchanged.", "Send it once.", "Report the send here with a link or the message id."},
	}
	if in.ReplyTo != "" {
		m.Fields = append(m.Fields, effect.Pair{Name: "Reply-To", Value: in.ReplyTo})
	}
	return m
}
