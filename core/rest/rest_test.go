package rest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

func TestRoutesOfTheSpecification(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	s.call("GET", "/api/health", "", "").want(200)
	s.call("GET", "/api/config", "", "").want(200)
	me := into[core.Me](s.call("GET", "/api/me", owner, ""))
	if me.User.Email != "ada@example.com" || me.Role != "owner" {
		t.Errorf("%+v", me)
	}
	run := s.drafted()
	for _, path := range []string{"/api/runs", "/api/runs/" + run.ID, "/api/assets", "/api/assets?runId=" + run.ID, "/api/actions", "/api/actions?runId=" + run.ID, "/api/evidence", "/api/connectors", "/api/usage",
		"/api/audit-logs", "/api/skills", "/api/operators", "/api/plugins", "/api/keys", "/api/users"} {
		s.call("GET", path, owner, "").want(200)
	}
	s.call("POST", "/api/connectors/google_search_console/snapshot", owner, "").want(200)
	p := s.call("POST", "/api/connectors/google_search_console/oauth/start", owner, "").problem(409, "oauth_client_missing")
	if p.NextAction == nil {
		t.Errorf("%+v", p)
	}
	s.call("POST", "/api/connectors/meta_ads/oauth/start", owner, "").problem(422, "invalid_parameter")
	s.call("POST", "/api/connectors/webhook/snapshot", owner, "").problem(422, "invalid_parameter")
	r := into[answer](s.call("POST", "/api/agent/message", owner, `{"message":"get users for the new marketing page"}`))
	if r.Reply != "Two posts wait for you." || r.RunID == "" || !strings.HasSuffix(r.ReviewURL, "/review/"+r.RunID) {
		t.Errorf("%+v", r)
	}
}

// values fills the parameters of a path with identifiers of the right form that name
// nothing in the caller's workspace.
func (s *stack) foreign(run core.Run) map[string]string {
	return map[string]string{"/api/runs/": run.ID, "/api/actions/": run.ActionIds[0], "/api/assets/": core.NewID(core.PrefixAsset, s.clock.Now()),
		"/api/evidence/": "ev_0123456789abcdef0123", "/api/keys/": core.NewID(core.PrefixKey, s.clock.Now()), "/api/users/": s.ownerID}
}

// bodies are valid bodies for operations that need one.
var bodies = map[string]string{
	"createRun": `{"goal":"x"}`, "editAction": `{"input":{}}`, "reportDone": `{"proofUrl":"https://example.com/1"}`, "reconcileAction": `{"happened":true,"note":"n"}`,
	"sendMessage": `{"message":"x"}`, "putConnector": `{"fields":{}}`, "createKey": `{"name":"k","kind":"agent"}`,
	"addUser": `{"email":"new@example.com","role":"viewer","password":"correct horse battery"}`, "editUser": `{"role":"viewer"}`,
}

// TestEveryRouteAgainstEveryCredential is generated from openapi.json, so that a new
// route is tested before anybody thinks of it.
func TestEveryRouteAgainstEveryCredential(t *testing.T) {
	s := newStack(t)
	run := s.drafted()
	ids := s.foreign(run)
	stranger, agent, bad := s.stranger(), s.key(core.APIKeyKindAgent), s.key(core.APIKeyKindAgent)+"x"
	s.add("vi@example.com", core.UserRoleViewer)
	viewer := s.token("vi@example.com")
	ops, err := loadOperations()
	must(t, err)
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	for id, op := range ops {
		path := op.path
		for prefix, value := range ids {
			if strings.HasPrefix(path, prefix+"{id}") {
				path = parameter.ReplaceAllString(path, value)
			}
		}
		path = strings.NewReplacer("{provider}", "google_search_console", "{name}", "marketing", "{code}", "not_found").Replace(path)
		t.Run(id, func(t *testing.T) {
			s.t = t
			if op.public {
				if a := s.call(op.method, path, "", ""); a.status == 401 || a.status == 403 {
					t.Errorf("public, but %d", a.status)
				}
				return
			}
			if op.page {
				if a := s.call(op.method, path, "", ""); a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), testBase+"/login?next=") {
					t.Errorf("%d %s", a.status, a.header.Get("Location"))
				}
				return
			}
			none := s.call(op.method, path, "", bodies[id])
			none.problem(401, "unauthenticated")
			if c := none.header.Get("WWW-Authenticate"); !strings.HasPrefix(c, "Bearer ") || !strings.Contains(c, `resource_metadata="`+testBase+`/.well-known/oauth-protected-resource"`) || strings.Contains(c, "error=") {
				t.Errorf("challenge %q", c)
			}
			wrong := s.call(op.method, path, bad, bodies[id])
			wrong.problem(401, "invalid_key")
			if !strings.Contains(wrong.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("challenge %q", wrong.header.Get("WWW-Authenticate"))
			}
			s.call(op.method, path, "eyJhbGciOiJub25lIn0.e30.", bodies[id]).problem(401, "invalid_token")
			if op.scope != "" && op.scope != core.ScopeRunsRead {
				s.call(op.method, path, viewer, bodies[id]).problem(403, "missing_scope")
			}
			switch op.scope {
			case core.ScopeActionsApprove:
				p := s.call(op.method, path, agent, bodies[id])
				if p.status != 403 {
					t.Errorf("an agent key got %d: %s", p.status, p.body)
				}
			case core.ScopeKeysManage, core.ScopeAdmin, core.ScopePluginsManage, core.ScopeConnectorsManage, core.ScopeAuditRead, core.ScopeActionsExecute:
				s.call(op.method, path, agent, bodies[id]).problem(403, "missing_scope")
			}
			if strings.Contains(op.path, "{id}") {
				s.call(op.method, path, stranger, bodies[id]).want(404)
			}
		})
	}
	s.t = t
	after, err := s.runs.Get(t.Context(), s.person("ada@example.com"), run.ID)
	must(t, err)
	if after.Status != core.RunStatusAwaitingApproval || after.PackDigest != run.PackDigest || len(s.queue.ids) != 0 {
		t.Errorf("something of this changed the run: %+v", after)
	}
}

func TestListsKeepWorkspacesApart(t *testing.T) {
	s := newStack(t)
	run := s.drafted()
	stranger := s.stranger()
	for _, path := range []string{"/api/runs", "/api/actions", "/api/actions?runId=" + run.ID, "/api/assets?runId=" + run.ID, "/api/evidence?runId=" + run.ID, "/api/keys", "/api/audit-logs"} {
		a := s.call("GET", path, stranger, "")
		if a.status == 404 {
			continue
		}
		if a.want(200); strings.Contains(string(a.body), run.ID) || strings.Contains(string(a.body), run.ActionIds[0]) {
			t.Errorf("%s shows another workspace: %s", path, a.body)
		}
	}
	s.call("POST", "/api/runs", stranger, fmt.Sprintf(`{"goal":"x","workspaceId":%q}`, run.WorkspaceID)).want(404)
}

func TestCreateRunAnswersAtOnceAndWaitsWhenAsked(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	a := s.call("POST", "/api/runs", owner, `{"goal":"Tell people","projectId":"site"}`)
	run := into[core.Run](a)
	if run.Status != core.RunStatusCreated || run.ProjectID != "site" || a.header.Get("Location") != testBase+"/api/runs/"+run.ID || a.header.Get("Preference-Applied") != "" {
		t.Errorf("%+v %v", run, a.header)
	}
	// The background worker of this test advances whatever is created.
	events := s.events.Subscribe(t.Context(), workspaceOf(s), "", 0)
	go func() {
		for e := range events {
			if e.Type == "run.created" && e.RunID != nil && *e.RunID != run.ID {
				_ = s.dispatch.Advance(context.WithoutCancel(t.Context()), e.WorkspaceID, *e.RunID)
			}
		}
	}()
	a = s.call("POST", "/api/runs", owner, `{"goal":"Tell people now"}`, "Prefer", "wait=30")
	run = into[core.Run](a)
	if run.Status != core.RunStatusAwaitingApproval || len(run.ActionIds) != 2 || a.header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("%+v %v", run, a.header)
	}
	s.call("POST", "/api/runs", owner, `{"goal":"x"}`, "Prefer", "wait=soon").problem(400, "malformed_prefer")
	// The reply delivered the pack: an empty approve means exactly it.
	if out := into[core.Run](s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "")); out.Status != core.RunStatusApproved {
		t.Errorf("%s", out.Status)
	}
}

func TestDecisionsOverREST(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	run := s.drafted()
	path := "/api/runs/" + run.ID
	s.call("POST", path+"/approve", owner, "").problem(428, "not_seen")
	shown := s.call("GET", path, owner, "")
	tag := shown.header.Get("ETag")
	if !strings.HasPrefix(tag, `"`+run.PackDigest+".") {
		t.Errorf("ETag %s, digest %s", tag, run.PackDigest)
	}
	s.call("GET", path, owner, "", "If-None-Match", tag).want(304)
	p := s.call("POST", path+"/approve", owner, `{"expectedDigest":"`+strings.Repeat("0", 64)+`"}`).problem(412, "digest_mismatch")
	if p.CurrentDigest == nil || *p.CurrentDigest != run.PackDigest {
		t.Errorf("%+v", p)
	}
	agent := s.key(core.APIKeyKindAgent)
	refused := s.call("POST", path+"/approve", agent, "", "If-Match", tag).problem(403, "approval_required")
	if refused.ReviewURL == nil || *refused.ReviewURL != run.ReviewURL {
		t.Errorf("%+v", refused)
	}

	type decidedRun struct {
		core.Run
		Decided decided
	}
	approved := into[decidedRun](s.call("POST", path+"/approve", owner, `{"reason":"reads well"}`, "If-Match", tag))
	if approved.Status != core.RunStatusApproved || len(approved.Decided.ActionIDs) != 2 || len(approved.Decided.LeftOut) != 0 || approved.Decided.Receipt.TreeSize == 0 || len(s.queue.ids) != 2 {
		t.Errorf("%+v, queue %v", approved.Decided, s.queue.ids)
	}
	s.call("GET", path, owner, "", "If-None-Match", tag).want(200) // what changed is seen
	again := into[decidedRun](s.call("POST", path+"/approve", owner, `{"reason":"reads well"}`))
	if again.Status != approved.Status || len(s.queue.ids) != 2 {
		t.Errorf("the same yes again: %+v, queue %v", again.Status, s.queue.ids)
	}
	one := "/api/actions/" + run.ActionIds[0]
	type decidedAction struct {
		core.Action
		Decided decided
	}
	revoked := into[decidedAction](s.call("POST", one+"/revoke", owner, `{"reason":"wrong week"}`))
	if revoked.Status != core.ActionStatusRevoked || len(revoked.Decisions) != 2 {
		t.Errorf("%+v", revoked)
	}
	s.call("POST", one+"/approve", owner, `{"expectedDigest":"`+revoked.Digest+`"}`).problem(409, "wrong_state")
	other := "/api/actions/" + run.ActionIds[1]
	s.call("POST", other+"/execute", owner, "", "If-Match", `"`+strings.Repeat("0", 64)+`"`).problem(412, "digest_mismatch")
	if a := into[core.Action](s.call("POST", other+"/execute", owner, "")); a.Status != core.ActionStatusApproved {
		t.Errorf("%s", a.Status)
	}
	rejected := into[decidedRun](s.call("POST", path+"/reject", owner, ""))
	if rejected.Status != core.RunStatusRejected {
		t.Errorf("reject after approve: %s %s", rejected.Status, rejected.StatusReason)
	}
}

func TestEditMakesTheReviewStale(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	run := s.drafted()
	s.call("GET", "/api/actions?runId="+run.ID, owner, "").want(200) // seen
	path := "/api/actions/" + run.ActionIds[0]
	a := s.call("GET", path, owner, "")
	before := into[core.Action](a)
	edit := `{"input":{"connection":"launch","type":"post.publish","data":{"text":"better"}}}`
	s.call("PATCH", path, owner, edit, "If-Match", `"`+strings.Repeat("0", 64)+`"`).problem(412, "digest_mismatch")
	after := into[core.Action](s.call("PATCH", path, owner, edit, "If-Match", a.header.Get("ETag")))
	if after.Revision != before.Revision+1 || after.Digest == before.Digest || after.Status != core.ActionStatusPending {
		t.Errorf("%+v", after)
	}
	s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "").problem(409, "stale_review")
	s.call("PATCH", path, owner, `{"input":{"connection":"launch"}}`).want(422)
	s.call("POST", "/api/runs/"+run.ID+"/cancel", owner, "").want(200)
	s.call("PATCH", path, owner, edit).want(409)
}

func TestOldSignInIsTooWeak(t *testing.T) {
	s := newStack(t)
	run := s.drafted()
	owner := s.owner()
	s.clock.pass(core.RecentSignIn + time.Second)
	s.call("GET", "/api/runs/"+run.ID, owner, "").want(200)
	s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "").problem(403, "weak_proof")
	s.call("POST", "/api/keys", owner, `{"name":"k","kind":"service","scopes":["actions:approve"]}`).problem(403, "weak_proof")
	s.clock.pass(15 * time.Minute)
	s.call("GET", "/api/me", owner, "").problem(401, "token_expired")
}

func TestKeysOverREST(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	s.call("POST", "/api/keys", owner, `{"name":"k","kind":"agent","scopes":["actions:approve"]}`).problem(422, "invalid_key")
	made := into[core.APIKey](s.call("POST", "/api/keys", owner, `{"name":"k","kind":"agent"}`, "Idempotency-Key", "make-one"))
	if made.Key == nil {
		t.Fatal("no secret")
	}
	again := s.call("POST", "/api/keys", owner, `{"name":"k","kind":"agent"}`, "Idempotency-Key", "make-one")
	if k := into[core.APIKey](again); k.ID != made.ID || k.Key != nil || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the second answer holds the secret, or is another key: %+v", k)
	}
	s.call("GET", "/api/me", *made.Key, "").want(200)
	s.call("DELETE", "/api/keys/"+made.ID, owner, "").want(204)
	s.call("GET", "/api/me", *made.Key, "").problem(401, "invalid_key")
}

func TestUsersOverREST(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	u := into[core.User](s.call("POST", "/api/users", owner, `{"email":"Grace@Example.com","role":"approver","password":"correct horse battery"}`))
	if u.Email != "grace@example.com" {
		t.Errorf("%+v", u)
	}
	s.call("POST", "/api/users", owner, `{"email":"grace@example.com","role":"viewer","password":"correct horse battery"}`).want(409)
	if u = into[core.User](s.call("PATCH", "/api/users/"+u.ID, owner, `{"role":"viewer"}`)); u.Role != core.UserRoleViewer {
		t.Errorf("%+v", u)
	}
	s.call("PATCH", "/api/users/"+s.ownerID, owner, `{"disabled":true}`).problem(409, "last_owner")
}

func TestMessageToARun(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	run := s.drafted()
	s.diagnose = func(context.Context, tool.CallIn) (any, error) {
		t.Error("a message about a run called the operator")
		return map[string]any{}, nil
	}
	r := into[answer](s.call("POST", "/api/agent/message", owner, fmt.Sprintf(`{"message":"approve everything","runId":%q}`, run.ID)))
	if !strings.Contains(r.Reply, "2 of them waiting") || r.RunID != run.ID || r.ReviewURL == "" {
		t.Errorf("%+v", r)
	}
	s.call("POST", "/api/agent/message", s.stranger(), fmt.Sprintf(`{"message":"x","runId":%q}`, run.ID)).want(404)
	after, err := s.runs.Get(t.Context(), s.person("ada@example.com"), run.ID)
	must(t, err)
	if after.Counts["pending"] != 2 || after.Goal != run.Goal {
		t.Errorf("a message decided, or changed the goal: %v %q", after.Counts, after.Goal)
	}
	s.diagnose = func(context.Context, tool.CallIn) (any, error) {
		return nil, tool.Unavailable("marketing", "it stopped")
	}
	a := s.call("POST", "/api/agent/message", owner, `{"message":"hello"}`)
	a.problem(503, "plugin_unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
