package harness

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// Scene is a host with a mail server and webhook receivers that are connected, and the
// credentials to use it.
type Scene struct {
	Host  *Host
	Mail  *MailServer
	Hooks []*Receiver
	Token string // of the owner; good for 15 minutes
	Key   string // of an agent
}

// secret signs the deliveries to the receivers of scenes.
const secret = "whsec_c2NlbmUtc2VjcmV0LW9mLXRoaXMtbWFjaGluZS1vbmx5"

// NewScene starts a host on scratch data with everything connected. env is added to the
// environment of the host; hooks name the webhook receivers.
func NewScene(ctx context.Context, bin Binaries, databaseURL string, env []string, hooks ...string) (s *Scene, err error) {
	s = &Scene{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.Mail, err = StartMail("scene", "scene-password"); err != nil {
		return s, err
	}
	allow := []string{s.Mail.Addr}
	for _, name := range hooks {
		hook, err := StartReceiver(name, secret)
		if err != nil {
			return s, err
		}
		s.Hooks = append(s.Hooks, hook)
		allow = append(allow, hook.Addr)
	}
	data, err := Scratch()
	if err != nil {
		return s, err
	}
	if s.Host, err = NewHost(bin, data, databaseURL); err != nil {
		return s, err
	}
	s.Host.Env = append([]string{"SALLYPORT_EGRESS_ALLOW_PRIVATE=" + strings.Join(allow, ",")}, env...)
	if err := s.Host.Init(ctx); err != nil {
		return s, err
	}
	if s.Token, err = s.Host.Token(ctx); err != nil {
		return s, err
	}
	if s.Key, err = s.Host.Key(ctx, "agent"); err != nil {
		return s, err
	}
	if err := s.Host.Start(ctx); err != nil {
		return s, err
	}
	if err := ConnectMail(ctx, s.Host, s.Token, s.Mail); err != nil {
		return s, err
	}
	for _, hook := range s.Hooks {
		if err := ConnectWebhook(ctx, s.Host, s.Token, hook); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Close ends everything and removes the data.
func (s *Scene) Close() {
	if s.Host != nil {
		_ = s.Host.Kill()
		s.Host.Remove()
	}
	if s.Mail != nil {
		s.Mail.Close()
	}
	for _, hook := range s.Hooks {
		hook.Close()
	}
}

// Ledger counts what reached the outside.
func (s *Scene) Ledger() int {
	n := len(s.Mail.Mails())
	for _, hook := range s.Hooks {
		n += len(hook.Deliveries())
	}
	return n
}

// Launched is what the launch of a small product stages.
const Launched = `{"whatChanged": "CSV export for invoices: you can export every invoice of a month as one CSV file in under 10 seconds",
 "recentCommits": ["feat: export invoices of a month as CSV", "fix: escape commas in customer names"],
 "changedFiles": ["export/csv.go", "web/invoices.html"],
 "routes": ["/invoices", "/invoices/export", "/signup", "/pricing"],
 "readme": "# Ledgerly\n\nLedgerly is invoicing for freelancers. You write an invoice in a minute, send it as PDF and see who paid.\n\n## Features\n\n- Export all invoices of a month as one CSV file in under 10 seconds.\n- Reminders go out after 14 days.\n- Works offline.\n",
 "targetCustomer": "freelancers who send invoices", "launchGoal": "users", "url": "https://ledgerly.example"}`

// Launch asks, as the agent, for users for a small product and returns the run's id.
func (s *Scene) Launch(ctx context.Context) (runID string, err error) {
	var pack struct{ ReviewURL string }
	if _, err := s.Host.Tool(ctx, s.Key, "platform_get_users_after_build", jsonText(Launched), &pack); err != nil {
		return "", err
	}
	return strings.TrimPrefix(pack.ReviewURL, s.Host.URL+"/review/"), nil
}

// Action finds the waiting action of a kind that a connector will carry out.
func (s *Scene) Action(ctx context.Context, runID, kind string) (core.Action, error) {
	var page struct{ Actions []core.Action }
	if err := s.Host.JSON(ctx, s.Token, "GET", "/api/actions?limit=200&runId="+runID, nil, &page); err != nil {
		return core.Action{}, err
	}
	for _, act := range page.Actions {
		if act.Kind == kind && act.Executor == core.ActionExecutorConnector && act.Status == core.ActionStatusPending {
			return act, nil
		}
	}
	return core.Action{}, fmt.Errorf("the run proposes no %s among %d actions", kind, len(page.Actions))
}

// Approve approves an action by its digest.
func (s *Scene) Approve(ctx context.Context, act core.Action) error {
	return s.Host.JSON(ctx, s.Token, "POST", "/api/actions/"+act.ID+"/approve", map[string]string{"expectedDigest": act.Digest}, nil)
}

// Get reads an action.
func (s *Scene) Get(ctx context.Context, id string) (core.Action, error) {
	var act core.Action
	return act, s.Host.JSON(ctx, s.Token, "GET", "/api/actions/"+id, nil, &act)
}

type jsonText string

func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }
