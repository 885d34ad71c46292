package egress

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the signers, as manifests write them.
const (
	SignBearer           = "bearer"
	SignBasic            = "basic"
	SignHeader           = "header"
	SignSecretURL        = "secret_url"
	SignStandardWebhooks = "standard_webhooks"
	SignSMTPAuth         = "smtp_auth"
)

// Credential is what signers work with. It never prints: every formatter, JSON and the
// log show "[secret]".
type Credential struct {
	open   map[string]string
	secret map[string]string
}

// NewCredential holds the open fields of a connection and its secret ones. Signers look
// for token (bearer), username and password (basic, smtp_auth), header and token
// (header), url (secret_url) and secret (standard_webhooks).
func NewCredential(open, secret map[string]string) Credential {
	return Credential{open: open, secret: secret}
}

// IsZero reports whether nothing is held.
func (c Credential) IsZero() bool { return len(c.open) == 0 && len(c.secret) == 0 }

// Setting is an open field.
func (c Credential) Setting(key string) string { return c.open[key] }

func (c Credential) get(key string) string {
	if v, ok := c.secret[key]; ok {
		return v
	}
	return c.open[key]
}

// String hides the credential.
func (Credential) String() string { return "[secret]" }

// GoString hides the credential.
func (Credential) GoString() string { return "[secret]" }

// Format hides the credential for every verb.
func (Credential) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// MarshalJSON hides the credential.
func (Credential) MarshalJSON() ([]byte, error) { return []byte(`"[secret]"`), nil }

// LogValue hides the credential.
func (Credential) LogValue() slog.Value { return slog.StringValue("[secret]") }

// secrets are the values that must not come back in a reply.
func (c Credential) secrets() []string {
	var out []string
	for _, v := range c.secret {
		if len(v) >= 6 { // shorter ones would blank half of an innocent reply
			out = append(out, v)
		}
	}
	return out
}

// sign adds what needs a secret or the time of sending. id is the action id, or empty
// for reads.
func sign(req *http.Request, body []byte, signers []string, c Credential, id string, at time.Time) error {
	for _, name := range signers {
		var err error
		switch name {
		case SignBearer:
			err = need(c, "token", func(v string) { req.Header.Set("Authorization", "Bearer "+v) })
		case SignBasic:
			err = need(c, "username", func(v string) { req.SetBasicAuth(v, c.get("password")) })
		case SignHeader:
			if c.get("header") == "" {
				return errors.New("the connection holds no header name")
			}
			err = need(c, "token", func(v string) { req.Header.Set(c.get("header"), v) })
		case SignSecretURL:
			err = signSecretURL(req, c)
		case SignStandardWebhooks:
			err = signWebhook(req, body, c, id, at)
		default:
			err = fmt.Errorf("signer %q does not sign HTTP", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func need(c Credential, key string, use func(string)) error {
	v := c.get(key)
	if v == "" {
		return fmt.Errorf("the connection holds no %s", key)
	}
	use(v)
	return nil
}

// signSecretURL replaces path and query by those of the secret address; scheme and host
// were approved and must not change.
func signSecretURL(req *http.Request, c Credential) error {
	secret, err := url.Parse(c.get("url"))
	if err != nil || secret.Host == "" {
		return errors.New("the connection holds no url")
	}
	if secret.Scheme != req.URL.Scheme || !strings.EqualFold(secret.Host, req.URL.Host) {
		return errors.New("the secret address of the connection is on another host than the approved one")
	}
	req.URL.Path, req.URL.RawPath, req.URL.RawQuery = secret.Path, secret.RawPath, secret.RawQuery
	return nil
}

// signWebhook signs by the Standard Webhooks rules: HMAC-SHA256 over id.timestamp.body.
func signWebhook(req *http.Request, body []byte, c Credential, id string, at time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.get("secret"), "whsec_"))
	if err != nil || len(key) == 0 {
		return errors.New("the connection holds no signing secret of the form whsec_…")
	}
	if id == "" {
		return errors.New("a webhook needs an id")
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", stamp)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// redact blanks every form in which a secret may come back: raw, base64, URL and hex.
func redact(text []byte, secrets []string) []byte {
	if len(secrets) == 0 {
		return text
	}
	var pairs []string
	for _, s := range secrets {
		raw := []byte(s)
		forms := []string{s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
			base64.URLEncoding.EncodeToString(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw))}
		slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
		for _, f := range slices.Compact(forms) {
			pairs = append(pairs, f, "[secret]")
		}
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}
