package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
)

func (s *server) pluginRoutes() []route {
	return []route{
		{"GET /api/plugins", "listPlugins", s.listPlugins},
		{"POST /api/plugins/{name}/reload", "reloadPlugin", s.reloadPlugin},
	}
}

func (s *server) listPlugins(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, map[string]any{"plugins": orEmpty(s.Plugins.List())})
}

func (s *server) reloadPlugin(w http.ResponseWriter, r *http.Request) error {
	rc, name := requestOf(r), chi.URLParam(r, "name")
	if _, ok := s.plugin(name); !ok {
		return core.Errf(core.KindNotFound, "not_found", "There is no plugin %.60q here.", name)
	}
	reloadErr := s.Plugins.Reload(r.Context(), name)
	entry := audit.Entry{Actor: rc.principal.Actor(), WorkspaceID: rc.principal.WorkspaceID, Action: "plugin.reloaded", Target: name, Outcome: string(core.AuditEntryOutcomeOk), RequestID: rc.id, IP: rc.ip}
	if reloadErr != nil {
		entry.Outcome = string(core.AuditEntryOutcomeFailed)
	}
	if err := s.Audit.AppendNow(r.Context(), entry); err != nil {
		return err
	}
	if reloadErr != nil {
		return reloadErr
	}
	p, ok := s.plugin(name)
	if !ok {
		return core.Errf(core.KindConflict, "plugin_removed", "The plugin %q left the catalog while it was reloaded.", name)
	}
	return reply(w, p)
}

func (s *server) plugin(name string) (core.Plugin, bool) {
	for _, p := range s.Plugins.List() {
		if p.Name == name {
			return p, true
		}
	}
	return core.Plugin{}, false
}

// orEmpty makes a missing list an empty one, as the schemas demand.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
