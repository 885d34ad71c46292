package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/sallyport-dev/sallyport/schemas"
)

// ReadCatalog reads the plugins of an installation. A file that is not there is an empty
// catalog.
func ReadCatalog(path string) ([]schemas.CatalogEntry, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("plugin catalog: %w", err)
	}
	meta, err := schemas.Meta("catalog")
	if err != nil {
		return nil, err
	}
	if err := meta.Validate(raw); err != nil {
		return nil, fmt.Errorf("plugin catalog %s: %w", path, err)
	}
	var c schemas.Catalog
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("plugin catalog %s: %w", path, err)
	}
	seen := map[string]bool{}
	for _, e := range c.Plugins {
		if seen[e.Name] {
			return nil, fmt.Errorf("plugin catalog %s: the plugin %s stands twice", path, e.Name)
		}
		seen[e.Name] = true
	}
	return c.Plugins, nil
}

// WriteCatalog writes a catalog in one step: readers see the old one or the new one.
func WriteCatalog(path string, entries []schemas.CatalogEntry) error {
	if entries == nil {
		entries = []schemas.CatalogEntry{}
	}
	raw, err := json.MarshalIndent(schemas.Catalog{Plugins: entries}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("plugin catalog: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".catalog-*")
	if err != nil {
		return fmt.Errorf("plugin catalog: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("plugin catalog: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// listTimeout bounds how long a binary may take to print its manifests.
const listTimeout = 10 * time.Second

// InTreeCatalog asks the binary that holds the plugins of this repository what is in it,
// and makes one entry for each with the digest of the binary. They are allowed what they
// need: they are reviewed together with the host.
func InTreeCatalog(binary string) ([]schemas.CatalogEntry, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plugins of this repository: %w", err)
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("plugins of this repository: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "list")
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("plugins of this repository: %s list: %w: %s", filepath.Base(path), err, clip(escape(stderr.String()), 500))
	}
	var manifests []schemas.Manifest
	if err := json.Unmarshal(stdout.Bytes(), &manifests); err != nil {
		return nil, fmt.Errorf("plugins of this repository: %s list: %w", filepath.Base(path), err)
	}
	origin := schemas.CatalogEntryOriginInTree
	var entries []schemas.CatalogEntry
	for _, m := range manifests {
		entries = append(entries, schemas.CatalogEntry{
			Name: m.Name, Command: path, Args: []string{m.Name}, Sha256: hex.EncodeToString(h.Sum(nil)),
			Allow: allowWhatItNeeds(m), Origin: &origin,
		})
	}
	return entries, nil
}

func allowWhatItNeeds(m schemas.Manifest) schemas.Allow {
	a := schemas.Allow{Tools: []string{}, Call: m.Needs.Tools, Propose: m.Needs.Propose, Model: m.Needs.Model, Datasets: m.Needs.Datasets}
	for _, doc := range m.Tools {
		a.Tools = append(a.Tools, doc.Name)
	}
	for _, e := range m.Needs.Endpoints {
		a.Endpoints = append(a.Endpoints, e.ID)
	}
	for _, access := range m.Needs.Memory {
		a.Memory = append(a.Memory, schemas.CatalogEntryAllowMemoryElem(access))
	}
	return a
}

// MergeInTree puts entries of this repository's plugins into a catalog: they replace
// those of the same origin, and keep an owner's choices: what is switched off, what is
// listed, and its configuration.
func MergeInTree(catalog, inTree []schemas.CatalogEntry) []schemas.CatalogEntry {
	before := map[string]schemas.CatalogEntry{}
	out := []schemas.CatalogEntry{}
	for _, e := range catalog {
		if e.Origin != nil && *e.Origin == schemas.CatalogEntryOriginInTree {
			before[e.Name] = e
			continue
		}
		out = append(out, e)
	}
	for _, e := range inTree {
		was := before[e.Name]
		e.Enabled, e.List, e.Config = was.Enabled, was.List, was.Config
		out = append(out, e)
	}
	return out
}

func sameEntry(a, b schemas.CatalogEntry) bool { return reflect.DeepEqual(a, b) }

// settle is how long a catalog file must be quiet before it is read: writers may take
// several steps.
const settle = 150 * time.Millisecond

// watchCatalog reloads when the catalog file changes. It watches the folder: the file is
// replaced, not written in place.
func (s *Supervisor) watchCatalog() (stop func(), err error) {
	dir := filepath.Dir(s.catalog)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	var done sync.WaitGroup
	done.Go(func() {
		quiet := time.NewTimer(time.Hour)
		quiet.Stop()
		defer quiet.Stop()
		for {
			select {
			case event, ok := <-w.Events:
				if !ok {
					return
				}
				if event.Name == s.catalog {
					quiet.Reset(settle)
				}
			case err, ok := <-w.Errors:
				if !ok {
					return
				}
				s.d.Log.Warn("watching the catalog", "error", err)
			case <-quiet.C:
				if err := s.Reload(s.ctx, ""); err != nil {
					s.d.Log.Error("catalog not in force as written", "error", err)
				}
			}
		}
	})
	return func() {
		if err := w.Close(); err != nil {
			s.d.Log.Debug("watch not closed", "error", err)
		}
		done.Wait()
	}, nil
}
