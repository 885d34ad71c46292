// Command statesdoc writes docs/states.md from the transition table. Run it in the root
// of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/sallyport-dev/sallyport/core/sim"
)

func main() {
	if err := os.WriteFile("docs/states.md", []byte(sim.StatesDoc()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "statesdoc:", err)
		os.Exit(1)
	}
}
