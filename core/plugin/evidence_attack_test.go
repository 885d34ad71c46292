package plugin

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// A true quote must not carry a made-up value, nor the name of another site, through as observed.
func TestATrueQuoteVouchesForNothingElse(t *testing.T) {
	d := newDesk()
	id, release := d.issue(t.Context(), &tool.Scope{})
	defer release()
	mine, _, done, err := d.use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	mine.keep("ev_1", []byte(`<p>We have 12 users.</p>`), "https://acme.example/", "https://www.acme.example/home")
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		e    core.Evidence
		want bool
	}{
		"quote":             {core.Evidence{Quote: text("We have 12 users")}, true},
		"value":             {core.Evidence{Value: 12}, true},
		"both":              {core.Evidence{Quote: text("12 users"), Value: 12, URL: text("https://acme.example/"), Source: "https://www.acme.example/home"}, true},
		"source is a name":  {core.Evidence{Quote: text("12 users"), Source: "acme.example", Locator: "p[0]"}, true},
		"nothing":           {core.Evidence{}, false},
		"made-up quote":     {core.Evidence{Quote: text("We have 12000 users")}, false},
		"made-up value":     {core.Evidence{Quote: text("We have 12 users"), Value: 12000}, false},
		"address of others": {core.Evidence{Quote: text("We have 12 users"), URL: text("https://news.example/acme")}, false},
		"source of others":  {core.Evidence{Quote: text("We have 12 users"), Source: "https://news.example/acme"}, false},
		"broken address":    {core.Evidence{Quote: text("We have 12 users"), Source: " https://news.example/acme"}, false},
		"place of others":   {core.Evidence{Quote: text("We have 12 users"), Locator: "HTTPS://news.example/acme"}, false},
	} {
		if got := mine.vouches("ev_1", c.e); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if mine.vouches("ev_2", core.Evidence{Quote: text("We have 12 users")}) {
		t.Error("a fetch that never was vouches")
	}
}

// A connector speaks for the provider whose name it has: the owner named the plugin in
// the catalog, and with it the credential that it may use.
func TestAConnectorSpeaksForItsOwnProvider(t *testing.T) {
	for provider, ok := range map[string]bool{"pp": true, "google_ads": false} {
		raw := manifestWith(t, func(m map[string]any) {
			m["kind"], m["connector"] = "connector", map[string]any{"provider": provider, "capability": "write"}
		})
		_, err := admit(raw, schemas.CatalogEntry{Name: "pp", Allow: schemas.Allow{Tools: []string{"p_*"}}})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "google_ads") {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// A ticket is worth nothing at another process, after its call, or once its process is gone.
func TestTicketsOfOthers(t *testing.T) {
	a, b := newDesk(), newDesk()
	id, release := a.issue(t.Context(), &tool.Scope{})
	if _, _, _, err := b.use(t.Context(), id); err == nil {
		t.Error("a ticket of another process was taken")
	}
	_, ctx, done, err := a.use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if ctx.Err() == nil {
		t.Error("a finished request goes on")
	}
	release()
	if _, _, _, err := a.use(t.Context(), id); err == nil {
		t.Error("a ticket was taken after its call")
	}
	other, _ := a.issue(t.Context(), &tool.Scope{})
	a.close()
	if _, _, _, err := a.use(t.Context(), other); err == nil {
		t.Error("a ticket was taken after its process")
	}
	if late, _ := a.issue(t.Context(), &tool.Scope{}); late != "" {
		t.Error("a dead process got a ticket")
	}
	if _, _, _, err := a.use(t.Context(), ""); err == nil {
		t.Error("no ticket was taken as one")
	}
}
