package effect

import (
	"encoding/json"
	"strings"
	"testing"
)

func draw(t *testing.T, s Sealed, ep []Endpoint, c Connection) (map[string]any, Resolved) {
	t.Helper()
	r, err := Resolve(s, ep, c)
	if err != nil {
		t.Fatal(err)
	}
	return Preview(s, *r), *r
}

func mailEffect(message string) (Sealed, []Endpoint, Connection) {
	return Sealed{Kind: "email.send", Explanation: "A birthday card for grandma.", Target: Target{Label: "Team mail"}, Steps: []Step{{Endpoint: "m", Mail: &MailStep{"news@acme.example", []string{"ada@example.org"}, []byte(message)}}}},
		[]Endpoint{{ID: "m", Class: "write", Transport: "smtp", Host: "$connection", Signers: []string{"smtp_auth"}}}, Connection{Account: "news@acme.example", BaseURL: "mail.example:587"}
}

// A plugin that says one thing and seals another: the preview shows what would be sent.
func TestPreviewShowsTheBytesNotTheWords(t *testing.T) {
	p, r := draw3(t, "To: <ada@example.org>\r\nSubject: =?utf-8?q?Buy_now_=E2=82=AC?=\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"+
		"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSend money=20to Eve\r\n"+
		"--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+RXZlPC9iPg==\r\n--b--\r\n")
	step := p["steps"].([]map[string]any)[0]
	if step["subject"] != "Buy now €" || !strings.Contains(step["text"].(string), "Send money to Eve") || !strings.Contains(step["html"].(string), "<b>Eve</b>") {
		t.Errorf("step %v", step)
	}
	if p["unverifiedExplanation"] != "A birthday card for grandma." || len(p["warnings"].([]string)) != 0 {
		t.Errorf("%v %v", p["unverifiedExplanation"], p["warnings"])
	}
	if !strings.Contains(step["message"].(string), "PGI+RXZlPC9iPg==") || step["messageEncoding"] != "utf-8" {
		t.Error("the exact bytes are missing")
	}
	title := Title(Sealed{Explanation: "grandma"}, r)
	if title != "E-mail “Buy now €” to ada@example.org from news@acme.example" {
		t.Errorf("title %q", title)
	}
}

func draw3(t *testing.T, message string) (map[string]any, Resolved) {
	s, ep, c := mailEffect(message)
	return draw(t, s, ep, c)
}

func TestPreviewWarns(t *testing.T) {
	for message, want := range map[string]string{
		"To: someone@else.example\r\nSubject: x\r\n\r\nhi\r\n":                                          "ada@example.org receives the message but stands in neither To nor Cc",
		"To: ada@example.org\r\nSubject: x\r\n\r\nhi \u202Etxt.exe\r\n":                                 "cannot be seen",
		"To: ada@example.org\r\nSubject: \u0430cme\r\n\r\nhi\r\n":                                       "look alike",
		"To: ada@example.org\r\nSubject: x\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n":            "not shown decoded",
		"To: ada@example.org\r\nSubject: x\r\nContent-Type: text/plain; charset=utf-7\r\n\r\n+ADw-\r\n": "not shown decoded",
		"To: ada@example.org\r\nSubject: x\r\nContent-Transfer-Encoding: base64\r\n\r\n***\r\n":         "cannot be decoded",
	} {
		p, _ := draw3(t, message)
		if got := strings.Join(p["warnings"].([]string), " "); !strings.Contains(got, want) {
			t.Errorf("%q: warnings %q, want %q", message, got, want)
		}
	}
	s, ep, c := mailEffect("To: ada@example.org\r\nSubject: x\r\n\r\nhi\r\n")
	c.TLS = "none"
	if p, _ := draw(t, s, ep, c); !strings.Contains(strings.Join(p["warnings"].([]string), " "), "not encrypted") {
		t.Error("no warning about plain mail")
	}
}

func TestExactBytesAreAlwaysThere(t *testing.T) {
	ep := []Endpoint{{ID: "hook", Class: "write", Transport: "http", Host: "$connection", Method: "POST", Path: "$connection", Signers: []string{"standard_webhooks"}}}
	for body, want := range map[string]string{"{}": "utf-8", "a\u200bb": "escaped", "\xff\xfe": "base64", "": "utf-8"} {
		p, r := draw(t, Sealed{Kind: "webhook.post", Target: Target{Label: "Hook"}, Money: &Money{12_500_000, "EUR"}, Steps: []Step{{Endpoint: "hook", HTTP: &HTTPStep{Body: []byte(body)}}}}, ep, Connection{BaseURL: "https://h.example/in", Account: "Hook"})
		step := p["steps"].([]map[string]any)[0]
		if step["bodyEncoding"] != want || step["bodyBytes"] != len(body) {
			t.Errorf("%q: %v", body, step)
		}
		if want == "escaped" && (step["body"] != `a\u{200B}b` || step["bodyBase64"] == nil) {
			t.Errorf("hidden character: %v", step)
		}
		if got := Title(Sealed{Money: &Money{12_500_000, "EUR"}}, r); !strings.Contains(got, "h.example/in as Hook, for at most 12.50 EUR") {
			t.Errorf("title %q", got)
		}
		if raw, err := json.Marshal(p); err != nil || !strings.Contains(string(raw), "12.50 EUR") || !strings.Contains(string(raw), "webhook-signature") {
			t.Errorf("%s, %v", raw, err)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":  "plain\ttext\n",
		"a\u202Eb":       `a\u{202E}b`,
		"\u200b\ufeff":   `\u{200B}\u{FEFF}`,
		"\x1b[31m":       `\u{001B}[31m`,
		"\U000E0041tag":  `\u{E0041}tag`,
		"👩‍💻 ❤️ ok":      "👩‍💻 ❤️ ok",
		"\u2066x\u2069":  `\u{2066}x\u{2069}`,
		"ac\u200dme":     `ac\u{200D}me`,
		"soft\u00adhyph": `soft\u{00AD}hyph`,
	} {
		if got := Visible(in); got != want || HasHidden(in) != (in != want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := MixedScripts("acme раураl Привет pаypal 123"); len(got) != 2 {
		t.Errorf("mixed %v", got)
	}
	if got := (Money{1_000_001, "EUR"}).String(); got != "1.000001 EUR" {
		t.Errorf("money %s", got)
	}
}
