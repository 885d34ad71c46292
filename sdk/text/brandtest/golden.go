package brandtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Golden compares got with testdata/name of the package under test. With UPDATE_GOLDEN=1 it writes the file instead:
// look at the difference before keeping it, since readers get exactly this text.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; UPDATE_GOLDEN=1 writes it", err)
	}
	if string(want) != got {
		t.Errorf("%s differs from what is drafted now:\n%s", path, got)
	}
}
