package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func TestEveryPluginConforms(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range all() {
		if seen[p.Manifest.Name] {
			t.Errorf("two plugins are called %s", p.Manifest.Name)
		}
		seen[p.Manifest.Name] = true
		t.Run(p.Manifest.Name, func(t *testing.T) { sdktest.Conform(t, p) })
	}
}

// A plugin that is in the tree but not in the binary would be missing without a word.
func TestEveryPluginOfTheTreeIsInTheBinary(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../../operators/*", "../../plugins/*/*"} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if !exportsPlugin(t, folder) {
				continue
			}
			path := `"github.com/sallyport-dev/sallyport/` + strings.TrimPrefix(filepath.ToSlash(folder), "../../") + `"`
			if !strings.Contains(string(source), path) {
				t.Errorf("%s is not in all()", path)
			}
		}
	}
}

func exportsPlugin(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc Plugin() sdk.Plugin") {
			return true
		}
	}
	return false
}

// What a plugin proposes or calls must be there, or its own tests would be all that ever runs it.
func TestNeedsAreMetInTheTree(t *testing.T) {
	tools := map[string]bool{}
	for _, p := range all() {
		for _, doc := range sdk.ManifestOf(p).Tools {
			tools[doc.Name] = true
		}
	}
	for _, p := range all() {
		for _, need := range p.Manifest.Needs.Propose {
			if !strings.HasSuffix(need, "*") && !tools[need] {
				t.Errorf("%s proposes %s, which no plugin here has", p.Manifest.Name, need)
			}
		}
	}
}
