//go:build browser

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

// scene is a host that nobody set up, with a mail server and a webhook receiver.
func scene(t *testing.T) *harness.Scene {
	t.Helper()
	ctx := t.Context()
	bin, err := harness.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &harness.Scene{}
	t.Cleanup(s.Close)
	if s.Mail, err = harness.StartMail("browser", "browser-password"); err != nil {
		t.Fatal(err)
	}
	hook, err := harness.StartReceiver("changelog", "whsec_YnJvd3Nlci1zZWNyZXQtb2YtdGhpcy1tYWNoaW5lLW9ubHk=")
	if err != nil {
		t.Fatal(err)
	}
	s.Hooks = append(s.Hooks, hook)
	data, err := harness.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if s.Host, err = harness.NewHost(bin, data, ""); err != nil {
		t.Fatal(err)
	}
	s.Host.Env = []string{"SALLYPORT_EGRESS_ALLOW_PRIVATE=" + s.Mail.Addr + "," + hook.Addr}
	if err := s.Host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// launch connects everything and has an agent ask for users.
func (b *tab) launch(s *harness.Scene) (runID string) {
	b.Helper()
	ctx := b.Context()
	steps := []func() error{
		func() (err error) { s.Token, err = s.Host.Token(ctx); return err },
		func() (err error) { s.Key, err = s.Host.Key(ctx, "agent"); return err },
		func() error { return harness.ConnectMail(ctx, s.Host, s.Token, s.Mail) },
		func() error { b.connectWebhook(s.Hooks[0]); return nil },
		func() (err error) { runID, err = s.Launch(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			b.Fatalf("%v\n%s", err, s.Host.Log())
		}
	}
	return runID
}

// connectWebhook types a webhook into the page of connectors.
func (b *tab) connectWebhook(hook *harness.Receiver) {
	b.Helper()
	b.visit("/connectors")
	b.focus(`[aria-labelledby="c-webhook"] summary`)
	b.write(kb.Enter)
	for _, field := range [][2]string{{"name", hook.Name}, {"url", hook.URL}, {"secret", hook.Secret}} {
		b.focus(`#webhook-` + field[0])
		b.write(field[1])
	}
	b.shoot("connect-390")
	b.press(kb.Enter)
	b.reads("Webhooks is connected.", hook.URL)
}

// TestAnApprovalByKeyboard goes from a host that nobody set up to a mail that left, with
// the keyboard alone and no scripts.
func TestAnApprovalByKeyboard(t *testing.T) {
	b := open(t)
	s := scene(t)
	b.base = s.Host.URL
	b.setUp(s)
	runID := b.launch(s)

	b.visit("/inbox")
	b.reads("wait for you", "CSV export")
	b.looks("inbox")
	b.focus(`.card a.button.primary`)
	b.press(kb.Enter)
	if b.path() != "/review/"+runID {
		t.Fatalf("the inbox leads to %s", b.path())
	}
	b.looks("review")
	b.showsTheBytes(s, runID)
	b.approveAndReject(s, runID)
	b.otherPages(runID)
	b.signInAgain()
}

func (b *tab) setUp(s *harness.Scene) {
	b.Helper()
	url, err := os.ReadFile(filepath.Join(s.Host.Data, "setup-url"))
	b.ok(err)
	b.visit(strings.TrimSpace(string(url)))
	b.looks("setup")
	b.focus(`a.skip`)
	b.shoot("skip-390")
	b.focus(`#email`)
	b.write(harness.Email)
	b.focus(`#password`)
	b.write(harness.Password)
	b.press(kb.Enter)
	b.reads("Nothing waits for a decision")
	b.looks("inbox-empty")
}

// showsTheBytes checks that what would leave stands on the page, byte for byte, and in
// sight.
func (b *tab) showsTheBytes(s *harness.Scene, runID string) {
	b.Helper()
	var page struct{ Actions []core.Action }
	b.ok(s.Host.JSON(b.Context(), s.Token, "GET", "/api/actions?limit=200&runId="+runID, nil, &page))
	shown := 0
	for _, a := range page.Actions {
		steps, _ := a.Preview["steps"].([]any)
		for i, st := range steps {
			step := st.(map[string]any)
			want, _ := step["message"].(string)
			if want == "" {
				want, _ = step["body"].(string)
			}
			pre := fmt.Sprintf(`[...document.querySelectorAll("[id='%s'] pre.exact")][%d]`, a.ID, i)
			got := eval[string](b, pre+`.innerText`)
			if got != strings.ReplaceAll(want, "\r\n", "\n") {
				b.Errorf("%s: the page shows\n%q\nand what leaves is\n%q", a.ID, got, want)
			}
			if !eval[bool](b, `(e => e.checkVisibility() && e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1)(`+pre+`)`) {
				b.Errorf("%s: not all of the bytes is in sight on a phone", a.ID)
			}
			shown++
		}
	}
	if shown < 2 {
		b.Errorf("only %d requests on the page", shown)
	}
}

func (b *tab) approveAndReject(s *harness.Scene, runID string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	mail, err := s.Action(ctx, runID, "email.send")
	b.ok(err)
	hook, err := s.Action(ctx, runID, "webhook.post")
	b.ok(err)

	b.focus(fmt.Sprintf(`form[action="/actions/%s/approve"] button`, mail.ID))
	b.shoot("review-focus-390")
	b.press(kb.Enter)
	b.reads("Recorded: 1 approved.", "Receipt:")
	b.shoot("review-approved-390")
	_, err = harness.Settled(ctx, s.Host, s.Token, runID)
	b.ok(err)
	mails := s.Mail.Mails()
	if len(mails) != 1 || mails[0].SHA256 != mail.ContentSha256[0] {
		b.Fatalf("%d mails left; want the one that was approved", len(mails))
	}

	reason := fmt.Sprintf(`form[action="/actions/%s/reject"] input[name=reason]`, hook.ID)
	b.focus(reason)
	b.write("Not now: the page is not live.")
	b.focus(fmt.Sprintf(`form[action="/actions/%s/reject"] button`, hook.ID))
	b.press(kb.Enter)
	b.reads("Recorded: 1 rejected.", "Not now: the page is not live.", "Succeeded")
	b.looks("review-decided")
	if n := s.Ledger(); n != 1 {
		b.Errorf("%d things left, want 1", n)
	}
}

func (b *tab) otherPages(runID string) {
	b.Helper()
	for name, path := range map[string]string{"run": "/runs/" + runID, "runs": "/runs", "connectors": "/connectors", "audit": "/audit"} {
		b.visit(path)
		b.looks(name)
	}
}

func (b *tab) signInAgain() {
	b.Helper()
	b.visit("/inbox")
	b.focus(`.who button`)
	b.press(kb.Enter)
	b.looks("signin")
	b.focus(`#email`)
	b.write(harness.Email)
	b.focus(`#password`)
	b.write("not the password")
	if status := b.press(kb.Enter); status != http.StatusUnauthorized {
		b.Errorf("a wrong password: %d", status)
	}
	b.shoot("signin-wrong-390")
	b.focus(`#password`)
	b.write(harness.Password)
	b.press(kb.Enter)
	if b.path() != "/inbox" {
		b.Errorf("signing in leads to %s", b.path())
	}
}

// TestAnotherSiteCannotDecide posts the form of an approval from a page of another
// origin, in the browser of a person who is signed in, and tries to frame the pages.
func TestAnotherSiteCannotDecide(t *testing.T) {
	b := open(t)
	s := scene(t)
	b.base = s.Host.URL
	b.setUp(s)
	runID := b.launch(s)
	act, err := s.Action(t.Context(), runID, "webhook.post")
	b.ok(err)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>prize</title><form method="post" action="%s/actions/%s/approve"><input type="hidden" name="digest" value="%s"><button>Win</button></form><iframe src="%s/review/%s"></iframe>`,
			s.Host.URL, act.ID, act.Digest, s.Host.URL, runID)
	}))
	defer evil.Close()
	b.visit(evil.URL)
	if framed := eval[int](b, `[...document.querySelectorAll("iframe")].filter(f => { try { return f.contentDocument && f.contentDocument.querySelector(".action") } catch { return false } }).length`); framed != 0 {
		t.Error("a page of another site frames the review page")
	}
	b.do(chromedp.Focus(chromedp.CSS(`form button`)))
	if status := b.press(kb.Enter); status != http.StatusForbidden {
		t.Errorf("the form of another site: status %d", status)
	}
	b.reads("Not allowed", "another site")
	after, err := s.Get(t.Context(), act.ID)
	b.ok(err)
	if after.Status != core.ActionStatusPending || s.Ledger() != 0 {
		t.Errorf("the action is %s and %d things left", after.Status, s.Ledger())
	}
}
