package connector

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// secretClass is what sealed credentials are bound to besides workspace and connection.
const secretClass = "connection"

// Audience is a list of recipients with the ground for writing to them.
type Audience struct {
	Name        string   `json:"name"`
	Addresses   []string `json:"addresses"`
	LawfulBasis string   `json:"lawfulBasis"`
}

// Public is the part of a connection that plugins and people may see.
type Public struct {
	ID         string               `json:"-"`
	Provider   string               `json:"provider"`
	Name       string               `json:"name,omitempty"`
	Status     core.ConnectorStatus `json:"status"`
	Account    string               `json:"account"`
	Fields     map[string]string    `json:"fields,omitempty"`
	Audiences  []Audience           `json:"audiences,omitempty"`
	WriteTools []string             `json:"writeTools,omitempty"`
}

// Connections lists what a workspace has connected, without secrets.
func (s *Service) Connections(ctx context.Context, ws string) ([]Public, error) {
	rows, err := s.DB.ConnectionsOf(ctx, store.WorkspaceID(ws), "")
	if err != nil {
		return nil, err
	}
	out := []Public{}
	for _, row := range rows {
		p := Public{ID: row.ID, Provider: row.Provider, Name: row.Name, Status: row.Status, Account: row.Account, Fields: row.Fields}
		if err := row.Audiences.Decode(&p.Audiences); err != nil {
			return nil, err
		}
		if m, err := s.manifest(row.Provider); err == nil {
			for _, t := range m.Tools {
				if t.Effect == schemas.EffectWrite {
					p.WriteTools = append(p.WriteTools, t.Name)
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// Connection is the public part of one connection; false when there is none.
func (s *Service) Connection(ctx context.Context, ws, provider, name string) (Public, bool, error) {
	all, err := s.Connections(ctx, ws)
	if err != nil {
		return Public{}, false, err
	}
	i := slices.IndexFunc(all, func(p Public) bool { return p.Provider == provider && p.Name == name })
	if i < 0 {
		return Public{}, false, nil
	}
	return all[i], true, nil
}

// Bind is the connection that a sealed effect will use. An unconnected provider is a
// conflict with code connector_not_connected.
func (s *Service) Bind(ctx context.Context, ws, provider, name string) (effect.Connection, error) {
	row, err := s.DB.ConnectionByName(ctx, store.WorkspaceID(ws), provider, name)
	if core.IsKind(err, core.KindNotFound) || err == nil && row.Status != core.ConnectorStatusConnected {
		label := provider
		if name != "" {
			label += " " + name
		}
		return effect.Connection{}, core.Errf(core.KindConflict, "connector_not_connected", "%s is not connected. Connect it first; POST /api/connectors/%s/snapshot tells how.", label, provider)
	}
	if err != nil {
		return effect.Connection{}, err
	}
	return bound(row), nil
}

func bound(row *store.Connection) effect.Connection {
	return effect.Connection{ID: row.ID, Provider: row.Provider, Name: row.Name, AccountID: row.Account, Account: row.Account,
		BaseURL: row.Address, TLS: tlsOf(row.Fields["tls"]), Binding: row.BindingDigest}
}

// tlsOf is the mode as sealed effects write it: empty for STARTTLS.
func tlsOf(mode string) string {
	if mode == "starttls" {
		return ""
	}
	return mode
}

// Credential opens the credential of a connection for signing. A sign-in that has
// expired is renewed first; one that cannot be renewed makes the connection needs_reauth.
func (s *Service) Credential(ctx context.Context, ws, connectionID string) (egress.Credential, error) {
	row, err := s.DB.Connection(ctx, store.WorkspaceID(ws), connectionID)
	if err != nil {
		return egress.Credential{}, err
	}
	secrets, err := s.secrets(ctx, row)
	if core.IsKind(err, core.KindNotFound) { // renewed since the row was read: the new one has another id
		if row, err = s.DB.Connection(ctx, store.WorkspaceID(ws), connectionID); err == nil {
			secrets, err = s.secrets(ctx, row)
		}
	}
	if err != nil {
		return egress.Credential{}, err
	}
	if s.expired(secrets) {
		if secrets, err = s.refresh(ctx, row); err != nil {
			return egress.Credential{}, err
		}
	}
	return egress.NewCredential(row.Fields, visible(secrets)), nil
}

// secrets opens what is sealed for a connection.
func (s *Service) secrets(ctx context.Context, row *store.Connection) (map[string]string, error) {
	out := map[string]string{}
	if row.SecretID == "" {
		return out, nil
	}
	v, err := s.Keys.Unseal(ctx, s.DB, row.WorkspaceID, row.SecretID, secretClass, row.ID)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal([]byte(v.Reveal()), &out)
}

// seal replaces the sealed secrets of a connection.
func (s *Service) seal(ctx context.Context, tx *store.Tx, row *store.Connection, secrets map[string]string) error {
	raw, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	old := row.SecretID
	if row.SecretID, err = s.Keys.Seal(ctx, tx, row.WorkspaceID, secretClass, row.ID, raw); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return tx.DeleteSecret(ctx, row.WorkspaceID, old)
}

var _ secret.Reader = (*store.DB)(nil)

// Delete forgets a connection and its credential.
func (s *Service) Delete(ctx context.Context, p core.Principal, provider, name string) error {
	if err := s.mayManage(p); err != nil {
		return err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	row, err := s.DB.ConnectionByName(ctx, ws, provider, name)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.DeleteConnection(ctx, ws, row.ID); err != nil {
			return err
		}
		if row.SecretID != "" {
			if err := tx.DeleteSecret(ctx, ws, row.SecretID); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, p, "connector.deleted", row)
	})
}

// mayManage asks for the scope, and of people for a recent sign-in: a connection decides
// where approved effects go.
func (s *Service) mayManage(p core.Principal) error {
	if err := p.Require(core.ScopeConnectorsManage); err != nil {
		return err
	}
	if p.Kind == core.ActorKindPerson && p.ProofAt(s.Clock.Now()) == core.ProofP1 {
		return core.Errf(core.KindForbidden, "weak_proof", "Connecting asks for a sign-in not older than five minutes. Sign in again.")
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *store.Tx, p core.Principal, action string, row *store.Connection) error {
	e := audit.By(p, action, row.ID)
	e.Details = map[string]any{"provider": row.Provider, "name": row.Name, "status": row.Status, "binding": row.BindingDigest}
	e.Personal = map[string]any{"account": row.Account}
	_, err := s.Audit.Append(ctx, tx, e)
	return err
}

// NeedsReauth marks a connection whose provider no longer accepts the credential.
func (s *Service) NeedsReauth(ctx context.Context, ws, connectionID, reason string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.Connection(ctx, store.WorkspaceID(ws), connectionID)
		if err != nil || row.Status == core.ConnectorStatusNeedsReauth {
			return err
		}
		row.Status, row.StatusReason, row.UpdatedAt = core.ConnectorStatusNeedsReauth, reason, store.At(s.Clock.Now())
		if err := tx.UpdateConnection(ctx, row); err != nil {
			return err
		}
		return s.announce(ctx, tx, row)
	})
}

func (s *Service) announce(ctx context.Context, tx *store.Tx, row *store.Connection) error {
	system := core.Principal{Kind: core.ActorKindJob, ID: "connector", Label: "connector", WorkspaceID: string(row.WorkspaceID)}
	if s.Events != nil {
		e := core.Event{Type: event.NeedsReauth, WorkspaceID: string(row.WorkspaceID), At: s.Clock.Now(), Data: core.EventData{"provider": row.Provider, "name": row.Name}}
		if err := s.Events.Emit(ctx, tx, e); err != nil {
			return err
		}
	}
	return s.record(ctx, tx, system, "connector.needs_reauth", row)
}
