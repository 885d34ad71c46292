package sdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Handlers are the functions of a plugin by the name of their tool.
type Handlers struct {
	// Run answers draft and read tools.
	Run map[string]func(ctx context.Context, c *Call) (any, error)
	// Compile answers write tools.
	Compile map[string]func(ctx context.Context, c *Call) (*effect.Sealed, error)
}

// Define makes a plugin from its manifest document, in which the tool documents stand
// under "tools", and its handlers. It is meant for package-level use with an embedded
// file and panics when the document and the handlers do not go together.
func Define(manifest []byte, h Handlers) Plugin {
	var p Plugin
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("sdk: the manifest cannot be read: %v", err))
	}
	known := map[string]schemas.ToolDocument{}
	for _, doc := range p.Manifest.Tools {
		t := Tool{Document: doc, Run: h.Run[doc.Name], Compile: h.Compile[doc.Name]}
		if err := checkTool(t); err != nil {
			panic("sdk: " + err.Error())
		}
		known[doc.Name] = doc
		p.Tools = append(p.Tools, t)
	}
	for name := range h.Run {
		if _, ok := known[name]; !ok {
			panic(fmt.Sprintf("sdk: the manifest of %s has no tool %s", p.Manifest.Name, name))
		}
	}
	for name := range h.Compile {
		if _, ok := known[name]; !ok {
			panic(fmt.Sprintf("sdk: the manifest of %s has no tool %s", p.Manifest.Name, name))
		}
	}
	return p
}
