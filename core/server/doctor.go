package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/plugin"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Verdicts of the doctor.
const (
	Good = "ok"
	Warn = "warn"
	Bad  = "bad"
)

// Finding is one thing the doctor looked at.
type Finding struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Fix     string `json:"fix,omitempty"`
}

// Doctor checks an installation, also beside a running host. It changes nothing but
// what opening the data directory changes.
func Doctor(ctx context.Context, cfg Config, log *slog.Logger, getenv func(string) string) []Finding {
	out := []Finding{addresses(cfg), dataDirectory(cfg)}
	c, err := Open(ctx, cfg, log, getenv)
	if err != nil {
		return append(out, Finding{"database", Bad, err.Error(), "see the reason; keys live in DATA/keys and belong to this database"})
	}
	defer func() { _ = c.Close() }()
	out = append(out, Finding{"database", Good, c.DB.Driver() + " opens, its schema is current, the keys fit", ""}, c.owner(ctx), c.clock(ctx), c.auditLog(ctx))
	out = append(out, pluginFiles(cfg)...)
	return append(out, Finding{"sandbox", Warn, "plugins run unjailed; only those of this repository are loaded", "nothing to do in this version"})
}

// addresses checks that listen address and public address can belong together.
func addresses(cfg Config) Finding {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return Finding{"addresses", Bad, err.Error(), "set baseUrl"}
	}
	host, port, _ := net.SplitHostPort(cfg.Addr)
	local := u.Hostname() == "localhost"
	switch {
	case local && u.Port() != port:
		return Finding{"addresses", Bad, fmt.Sprintf("people are sent to %s but the host listens on %s", cfg.BaseURL, cfg.Addr), "set --base-url http://localhost:" + port}
	case !local && u.Scheme == "http":
		return Finding{"addresses", Warn, cfg.BaseURL + " is not encrypted", "put a reverse proxy with https before the host; passkeys on a phone need it too"}
	case host != "127.0.0.1" && host != "::1" && host != "localhost" && local:
		return Finding{"addresses", Warn, fmt.Sprintf("%s can be reached from other machines, but review links lead to localhost", cfg.Addr), "set --base-url to the public name"}
	}
	return Finding{"addresses", Good, fmt.Sprintf("%s is reached at %s", cfg.Addr, cfg.BaseURL), ""}
}

func dataDirectory(cfg Config) Finding {
	info, err := os.Stat(cfg.Data)
	if err != nil {
		return Finding{"data directory", Warn, cfg.Data + " is not there yet", "it is made by `sallyport init` or `sallyport serve`"}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && os.PathSeparator == '/' {
		return Finding{"data directory", Warn, fmt.Sprintf("%s can be read by others (mode %04o)", cfg.Data, mode), "chmod 700 " + cfg.Data}
	}
	probe := filepath.Join(cfg.Data, ".probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		return Finding{"data directory", Bad, err.Error(), "make it writable for the user that runs the host"}
	}
	_ = os.Remove(probe)
	return Finding{"data directory", Good, cfg.Data + " is private and can be written", ""}
}

func (c *Core) owner(ctx context.Context) Finding {
	ready, err := c.Auth.Initialised(ctx)
	if err != nil {
		return Finding{"owner", Bad, err.Error(), ""}
	}
	if !ready {
		return Finding{"owner", Warn, "nobody is set up", "sallyport init --email YOU, or open the address that serve prints"}
	}
	return Finding{"owner", Good, "the installation has an owner", ""}
}

func (c *Core) clock(ctx context.Context) Finding {
	theirs, err := c.DB.Now(ctx)
	if err != nil {
		return Finding{"clock", Bad, err.Error(), ""}
	}
	if d := c.Clock.Now().Sub(theirs).Abs(); d.Minutes() > 1 {
		return Finding{"clock", Bad, fmt.Sprintf("this machine and the database differ by %s", d.Round(1e9)), "set both clocks by the network"}
	}
	return Finding{"clock", Good, "this machine and the database agree", ""}
}

func (c *Core) auditLog(ctx context.Context) Finding {
	v, err := c.VerifyAudit(ctx)
	if err != nil {
		return Finding{"audit log", Bad, err.Error(), ""}
	}
	if !v.OK {
		return Finding{"audit log", Bad, fmt.Sprintf("entry %d: %s", v.FirstBad, v.Reason), "stop the host, keep the database as it is, and find out who can write to it"}
	}
	return Finding{"audit log", Good, fmt.Sprintf("%d entries are intact", v.Size), ""}
}

// pluginFiles checks the catalog and the digest of every program in it.
func pluginFiles(cfg Config) []Finding {
	path := filepath.Join(cfg.Plugins, "catalog.json")
	entries, err := plugin.ReadCatalog(path)
	if err != nil {
		return []Finding{{"plugins", Bad, err.Error(), "mend or remove " + path}}
	}
	if len(entries) == 0 {
		return []Finding{{"plugins", Warn, "the catalog is empty", "sallyport serve --in-tree bin/sallyport-plugins"}}
	}
	sums := map[string]string{}
	for _, e := range entries {
		if err := checkDigest(e, filepath.Dir(path), sums); err != nil {
			return []Finding{{"plugins", Bad, e.Name + ": " + err.Error(), "install it again; a changed program is never started"}}
		}
	}
	return []Finding{{"plugins", Good, fmt.Sprintf("%d plugins are installed and unchanged", len(entries)), ""}}
}

func checkDigest(e schemas.CatalogEntry, dir string, sums map[string]string) error {
	file := e.Command
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if sums[file] == "" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		sums[file] = hex.EncodeToString(h.Sum(nil))
	}
	if sums[file] != e.Sha256 {
		return fmt.Errorf("%s has changed since it was installed", file)
	}
	return nil
}

// VerifyAudit recomputes the audit log.
func (c *Core) VerifyAudit(ctx context.Context) (*audit.Verdict, error) {
	return audit.Verify(ctx, c.DB, c.Audit.VerifierKey())
}

// AuditEntries lists the entries of the first owner's workspace.
func (c *Core) AuditEntries(ctx context.Context, q core.Query) (core.Page[core.AuditEntry], error) {
	p, err := c.Auth.OnThisMachine(ctx, "")
	if err != nil {
		return core.Page[core.AuditEntry]{}, err
	}
	return c.Audit.List(ctx, store.WorkspaceID(p.WorkspaceID), q)
}
