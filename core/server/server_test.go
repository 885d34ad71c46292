package server

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/schemas"
)

func TestThirdPartiesDoNotRunUnconfined(t *testing.T) {
	s := &Server{Core: &Core{Config: Config{AllowUnjailed: []string{"named"}}}}
	inTree, third := schemas.CatalogEntryOriginInTree, schemas.CatalogEntryOriginThirdParty
	for name, origin := range map[string]*schemas.CatalogEntryOrigin{"crm": &third, "unknown": nil} {
		if err := s.mayRun(schemas.CatalogEntry{Name: name, Origin: origin}); err == nil || !strings.Contains(err.Error(), "--allow-unjailed "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, origin := range map[string]*schemas.CatalogEntryOrigin{"marketing": &inTree, "named": &third} {
		if err := s.mayRun(schemas.CatalogEntry{Name: name, Origin: origin}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
