package harness

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// ConnectMail connects the smtp connector of the owner's workspace to a mail server of
// this machine, with one audience.
func ConnectMail(ctx context.Context, h *Host, token string, m *MailServer) error {
	host, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return err
	}
	return h.JSON(ctx, token, "PUT", "/api/connectors/smtp", map[string]any{
		"fields":    map[string]string{"host": host, "port": port, "tls": "none", "username": m.User, "password": m.Pass, "from": "Sallyport <launch@sender.example>"},
		"audiences": []map[string]any{{"name": "launch", "addresses": []string{"reader@reader.example"}, "lawfulBasis": "consent"}},
	}, nil)
}

// ConnectWebhook connects a named URL of the webhook connector.
func ConnectWebhook(ctx context.Context, h *Host, token string, r *Receiver) error {
	return h.JSON(ctx, token, "PUT", "/api/connectors/webhook", map[string]any{
		"name": r.Name, "fields": map[string]string{"url": r.URL, "secret": r.Secret},
	}, nil)
}

// Settled waits until no action of a run is on its way and returns them.
func Settled(ctx context.Context, h *Host, token, runID string) ([]core.Action, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var page struct{ Actions []core.Action }
		if err := h.JSON(ctx, token, "GET", "/api/actions?limit=200&runId="+runID, nil, &page); err != nil {
			return nil, err
		}
		moving := 0
		for _, act := range page.Actions {
			if act.Executor != core.ActionExecutorConnector {
				continue
			}
			switch act.Status {
			case core.ActionStatusApproved, core.ActionStatusClaimed, core.ActionStatusSending:
				moving++
			}
		}
		if moving == 0 {
			return page.Actions, nil
		}
		select {
		case <-ctx.Done():
			return page.Actions, fmt.Errorf("%d actions are still on their way: %w", moving, ctx.Err())
		case <-tick.C:
		}
	}
}
