package rest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/event"
)

func TestWebhooks(t *testing.T) {
	s := newStack(t)
	owner := s.owner()
	body := `{"url":"https://hooks.example.com/events","events":["run.created","action.succeeded"]}`
	first := s.call("POST", "/api/webhooks", owner, body, "Idempotency-Key", "k1")
	made := into[core.WebhookSubscription](first)
	if made.Secret == nil || !strings.HasPrefix(*made.Secret, "whsec_") || made.Disabled || !slices.Equal(made.Events, []string{"run.created", "action.succeeded"}) {
		t.Errorf("%+v", made)
	}
	replayed := into[core.WebhookSubscription](s.call("POST", "/api/webhooks", owner, body, "Idempotency-Key", "k1"))
	if replayed.ID != made.ID || replayed.Secret != nil {
		t.Errorf("a repeated request shows %+v", replayed)
	}
	list := into[struct{ Webhooks []core.WebhookSubscription }](s.call("GET", "/api/webhooks", owner, ""))
	if len(list.Webhooks) != 1 || list.Webhooks[0].ID != made.ID || list.Webhooks[0].Secret != nil {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct{ body, pointer string }{
		{`{"url":"http://hooks.example.com/","events":["run.created"]}`, "/url"},
		{`{"url":"https://hooks.example.com/","events":[]}`, "/events"},
		{`{"url":"https://hooks.example.com/","events":["run.imagined"]}`, "/events/0"},
		{`{"url":"https://hooks.example.com/","events":["run.created"],"secret":"mine"}`, "/secret"},
	} {
		a := s.call("POST", "/api/webhooks", owner, c.body).want(422)
		var p core.Problem
		must(t, json.Unmarshal(a.body, &p))
		if len(p.Errors) == 0 || p.Errors[0].Pointer != c.pointer {
			t.Errorf("%s: %s", c.body, a.body)
		}
	}
	s.call("POST", "/api/webhooks", s.key(core.APIKeyKindAgent), body).problem(403, "missing_scope")
	stranger := s.stranger()
	s.call("DELETE", "/api/webhooks/"+made.ID, stranger, "").problem(404, "not_found")
	s.call("DELETE", "/api/webhooks/"+made.ID, owner, "").want(204)
	s.call("DELETE", "/api/webhooks/"+made.ID, owner, "").problem(404, "not_found")
}

func TestWebhooksOfAnInstallationWithout(t *testing.T) {
	s := newStack(t, func(d *Deps) { d.Hooks = nil })
	s.call("GET", "/api/webhooks", s.owner(), "").problem(503, "webhooks_unavailable")
}

// TestDescribedEventTypes keeps openapi.json and the types of events together.
func TestDescribedEventTypes(t *testing.T) {
	doc := described(t)
	for _, pointer := range []string{"/components/schemas/NewWebhook/properties/events/items/enum", "/components/schemas/WebhookMessage/properties/type/enum"} {
		var got []string
		for _, v := range at(doc, pointer).([]any) {
			got = append(got, v.(string))
		}
		if !slices.Equal(got, event.Types()) {
			t.Errorf("%s: %v, want %v", pointer, got, event.Types())
		}
	}
}
