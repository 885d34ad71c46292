// Package harness starts the real thing for tests, the demo and benchmarks: built
// binaries, a host on scratch data, a mail server and webhook receivers that keep a
// ledger of what reached them.
package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are built programs of this repository.
type Binaries struct{ Dir string }

// Host is the path of the host program.
func (b Binaries) Host() string { return filepath.Join(b.Dir, "sallyport") }

// Plugins is the path of the multi-call plugin program.
func (b Binaries) Plugins() string { return filepath.Join(b.Dir, "sallyport-plugins") }

// Root is the folder of the repository, found from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module github.com/sallyport-dev/sallyport\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("this is not inside the repository")
		}
		dir = parent
	}
}

// Build compiles the programs into dir. SALLYPORT_TEST_RACE=1 builds them with the race
// detector; tags are further build tags.
func Build(ctx context.Context, dir string, tags ...string) (Binaries, error) {
	root, err := Root()
	if err != nil {
		return Binaries{}, err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if len(tags) > 0 {
		args = append(args, "-tags", strings.Join(tags, ","))
	}
	if os.Getenv("SALLYPORT_TEST_RACE") == "1" {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/sallyport", "./cmd/sallyport-plugins")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binaries{}, fmt.Errorf("building: %w\n%s", err, out)
	}
	return Binaries{Dir: dir}, nil
}
