package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

func steady(t testing.TB) schemas.CatalogEntry { return self(t, "steady", "fx_echo", "fx_draft") }

// stillThere checks that the good neighbour answers.
func (h *house) stillThere() {
	h.Helper()
	var out struct{ Text string }
	h.works("fx_echo", map[string]string{"text": "here"}, &out)
	if out.Text != "here" {
		h.Fatalf("echo = %q", out.Text)
	}
}

func TestPluginsThatDoNotStartTouchNobody(t *testing.T) {
	for name, why := range map[string]string{
		"exits": "did not start", "silent": "timeout", "garbage": "Unrecognized remote plugin message", "endless": "did not start",
		"tcp": "tcp address", "foreign": "outside its own folder", "symlink": "socket", "file": "no socket",
		"lost": "manifest does not fit", "vast": "did not describe itself", "greedy": "it is not loaded",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, steady(t), self(t, name, "fx_*"))
			p := h.plugin(name)
			h.eventually("it is marked unavailable", func() bool { p = h.plugin(name); return p.Status == core.PluginStatusUnavailable })
			if !strings.Contains(p.StatusReason, why) {
				t.Errorf("reason = %q; want it to say %q", p.StatusReason, why)
			}
			if strings.ContainsRune(p.StatusReason, '\x1b') {
				t.Errorf("reason holds a control character: %q", p.StatusReason)
			}
			h.stillThere()
		})
	}
}

func TestTheDifferenceBetweenNeedsAndAllowIsShown(t *testing.T) {
	h := newHouse(t, self(t, "greedy", "fx_*"))
	reason := h.plugin("greedy").StatusReason
	for _, part := range []string{
		"may not own the tool mkt_diagnose_marketing", "needs a model, which its catalog entry does not allow",
		"needs to call finance_*", "needs the endpoint x (read 169.254.169.254)", "must be one exact host name",
	} {
		if !strings.Contains(reason, part) {
			t.Errorf("%q does not say %q", reason, part)
		}
	}
}

func TestPluginsThatMisbehaveInACallTouchNobody(t *testing.T) {
	h := newHouse(t, steady(t), self(t, "evil", "fx_*"))
	for name, why := range map[string]string{
		"fx_big": "larger than", "fx_bad": "does not fit the output schema", "fx_nojson": "not JSON", "fx_nothing": "without an answer",
	} {
		if err := h.unavailable(name, map[string]any{}); !strings.Contains(err.Detail, why) {
			t.Errorf("%s: %q; want %q", name, err.Detail, why)
		}
		h.stillThere()
	}
	started := time.Now()
	if err := h.unavailable("fx_hang", map[string]any{}); err.Code != tool.CodeTimeout {
		t.Errorf("hang: %v", err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("a call with a deadline of 2 s took %s", took)
	}
	h.stillThere()
	h.works("fx_flood", map[string]any{}, nil)
	h.stillThere()
	if p := h.plugin("evil"); p.Status != core.PluginStatusRunning || p.Restarts != 0 {
		t.Errorf("after all this the plugin is %+v", p)
	}
}

func TestAPluginThatDiesIsRestartedAndItsToolsStayListed(t *testing.T) {
	h := newHouse(t, steady(t), self(t, "evil", "fx_*"))
	listed := len(h.registry.Snapshot().Visible())
	for i := range crashLimit {
		h.unavailable("fx_die", map[string]any{})
		h.eventually("the crash is seen", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.pauses) == i+1 })
		if err := h.unavailable("fx_env", map[string]any{}); err.RetryAfter == 0 || err.Code != tool.CodeUnavailable {
			t.Errorf("while it is down: %v", err)
		}
		if got := len(h.registry.Snapshot().Visible()); got != listed {
			t.Fatalf("%d tools are listed while it is down; %d were", got, listed)
		}
		h.stillThere()
		if i < crashLimit-1 {
			h.resume <- struct{}{}
			h.eventually("it answers again", func() bool { return h.plugin("evil").Status == core.PluginStatusRunning })
			h.works("fx_env", map[string]any{}, nil)
		}
	}
	h.mu.Lock()
	pauses := h.pauses
	h.mu.Unlock()
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, maxPause}
	for i := range want {
		if pauses[i] != want[i] {
			t.Errorf("pauses = %v; want %v", pauses, want)
			break
		}
	}
	if p := h.plugin("evil"); !strings.Contains(p.StatusReason, "failed 5 times") || p.Restarts != crashLimit-1 {
		t.Errorf("circuit: %+v", p)
	}
	h.ok(h.sup.Reload(t.Context(), "evil")) // an owner's reload does not wait
	h.works("fx_env", map[string]any{}, nil)
}

func TestAPluginSeesNothingOfTheHost(t *testing.T) {
	t.Setenv("SALLYPORT_KEK", "topsecret")
	h := newHouse(t, self(t, "evil", "fx_*"))
	var out struct{ Text string }
	h.works("fx_env", map[string]any{}, &out)
	if strings.Contains(out.Text, "topsecret") || strings.Contains(out.Text, "PATH=") || strings.Contains(out.Text, "HOME=") {
		t.Errorf("it sees %s", out.Text)
	}
	if !strings.HasPrefix(out.Text, "stdin 0 EOF") {
		t.Errorf("standard input is open: %s", out.Text)
	}
}

func TestATicketDiesWithItsCall(t *testing.T) {
	h := newHouse(t, self(t, "evil", "fx_*"))
	var out struct{ Text string }
	for range 2 { // the first has no earlier ticket, the second has one of a call that ended
		h.works("fx_late", map[string]any{}, &out)
		if out.Text != "call_ended<nil>" {
			t.Errorf("the host answered %q", out.Text)
		}
	}
}

func TestAPluginCannotVouchForItself(t *testing.T) {
	h := newHouse(t, self(t, "evil", "fx_*"))
	made, err := h.runs.Create(t.Context(), h.agent, run.Create{Goal: "x"})
	h.ok(err)
	var out struct{ Text string }
	h.works("fx_vouch", map[string]any{"runId": made.ID}, &out)
	var saved []core.Evidence
	h.ok(json.Unmarshal([]byte(out.Text), &saved))
	if len(saved) != 1 || saved[0].Trust != core.EvidenceTrustInferred || saved[0].RunID != made.ID {
		t.Errorf("stored %+v", saved)
	}
	h.works("fx_vouch", map[string]any{}, &out)
	if out.Text != "no_run" {
		t.Errorf("outside a run: %s", out.Text)
	}
}

func TestCallsNestFourDeepAndNoDeeper(t *testing.T) {
	h := newHouse(t, self(t, "evil", "fx_*"))
	_, err := h.call("fx_deep", map[string]any{})
	if err == nil || err.Code != "too_deep" {
		t.Fatalf("err = %v", err)
	}
}

func TestFailuresOfPluginsReachTheCaller(t *testing.T) {
	h := newHouse(t, self(t, "evil", "fx_*"))
	_, err := h.call("fx_fail", map[string]any{})
	if err == nil || err.Code != "insufficient_evidence" || err.Kind != core.KindInvalid || len(err.Fields) != 1 || !strings.Contains(err.Detail, "Name a page") {
		t.Fatalf("err = %+v", err)
	}
	var messages []string
	_, failed := h.tools.Call(t.Context(), h.agent, tool.Request{Tool: "fx_progress", Args: json.RawMessage(`{}`), Progress: func(_, _ float64, m string) { messages = append(messages, m) }})
	if failed != nil || len(messages) != 3 || messages[0] != `a\u001bb` {
		t.Fatalf("progress = %q, %v", messages, failed)
	}
}

func TestABinaryThatChangedIsNotStarted(t *testing.T) {
	e := self(t, "evil", "fx_*")
	e.Sha256 = strings.Repeat("0", 64)
	h := newHouse(t, steady(t), e)
	h.eventually("it is unavailable", func() bool { return h.plugin("evil").Status == core.PluginStatusUnavailable })
	if p := h.plugin("evil"); !strings.Contains(p.StatusReason, "SHA-256") {
		t.Errorf("reason = %q", p.StatusReason)
	}
	h.stillThere()
}

func TestTwoPluginsCannotOwnOneTool(t *testing.T) {
	h := newHouse(t, steady(t))
	h.write(steady(t), self(t, "clash", "fx_*"))
	err := h.sup.Reload(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "the tool fx_echo is owned twice") {
		t.Fatalf("err = %v", err)
	}
	h.stillThere()
}
