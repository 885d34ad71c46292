package rest

import (
	"strings"
	"testing"
)

// Only what was really shown can be approved without naming it: not a reply without a
// body, and not one page of several.
func TestWhatWasNotShownIsNotSeen(t *testing.T) {
	s := newStack(t)
	owner, run := s.owner(), s.drafted()
	for _, look := range [][2]string{{"HEAD", "/api/runs/" + run.ID}, {"HEAD", "/api/actions?runId=" + run.ID}, {"HEAD", "/api/actions/" + run.ActionIds[0]}, {"GET", "/api/actions?limit=1&runId=" + run.ID}} {
		s.call(look[0], look[1], owner, "").want(200)
		s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "").problem(428, "not_seen")
		s.call("POST", "/api/actions/"+run.ActionIds[0]+"/approve", owner, "").problem(428, "not_seen")
	}
	s.call("GET", "/api/actions?limit=2&runId="+run.ID, owner, "").want(200)
	s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "").want(200)
}

// A condition that names nothing is no condition that holds.
func TestEmptyTagIsNotNoTag(t *testing.T) {
	s := newStack(t)
	owner, run := s.owner(), s.drafted()
	s.call("GET", "/api/runs/"+run.ID, owner, "").want(200)
	for _, tag := range []string{`""`, `"."`, `".0123456789ab"`} {
		s.call("POST", "/api/runs/"+run.ID+"/approve", owner, "", "If-Match", tag).problem(400, "malformed_if_match")
	}
	if len(s.queue.ids) != 0 {
		t.Error("something was approved")
	}
}

// The answer to a decision on one content is not the answer to a decision on another.
func TestReplayTellsConditionsApart(t *testing.T) {
	s := newStack(t)
	owner, run := s.owner(), s.drafted()
	path := "/api/runs/" + run.ID + "/approve"
	s.call("POST", path, owner, "", "Idempotency-Key", "k", "If-Match", `"`+strings.Repeat("0", 64)+`"`).problem(412, "digest_mismatch")
	s.call("POST", path, owner, "", "Idempotency-Key", "k", "If-Match", `"`+run.PackDigest+`"`).problem(422, "idempotency_key_reused")
	s.call("POST", path, owner, "", "Idempotency-Key", "l", "If-Match", `"`+run.PackDigest+`"`).want(200)
	s.call("POST", path, owner, "", "Idempotency-Key", "l", "If-Match", `"`+strings.Repeat("0", 64)+`"`).problem(422, "idempotency_key_reused")
}
