package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/connector"
)

// connectorView is a connector with the form that connects it.
type connectorView struct {
	core.Connector
	Can   string
	Typed map[string]string // what was typed before a refusal; never a secret
	Form  bool              // it is connected by typing, and this person may
	Open  bool
}

func (s *Site) connectors(w http.ResponseWriter, r *http.Request, p core.Principal) {
	s.showConnectors(w, r, p, http.StatusOK, "", nil, nil)
}

func (s *Site) showConnectors(w http.ResponseWriter, r *http.Request, p core.Principal, status int, provider string, typed map[string]string, pr *problem) {
	all, err := s.Connectors.Catalog(r.Context(), p)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	connected := 0
	views := make([]connectorView, 0, len(all))
	for _, c := range all {
		if c.Status == core.ConnectorStatusConnected {
			connected++
		}
		v := connectorView{Connector: c, Can: abilities(c), Open: c.Provider == provider, Typed: map[string]string{}}
		if g := c.SetupGuidance; g != nil && p.Can(core.ScopeConnectorsManage) && len(g.Requires) > 0 {
			v.Form = g.Mode == core.SetupGuidanceModeToken || g.Mode == core.SetupGuidanceModeURL
		}
		if v.Open {
			v.Typed = typed
		}
		views = append(views, v)
	}
	slices.SortStableFunc(views, func(a, b connectorView) int { return order(a.Status) - order(b.Status) })
	s.show(w, r, p, status, "connectors", page{Title: fmt.Sprintf("Connectors (%d of %d connected)", connected, len(all)), Section: "connectors", Problem: pr, Data: map[string]any{"Connectors": views, "Connected": connected}})
}

// order puts what is connected first, and before it what was and no longer works.
func order(s core.ConnectorStatus) int {
	switch s {
	case core.ConnectorStatusError, core.ConnectorStatusNeedsReauth:
		return 0
	case core.ConnectorStatusConnected, core.ConnectorStatusConnecting:
		return 1
	}
	return 2
}

func abilities(c core.Connector) string {
	var can []string
	for _, e := range c.Effects {
		switch e {
		case core.ConnectorEffectsElemRead:
			can = append(can, "read")
		case core.ConnectorEffectsElemWrite:
			can = append(can, "send, after a person approved it")
		}
	}
	return strings.Join(can, "; ")
}

// connect stores what an owner typed. A field left empty keeps its value.
func (s *Site) connect(w http.ResponseWriter, r *http.Request, p core.Principal) {
	provider := chi.URLParam(r, "provider")
	c := connector.Credentials{Name: strings.TrimSpace(r.PostFormValue("field.name")), Fields: map[string]string{}}
	for name, values := range r.PostForm {
		if key, ok := strings.CutPrefix(name, "field."); ok && key != "name" && values[0] != "" {
			c.Fields[key] = values[0]
		}
	}
	done, err := s.Connectors.Put(r.Context(), p, provider, c)
	if err == nil {
		s.notice(w, p, fmt.Sprintf("%s is %s.", done.Title, words(done.Status)))
		http.Redirect(w, r, "/connectors", http.StatusSeeOther)
		return
	}
	switch e := core.AsError(err); {
	case e.Code == "weak_proof":
		http.Redirect(w, r, signInAt("/connectors", true), http.StatusSeeOther)
	case e.Kind == core.KindInternal, e.Kind == core.KindNotFound:
		s.fail(w, r, err)
	default:
		typed := map[string]string{"name": c.Name}
		for key, value := range c.Fields {
			typed[key] = value
		}
		s.showConnectors(w, r, p, e.Kind.Status(), provider, typed, problemOf(err))
	}
}
