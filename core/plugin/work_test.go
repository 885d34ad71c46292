package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// buildDir holds what buildExamples built; TestMain removes it.
var buildDir string

var buildExamples = sync.OnceValue(func() error {
	var err error
	if buildDir, err = os.MkdirTemp("", "examples"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", buildDir+"/", "../../sdk/examples/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// examples builds the three examples of the author kit and returns their entries.
func examples(t *testing.T) []schemas.CatalogEntry {
	t.Helper()
	if err := buildExamples(); err != nil {
		t.Fatal(err)
	}
	entry := func(name, folder string, allow schemas.Allow) schemas.CatalogEntry {
		path := filepath.Join(buildDir, folder)
		list := true
		return schemas.CatalogEntry{Name: name, Command: path, Sha256: digestOf(t, path), Allow: allow, List: &list}
	}
	return []schemas.CatalogEntry{
		entry("notes", "connector-go", schemas.Allow{Tools: []string{"notes_*"}, Endpoints: []string{"notes.list", "notes.add"}}),
		entry("headline", "skill-go", schemas.Allow{Tools: []string{"demo_draft_headline"}}),
		entry("announcer", "operator-go", schemas.Allow{Tools: []string{"demo_announce"}, Call: []string{"demo_*"}, Propose: []string{"notes_add"}}),
	}
}

func (h *house) connectNotes() {
	h.Helper()
	h.ok(h.db.InTx(h.Context(), func(ctx context.Context, tx *store.Tx) error {
		now := store.At(core.SystemClock{}.Now())
		return tx.InsertConnection(ctx, &store.Connection{ID: "con_1", WorkspaceID: ws, Provider: "notes", Account: "notes.example", Address: "https://notes.example.com",
			Fields: map[string]string{}, Scopes: []string{}, Status: core.ConnectorStatusConnected, BindingDigest: "bound", CreatedBy: h.agent.Actor(), CreatedAt: now, UpdatedAt: now, Version: 1})
	}))
}

// An operator in its own process calls a skill in another, stages a write of a connector
// in a third, and the action waits for a person.
func TestTheExamplesWorkInTheRealHost(t *testing.T) {
	h := newHouse(t, examples(t)...)
	for _, p := range h.sup.List() {
		if p.Status != core.PluginStatusRunning {
			t.Fatalf("%s: %s", p.Name, p.StatusReason)
		}
	}
	names := []string{}
	for _, e := range h.registry.Snapshot().Visible() {
		names = append(names, e.Doc.Name)
	}
	if list := strings.Join(names, " "); !strings.Contains(list, "demo_announce demo_draft_headline") || !strings.Contains(list, "notes_list") || strings.Contains(list, "notes_add") {
		t.Errorf("tools/list shows %s", list)
	}

	goal := map[string]any{"goal": "Exports take a tenth of the time", "product": "Ledgerly"}
	_, failed := h.call("demo_announce", goal)
	if failed == nil || failed.Code != "connector_not_connected" || failed.ReviewURL == "" {
		t.Fatalf("without a connection: %v", failed)
	}
	h.connectNotes()
	var out struct {
		RunID, ReviewURL, Headline string
		Actions                    []string
	}
	result := h.works("demo_announce", goal, &out)
	if out.Headline != "Ledgerly: Exports take a tenth of the time" || len(out.Actions) != 1 {
		t.Fatalf("answer %s", result.Structured)
	}
	if n := len(result.Lead); n != 3 || result.Lead[n-1] != "Wait for the human. Do not post, send, submit or spend." || result.Lead[n-2] != out.ReviewURL {
		t.Errorf("lead = %q", result.Lead)
	}

	r, err := h.runs.Get(t.Context(), h.agent, out.RunID)
	h.ok(err)
	if r.Status != core.RunStatusAwaitingApproval || r.Goal != "Exports take a tenth of the time" || r.Operator != "announcer" || r.Intent.Name != "announce" || len(r.AssetIds) != 1 || len(r.EvidenceIds) != 1 {
		t.Errorf("run = %+v", r)
	}
	a, err := h.approval.Get(t.Context(), h.agent, out.Actions[0])
	h.ok(err)
	if a.Status != core.ActionStatusPending || a.Tool != "notes_add" || a.Kind != "note.add" || a.EvidenceIds[0] != r.EvidenceIds[0] {
		t.Errorf("action = %+v", a)
	}
	if got, _ := json.Marshal(a.Preview); !strings.Contains(string(got), "tenth of the time") {
		t.Errorf("the preview does not show the content: %s", got)
	}

	revised, err := h.tools.Revise(t.Context(), h.agent, a.ID, a.Digest, json.RawMessage(`{"title":"Ledgerly exports faster"}`))
	h.ok(err)
	if revised.Revision != 2 || revised.Digest == a.Digest || revised.ContentSha256[0] == a.ContentSha256[0] {
		t.Errorf("after the edit: revision %d, digest %s", revised.Revision, revised.Digest)
	}
	if _, err := h.tools.Revise(t.Context(), h.agent, a.ID, a.Digest, json.RawMessage(`{"title":"x"}`)); !core.IsKind(err, core.KindPrecondition) {
		t.Errorf("an edit of an old revision: %v", err)
	}
	if _, err := h.tools.Revise(t.Context(), h.agent, a.ID, "", json.RawMessage(`{"titel":"x"}`)); !core.IsKind(err, core.KindInvalid) {
		t.Errorf("an edit that does not fit: %v", err)
	}
}

func TestARunIsAdvancedInTheBackground(t *testing.T) {
	h := newHouse(t, examples(t)...)
	h.connectNotes()
	made, err := h.tools.CreateRun(t.Context(), h.agent, run.Create{Goal: "It is out"})
	h.ok(err)
	if made.Status != core.RunStatusCreated || made.Operator != "announcer" {
		t.Fatalf("made %+v", made)
	}
	h.ok(h.tools.Advance(t.Context(), ws, made.ID))
	r, err := h.runs.Get(t.Context(), h.agent, made.ID)
	h.ok(err)
	if r.Status != core.RunStatusAwaitingApproval || len(r.ActionIds) != 1 {
		t.Fatalf("run = %+v", r)
	}
	a, err := h.approval.Get(t.Context(), h.agent, r.ActionIds[0])
	h.ok(err)
	if a.CreatedBy.ID != h.agent.ID { // else who opened the run could approve it
		t.Errorf("proposed by %+v", a.CreatedBy)
	}
	h.ok(h.tools.Advance(t.Context(), ws, made.ID)) // a second wake-up changes nothing
	if again, err := h.runs.Get(t.Context(), h.agent, made.ID); err != nil || len(again.ActionIds) != 1 {
		t.Errorf("again %+v, %v", again, err)
	}
}

func TestARunWhoseToolFailsIsFailedWithTheReason(t *testing.T) {
	h := newHouse(t, self(t, "evil", "fx_*"), steady(t))
	out := h.works("fx_draft", map[string]string{"text": "x"}, nil)
	r, err := h.runs.Get(t.Context(), h.agent, out.RunID)
	h.ok(err)
	if r.Status != core.RunStatusCompleted {
		t.Errorf("a run without actions is %s", r.Status)
	}
	made, err := h.runs.Create(t.Context(), h.agent, run.Create{Goal: "x", Tool: "fx_bad", Args: json.RawMessage(`{}`)})
	h.ok(err)
	if err := h.tools.Advance(t.Context(), ws, made.ID); err == nil {
		t.Fatal("no error")
	}
	if r, err := h.runs.Get(t.Context(), h.agent, made.ID); err != nil || r.Status != core.RunStatusFailed || !strings.Contains(r.StatusReason, "output schema") {
		t.Errorf("run = %+v, %v", r, err)
	}
}

// While callers call without pause, the plugin is replaced again and again: no call fails.
func TestNoCallFailsDuringASwap(t *testing.T) {
	h := newHouse(t, steady(t))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var calls, failed atomic.Int64
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				calls.Add(1)
				if _, err := h.tools.Call(t.Context(), h.agent, tool.Request{Tool: "fx_echo", Args: json.RawMessage(`{"text":"x"}`)}); err != nil {
					failed.Add(1)
					t.Errorf("call: %v", err)
				}
			}
		})
	}
	pids := map[int]bool{}
	for range 4 {
		h.ok(h.sup.Reload(t.Context(), "steady"))
		pids[*h.plugin("steady").Pid] = true
	}
	stop()
	wg.Wait()
	if len(pids) != 4 || calls.Load() < 20 {
		t.Errorf("%d processes, %d calls", len(pids), calls.Load())
	}
	h.sup.Stop()
	for pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is left over", pid)
		}
	}
}

func TestTheCatalogFileIsWatched(t *testing.T) {
	h := newHouse(t, steady(t))
	h.write(steady(t), self(t, "evil", "fx_*"))
	h.eventually("the new plugin is there", func() bool { _, ok := h.registry.Snapshot().Lookup("fx_env"); return ok })
	h.works("fx_env", map[string]any{}, nil)
	h.write(steady(t))
	h.eventually("it is gone again", func() bool { _, ok := h.registry.Snapshot().Lookup("fx_env"); return !ok })
	h.stillThere()
	h.ok(os.WriteFile(h.catalog, []byte(`{"plugins": [`), 0o600))
	if err := h.sup.Reload(t.Context(), ""); err == nil {
		t.Error("a broken catalog was taken")
	}
	h.stillThere()
}

// A host that is killed takes its plugins with it.
func TestPluginsDieWithTheHost(t *testing.T) {
	if os.Getenv("SALLYPORT_TEST_VICTIM") != "" {
		h := newHouse(t, steady(t))
		fmt.Printf("\npid %d\n", *h.plugin("steady").Pid)
		select {}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestPluginsDieWithTheHost$")
	cmd.Env = append(os.Environ(), "SALLYPORT_TEST_VICTIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(rest)
		}
	}
	if pid == 0 {
		t.Fatal("the host named no plugin")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h := &house{T: t}
	h.eventually("the plugin is gone", func() bool { return !alive(pid) })
}

// alive reports whether a process runs; one that waits to be collected does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	return !strings.Contains(string(b), ") Z ")
}

// The plugins of this repository load as `make run` installs them.
func TestPluginsOfThisRepositoryLoad(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "sallyport-plugins")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/sallyport-plugins").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := InTreeCatalog(binary)
	if err != nil {
		t.Fatal(err)
	}
	off := false
	entries[0].Enabled = &off
	merged := MergeInTree([]schemas.CatalogEntry{entries[0], steady(t)}, entries)
	if len(merged) != len(entries)+1 || merged[1].Enabled == nil || *merged[1].Enabled {
		t.Fatalf("an owner's choice is lost: %+v", merged[:2])
	}
	entries[0].Enabled = nil
	h := newHouse(t, entries...)
	for _, p := range h.sup.List() {
		if p.Status != core.PluginStatusRunning {
			t.Errorf("%s: %s", p.Name, p.StatusReason)
		}
	}
	for _, e := range h.registry.Snapshot().Visible() {
		if e.Doc.Effect == schemas.EffectWrite {
			t.Errorf("tools/list shows the write tool %s", e.Doc.Name)
		}
	}
	if got := h.registry.Snapshot().WriteTools("smtp"); len(got) != 1 || got[0] != "smtp_send" {
		t.Errorf("write tools of smtp: %v", got)
	}
}

// A connector in its own process reads a real server through the host, which signs, and
// what was read becomes evidence.
func TestAReadGoesThroughTheHost(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[{"title":"first note"}]`)
	}))
	defer server.Close()
	reachable = []string{server.Listener.Addr().String()}
	defer func() { reachable = nil }()
	h := newHouse(t, examples(t)...)
	owner := core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", Label: "o@example.com", WorkspaceID: ws, Role: core.UserRoleOwner, Scopes: core.Scopes(), AuthTime: core.SystemClock{}.Now()}
	if _, err := h.call("notes_list", map[string]any{}); err == nil || err.Code != "connector_not_connected" {
		t.Errorf("before connecting: %v", err)
	}
	_, err := h.conns.Put(t.Context(), owner, "notes", connector.Credentials{Fields: map[string]string{"url": server.URL, "token": "s3cr3t-token"}})
	h.ok(err)
	made, err := h.runs.Create(t.Context(), h.agent, run.Create{Goal: "x"})
	h.ok(err)
	out, err := h.tools.Call(t.Context(), h.agent, tool.Request{Tool: "notes_list", Args: json.RawMessage(`{"limit":3}`), RunID: made.ID})
	h.ok(err)
	var answer struct {
		Notes      []struct{ Title string }
		EvidenceID string
	}
	h.ok(json.Unmarshal(out.Structured, &answer))
	if len(asked) != 1 || asked[0] != "GET /notes?limit=3 Bearer s3cr3t-token" || len(answer.Notes) != 1 {
		t.Fatalf("asked %v, answer %s", asked, out.Structured)
	}
	e, err := h.runs.Evidence(t.Context(), h.agent, answer.EvidenceID)
	h.ok(err)
	if e.RunID != made.ID || e.Trust != core.EvidenceTrustObserved || e.Kind != core.EvidenceKindConnector || strings.Contains(fmt.Sprint(e), "s3cr3t") {
		t.Errorf("evidence %+v", e)
	}
}
