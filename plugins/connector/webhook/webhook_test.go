package webhook

import (
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func TestBodyIsExact(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithConnections(sdk.Connection{Provider: "webhook", Name: "launch", Status: "connected", Account: "https://hooks.example.com/l"}))
	for data, want := range map[any]string{"a \"b\" é <&>": `{"type":"post.publish","data":"a \"b\" é \u003c\u0026\u003e"}`, 12345678: `{"type":"post.publish","data":12345678}`, nil: `{"type":"post.publish","data":null}`} {
		r := h.Call("webhook_post", map[string]any{"connection": "launch", "type": "post.publish", "data": data})
		if r.Failure != nil {
			t.Fatal(r.Failure)
		}
		if got := string(r.Sealed.Steps[0].HTTP.Body); got != want {
			t.Errorf("body %s, want %s", got, want)
		}
		if r.Sealed.Connection != "launch" || r.Sealed.Target.Label != "launch (https://hooks.example.com/l)" {
			t.Errorf("%+v", r.Sealed)
		}
	}
}

func TestBadInput(t *testing.T) {
	h := sdktest.New(t, Plugin())
	for _, in := range []map[string]any{
		{"connection": "launch", "type": "x y", "data": 1}, {"connection": "../x", "type": "a", "data": 1}, {"type": "a", "data": 1}, {"connection": "l", "type": "a"},
		{"connection": "l", "type": "a", "data": 1, "url": "https://evil.example"},
	} {
		if r := h.Call("webhook_post", in); r.Failure == nil || r.Failure.Code != "invalid_input" {
			t.Errorf("%v: %+v", in, r.Failure)
		}
	}
}
