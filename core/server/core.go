// Package server puts the services together: Core is what the command line needs to
// work on the data directory, Server adds plugins, jobs and the surfaces.
package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Version is the version of this program; the release build sets it.
var Version = "0.1.0"

// Core is the opened data of an installation with the services that need no plugin.
type Core struct {
	Config Config
	Log    *slog.Logger
	Clock  core.Clock
	DB     *store.DB
	Keys   *secret.Keeper
	Audit  *audit.Log
	Auth   *auth.Service
}

// Open opens the data directory and the database, and brings its schema up to date.
// getenv is where secrets may come from besides files.
func Open(ctx context.Context, cfg Config, log *slog.Logger, getenv func(string) string) (*Core, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	c := &Core{Config: cfg, Log: log, Clock: core.SystemClock{}}
	var err error
	if c.Keys, err = secret.Open(filepath.Join(cfg.Data, "keys"), getenv); err != nil {
		return nil, err
	}
	if c.DB, err = store.Open(ctx, store.Options{URL: cfg.StoreURL(), Clock: c.Clock, Log: log}); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		_ = c.DB.Close()
		return nil, err
	}
	return c, nil
}

func (c *Core) prepare(ctx context.Context) error {
	if err := c.DB.Migrate(ctx); err != nil {
		return err
	}
	if err := c.Keys.Bind(ctx, c.DB); err != nil {
		return err
	}
	c.Audit = audit.New(c.DB, c.Keys, c.Clock, c.Log)
	var err error
	c.Auth, err = auth.New(auth.Deps{DB: c.DB, Audit: c.Audit, Keeper: c.Keys, Clock: c.Clock, Log: c.Log, BaseURL: c.Config.BaseURL})
	return err
}

// Close closes the database.
func (c *Core) Close() error { return c.DB.Close() }

// NewLogger makes the logger of a configuration.
func NewLogger(cfg Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// What the command line fills in, under names of this package so that it needs no other.
type (
	// Init is the first owner of an installation.
	Init = auth.Init
	// NewKey is a key to be made.
	NewKey = auth.NewKey
	// NewUser is a person to be added.
	NewUser = auth.NewUser
)
