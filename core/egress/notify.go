package egress

import (
	"context"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport/sdk/effect"
)

const (
	notifyTime  = 15 * time.Second
	notifyReply = 4 << 10 // only the status counts
)

// PostEvent tells a webhook of an event by the rules of Standard Webhooks and returns
// the status of the reply. Secret is whsec_…; errors are those of Fetch.
func (e *Egress) PostEvent(ctx context.Context, address, id string, body []byte, secret string) (status int, err error) {
	reply, err := e.Fetch(ctx, Request{Class: Notify, Method: http.MethodPost, URL: address, Body: body, ID: id,
		Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}}, Signers: []string{SignStandardWebhooks},
		Credential: NewCredential(nil, map[string]string{"secret": secret}), MaxBytes: notifyReply, Timeout: notifyTime})
	if err != nil {
		return 0, err
	}
	return reply.Status, nil
}
