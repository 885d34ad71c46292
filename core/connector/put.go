package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Limits of audiences.
const (
	maxAudiences = 50
	maxAddresses = 200 // recipients of one run
)

// Credentials is what an owner types to connect. Fields are those the connector's
// manifest names; a field that is left out keeps its value.
type Credentials struct {
	// Name tells several connections of a provider apart; empty where there is only one.
	Name   string            `json:"name,omitempty"`
	Fields map[string]string `json:"fields"`
	// Audiences replaces the lists of recipients; nil keeps them.
	Audiences []Audience `json:"audiences,omitempty"`
}

var connectionName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Put connects a provider or changes its connection. A mail server is tried at once: one
// that cannot be reached or refuses the sign-in is stored with status error and the
// reason. Changing the account or the address makes approvals that rest on it void.
func (s *Service) Put(ctx context.Context, p core.Principal, provider string, c Credentials) (*core.Connector, error) {
	if err := s.mayManage(p); err != nil {
		return nil, err
	}
	m, err := s.manifest(provider)
	if err != nil {
		return nil, err
	}
	if err := checkForm(*m, c); err != nil {
		return nil, err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	row, err := s.DB.ConnectionByName(ctx, ws, provider, c.Name)
	isNew := core.IsKind(err, core.KindNotFound)
	if isNew {
		now := s.Clock.Now()
		row = &store.Connection{ID: core.NewID(core.PrefixConnection, now), WorkspaceID: ws, Provider: provider, Name: c.Name,
			Fields: map[string]string{}, Scopes: []string{}, CreatedBy: p.Actor(), CreatedAt: store.At(now)}
	} else if err != nil {
		return nil, err
	}
	secrets, err := s.secrets(ctx, row)
	if err != nil {
		return nil, err
	}
	if err := merge(*m, row, secrets, c); err != nil {
		return nil, err
	}
	if err := s.settle(ctx, *m, row, secrets); err != nil {
		return nil, err
	}
	if err := s.save(ctx, p, row, secrets, isNew); err != nil {
		return nil, err
	}
	return s.Get(ctx, p, provider)
}

func (s *Service) save(ctx context.Context, p core.Principal, row *store.Connection, secrets map[string]string, isNew bool) error {
	row.UpdatedAt = store.At(s.Clock.Now())
	return s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		saved := *row // the transaction may run twice
		if err := s.seal(ctx, tx, &saved, secrets); err != nil {
			return err
		}
		write := tx.UpdateConnection
		if isNew {
			write = tx.InsertConnection
		}
		if err := write(ctx, &saved); err != nil {
			return err
		}
		return s.record(ctx, tx, p, "connector.connected", &saved)
	})
}

// checkForm checks names, patterns and audiences; each complaint points at its field.
func checkForm(m schemas.Manifest, c Credentials) error {
	var issues []core.FieldError
	add := func(pointer, message string) {
		issues = append(issues, core.FieldError{Pointer: pointer, Message: message})
	}
	known := map[string]schemas.CredentialField{}
	if m.Needs.Credential != nil {
		for _, f := range m.Needs.Credential.Fields {
			known[f.Key] = f
		}
	}
	switch {
	case multiple(m) && !connectionName.MatchString(c.Name):
		add("/name", "names this connection: small letters, digits, - and _")
	case !multiple(m) && c.Name != "":
		add("/name", "is not possible: this provider has one connection")
	}
	for key, value := range c.Fields {
		f, ok := known[key]
		if !ok {
			add("/fields/"+key, "is not a field of this provider")
			continue
		}
		if f.Pattern != nil {
			if re, err := regexp.Compile(*f.Pattern); err != nil || !re.MatchString(value) {
				add("/fields/"+key, "does not look like "+f.Label)
			}
		}
		if strings.ContainsAny(value, "\r\n\x00") || len(value) > 8192 {
			add("/fields/"+key, "must be one line")
		}
	}
	for i, a := range c.Audiences {
		at := "/audiences/" + strconv.Itoa(i)
		if !connectionName.MatchString(a.Name) {
			add(at+"/name", "needs a name: small letters, digits, - and _")
		}
		if strings.TrimSpace(a.LawfulBasis) == "" {
			add(at+"/lawfulBasis", "says why these people may be written to, for example consent")
		}
		if len(a.Addresses) == 0 || len(a.Addresses) > maxAddresses {
			add(at+"/addresses", fmt.Sprintf("takes 1 to %d addresses", maxAddresses))
		}
		for j, address := range a.Addresses {
			if parsed, err := mail.ParseAddress(address); err != nil || parsed.Address != address {
				add(at+"/addresses/"+strconv.Itoa(j), "is not a plain e-mail address")
			}
		}
	}
	if len(c.Audiences) > maxAudiences {
		add("/audiences", fmt.Sprintf("takes at most %d lists", maxAudiences))
	}
	if len(issues) == 0 {
		return nil
	}
	slices.SortFunc(issues, func(a, b core.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &core.Error{Kind: core.KindInvalid, Code: "invalid_credentials", Detail: "The connection was not changed: " + issues[0].Pointer + " " + issues[0].Message + ".", Fields: issues}
}

// merge lays the new fields over the stored ones, open and secret apart.
func merge(m schemas.Manifest, row *store.Connection, secrets map[string]string, c Credentials) error {
	fields := map[string]string{}
	for k, v := range row.Fields {
		fields[k] = v
	}
	var missing []core.FieldError
	if m.Needs.Credential != nil {
		for _, f := range m.Needs.Credential.Fields {
			into := fields
			if f.Secret {
				into = secrets
			}
			if v, given := c.Fields[f.Key]; given {
				into[f.Key] = v
			} else if f.Secret && secrets[f.Key] != "" && moved(m, row, c) {
				missing = append(missing, core.FieldError{Pointer: "/fields/" + f.Key, Message: "is required again: what is stored was entered for another address"})
				continue
			}
			if into[f.Key] == "" && !mayBeEmpty(f) {
				missing = append(missing, core.FieldError{Pointer: "/fields/" + f.Key, Message: "is required"})
			}
		}
	}
	if len(missing) > 0 {
		return &core.Error{Kind: core.KindInvalid, Code: "invalid_credentials", Detail: "The connection was not changed: " + missing[0].Pointer + " " + missing[0].Message + ".", Fields: missing}
	}
	row.Fields = fields
	if c.Audiences != nil {
		row.Audiences = store.JSONOf(c.Audiences)
	}
	return nil
}

// moved reports whether a change sends the stored secret to another address, or there in
// another way: who may change a connection must not learn its secret so. A secret that
// only signs never leaves and stays.
func moved(m schemas.Manifest, row *store.Connection, c Credentials) bool {
	leaves := mode(m) == schemas.ManifestNeedsCredentialModeSmtp
	for _, e := range m.Needs.Endpoints {
		for _, signer := range e.Signers {
			leaves = leaves || string(signer) != egress.SignStandardWebhooks
		}
	}
	for _, key := range []string{"host", "port", "tls", "url", "header"} {
		if v, given := c.Fields[key]; leaves && given && v != row.Fields[key] {
			return true
		}
	}
	return false
}

func mayBeEmpty(f schemas.CredentialField) bool {
	if f.Pattern == nil {
		return false
	}
	ok, err := regexp.MatchString(*f.Pattern, "")
	return err == nil && ok
}

// settle works out address, account and status of a connection.
func (s *Service) settle(ctx context.Context, m schemas.Manifest, row *store.Connection, secrets map[string]string) error {
	f := row.Fields
	row.Status, row.StatusReason = core.ConnectorStatusConnected, "Connected."
	switch mode(m) {
	case schemas.ManifestNeedsCredentialModeSmtp:
		row.Address = net.JoinHostPort(strings.ToLower(f["host"]), f["port"])
		row.Account = f["username"]
		if row.Account == "" {
			row.Account = f["from"]
		}
		if err := s.Egress.Probe(ctx, row.Address, tlsOf(f["tls"]), egress.NewCredential(f, secrets)); err != nil {
			row.Status, row.StatusReason = core.ConnectorStatusError, core.AsError(err).Detail
		}
	case schemas.ManifestNeedsCredentialModeURL:
		u, err := url.Parse(f["url"])
		if err == nil {
			err = s.Egress.Check(f["url"])
		}
		if err != nil {
			detail := core.AsError(err).Detail
			return &core.Error{Kind: core.KindInvalid, Code: "invalid_credentials", Detail: detail, Fields: []core.FieldError{{Pointer: "/fields/url", Message: detail}}}
		}
		u.Fragment = ""
		row.Address, row.Account = u.String(), u.String()
	case schemas.ManifestNeedsCredentialModeOauth:
		if secrets["token"] == "" && secrets["refresh"] == "" {
			row.Status, row.StatusReason = core.ConnectorStatusConnecting, "Waits for the sign-in at the provider: POST /api/connectors/"+row.Provider+"/oauth/start."
		}
	case schemas.ManifestNeedsCredentialModeToken:
		row.Account = firstOpen(m, f)
		if m.Connector.SnapshotTool == nil {
			row.StatusReason = "The credential is stored. This version takes no snapshot of " + m.Title + ", so nothing was checked."
		}
	}
	row.BindingDigest = binding(row)
	return nil
}

// firstOpen is the first open field that holds something: what an owner tells accounts
// apart by where the provider was not asked.
func firstOpen(m schemas.Manifest, fields map[string]string) string {
	for _, f := range m.Needs.Credential.Fields {
		if v := fields[f.Key]; !f.Secret && v != "" {
			return v
		}
	}
	return ""
}

// binding changes whenever the account or the address of a connection does. A new
// password for the same account leaves it.
func binding(row *store.Connection) string {
	h := sha256.New()
	for _, part := range []string{"connection binding 1", row.Provider, row.Name, row.Address, row.Account, tlsOf(row.Fields["tls"])} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
