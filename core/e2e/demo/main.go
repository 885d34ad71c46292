// Command demo runs the main job by itself: an agent brings what was built, the operator
// drafts and stages, a person approves two actions and rejects one, and the ledgers of
// a mail server and two webhook receivers show that exactly the approved bytes left. It
// needs no account and no model key, and touches this machine's loopback only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

const webhookSecret = "whsec_ZGVtby1zZWNyZXQtb2YtdGhpcy1tYWNoaW5lLW9ubHk="

func main() {
	bin := flag.String("bin", "bin", "folder of the built programs")
	repo := flag.String("repo", ".", "repository the collector reads")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	d := &demo{ctx: ctx, repo: *repo, bin: *bin}
	err := d.run()
	d.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nthe demo failed:", err)
		os.Exit(1)
	}
}

type demo struct {
	ctx       context.Context
	repo, bin string
	host      *harness.Host
	mail      *harness.MailServer
	hooks     []*harness.Receiver
	token     string // of the person
	key       string // of the agent
	runID     string
}

func (d *demo) close() {
	if d.host != nil {
		_ = d.host.Stop()
		d.host.Remove()
	}
	if d.mail != nil {
		d.mail.Close()
	}
	for _, h := range d.hooks {
		h.Close()
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (d *demo) run() error {
	for _, step := range []struct {
		title string
		do    func() error
	}{
		{"Start a host on scratch data, a mail server and two webhook receivers", d.start},
		{"Connect them", d.connect},
		{"Collect what was built, and ask as an agent for users", d.launch},
		{"The agent tries to approve", d.agentTries},
		{"A person approves two actions and rejects one", d.decide},
		{"What the outside world got", d.ledger},
		{"What comes next", d.next},
		{"The audit log", d.audit},
	} {
		say("\n== %s", step.title)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(step.title), err)
		}
	}
	say("\nExactly the two approved effects left this machine's host, byte for byte.")
	return nil
}

func (d *demo) start() error {
	data, err := harness.Scratch()
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(d.bin)
	if err != nil {
		return err
	}
	if d.mail, err = harness.StartMail("demo", "demo-password"); err != nil {
		return err
	}
	allow := []string{d.mail.Addr}
	for _, name := range []string{"changelog", "team"} {
		hook, err := harness.StartReceiver(name, webhookSecret)
		if err != nil {
			return err
		}
		d.hooks = append(d.hooks, hook)
		allow = append(allow, hook.Addr)
	}
	if d.host, err = harness.NewHost(harness.Binaries{Dir: bin}, data, ""); err != nil {
		return err
	}
	d.host.Env = []string{"SALLYPORT_EGRESS_ALLOW_PRIVATE=" + strings.Join(allow, ",")}
	if err := d.host.Init(d.ctx); err != nil {
		return err
	}
	if d.token, err = d.host.Token(d.ctx); err != nil {
		return err
	}
	if d.key, err = d.host.Key(d.ctx, "agent"); err != nil {
		return err
	}
	if err := d.host.Start(d.ctx); err != nil {
		return err
	}
	say("host %s · mail %s · webhooks %s, %s", d.host.URL, d.mail.Addr, d.hooks[0].URL, d.hooks[1].URL)
	return nil
}

func (d *demo) connect() error {
	if err := harness.ConnectMail(d.ctx, d.host, d.token, d.mail); err != nil {
		return err
	}
	for _, hook := range d.hooks {
		if err := harness.ConnectWebhook(d.ctx, d.host, d.token, hook); err != nil {
			return err
		}
	}
	var list struct{ Connectors []core.Connector }
	if err := d.host.JSON(d.ctx, d.token, "GET", "/api/connectors", nil, &list); err != nil {
		return err
	}
	for _, c := range list.Connectors {
		say("%-24s %s", c.Provider, c.Status)
	}
	return nil
}

func (d *demo) launch() error {
	script, err := d.host.Do(d.ctx, "GET", "/repo-context.mjs", nil)
	if err != nil {
		return fmt.Errorf("fetching the collector: %w", err)
	}
	if script.Status != 200 {
		return fmt.Errorf("fetching the collector: status %d", script.Status)
	}
	file := filepath.Join(d.host.Data, "repo-context.mjs")
	if err := os.WriteFile(file, script.Body, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(d.ctx, "node", file, "--root="+d.repo,
		"--what-changed=A host that sends only what a person approved, with sealed effects, an audit log and an operator for launches",
		"--target-customer=engineers who give agents access to marketing tools", "--goal=users")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the collector: %w", err)
	}
	var collected map[string]any
	if err := json.Unmarshal(out, &collected); err != nil {
		return fmt.Errorf("the collector printed no JSON: %w", err)
	}
	say("collector: %d bytes of context", len(out))
	var pack struct {
		RunID, ReviewURL, AgentProofLine, UserMessage string
		PublishActions                                []struct{ ID, Title, Executor, Status string }
		GenericityRisk                                struct {
			Score float64
			Band  string
		}
	}
	text, err := d.host.Tool(d.ctx, d.key, "platform_get_users_after_build", map[string]any{
		"whatChanged": collected["whatChanged"], "repoContext": collected, "targetCustomer": collected["targetCustomer"], "launchGoal": "users",
		"email": map[string]any{"audience": "launch", "postalAddress": "1 Example Street, 12345 Example Town", "unsubscribeUrl": "https://sender.example/unsubscribe"},
	}, &pack)
	if err != nil {
		return err
	}
	if len(text) == 0 || !strings.HasPrefix(text[0], pack.AgentProofLine) || !strings.Contains(text[0], pack.ReviewURL) {
		return fmt.Errorf("the first text block must start with the proof line and name the review URL, got %q", text)
	}
	say("%s\n", text[0])
	d.runID = strings.TrimPrefix(pack.ReviewURL, d.host.URL+"/review/")
	say("genericity %.2f (%s); staged:", pack.GenericityRisk.Score, pack.GenericityRisk.Band)
	for _, act := range pack.PublishActions {
		say("  %s  %-9s %-9s %s", act.ID, act.Status, act.Executor, act.Title)
	}
	return nil
}

func (d *demo) agentTries() error {
	_, err := d.host.Tool(d.ctx, d.key, "mkt_approve_run", map[string]any{"runId": d.runID}, nil)
	if err == nil {
		return errors.New("an agent's approval went through")
	}
	refusal, ok := errors.AsType[*harness.ToolError](err)
	if !ok || !strings.Contains(refusal.Text, "approval_required") || !strings.Contains(refusal.Text, "/review/"+d.runID) {
		return fmt.Errorf("an agent's approval must be refused with approval_required and the review URL, got: %w", err)
	}
	say("refused: approval_required, with the review URL")
	return nil
}

func (d *demo) actions() ([]core.Action, error) {
	var page struct{ Actions []core.Action }
	return page.Actions, d.host.JSON(d.ctx, d.token, "GET", "/api/actions?runId="+d.runID+"&limit=200", nil, &page)
}

func (d *demo) decide() error {
	acts, err := d.actions()
	if err != nil {
		return err
	}
	byTarget := func(kind, part string) *core.Action {
		for i, act := range acts {
			if act.Kind == kind && act.Executor == core.ActionExecutorConnector && strings.Contains(act.Target.Label+act.Title, part) {
				return &acts[i]
			}
		}
		return nil
	}
	mail, yes, no := byTarget("email.send", ""), byTarget("webhook.post", "changelog"), byTarget("webhook.post", "team")
	if mail == nil || yes == nil || no == nil {
		return fmt.Errorf("expected a mail and two webhook actions, got %d actions", len(acts))
	}
	for _, act := range []*core.Action{mail, yes} {
		if err := d.host.JSON(d.ctx, d.token, "POST", "/api/actions/"+act.ID+"/approve", map[string]string{"expectedDigest": act.Digest}, nil); err != nil {
			return err
		}
		say("approved  %s  %s", act.ID, act.Title)
	}
	if err := d.host.JSON(d.ctx, d.token, "POST", "/api/actions/"+no.ID+"/reject", map[string]string{"expectedDigest": no.Digest, "reason": "The team heard it already."}, nil); err != nil {
		return err
	}
	say("rejected  %s  %s", no.ID, no.Title)
	return nil
}

func (d *demo) ledger() error {
	acts, err := harness.Settled(d.ctx, d.host, d.token, d.runID)
	if err != nil {
		return err
	}
	approved := map[string]string{} // sha256 of the sealed content: action
	for _, act := range acts {
		if act.Status == core.ActionStatusSucceeded {
			for _, sum := range act.ContentSha256 {
				approved[sum] = act.ID
			}
		}
	}
	entries := 0
	check := func(what, sum string) error {
		entries++
		act, ok := approved[sum]
		if !ok {
			return fmt.Errorf("%s got %s, which nobody approved", what, sum)
		}
		delete(approved, sum)
		say("%-18s sha256 %s = contentSha256 of %s", what, sum, act)
		return nil
	}
	for _, m := range d.mail.Mails() {
		if err := check("mail to "+strings.Join(m.To, ","), m.SHA256); err != nil {
			return err
		}
	}
	for _, hook := range d.hooks {
		for _, delivery := range hook.Deliveries() {
			if !delivery.Verified {
				return fmt.Errorf("the signature of a delivery to %s does not hold", hook.Name)
			}
			if err := check("webhook "+hook.Name, delivery.SHA256); err != nil {
				return err
			}
		}
	}
	if entries != 2 || len(approved) != 0 {
		return fmt.Errorf("the ledgers hold %d entries and %d approved effects are missing; want exactly 2 and 0", entries, len(approved))
	}
	say("ledger: %d entries, no other", entries)
	return nil
}

func (d *demo) next() error {
	var loop struct {
		Stage      string
		NextAction struct{ Tool, Human, Title, Reason string }
	}
	if _, err := d.host.Tool(d.ctx, d.key, "mkt_continue_launch_loop", map[string]any{"runId": d.runID}, &loop); err != nil {
		return err
	}
	if loop.NextAction.Title == "" {
		return errors.New("mkt_continue_launch_loop named no next action")
	}
	say("stage %s: %s — %s", loop.Stage, loop.NextAction.Title, loop.NextAction.Reason)
	return nil
}

func (d *demo) audit() error {
	out, err := d.host.Command(d.ctx, "", "audit", "verify", "--json")
	if err != nil {
		return err
	}
	var verdict struct {
		OK   bool
		Size int64
		Root string
	}
	if err := json.Unmarshal(out, &verdict); err != nil {
		return fmt.Errorf("the audit verdict cannot be read: %s: %w", out, err)
	}
	if !verdict.OK || verdict.Size == 0 {
		return fmt.Errorf("the audit log does not verify: %s", out)
	}
	say("intact: %d entries, root %s", verdict.Size, verdict.Root)
	return nil
}
