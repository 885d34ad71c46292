package mcp

import (
	"context"
	"testing"

	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// registryOf is a registry that shows the host's tools and the documents, all owned by
// one plugin.
func registryOf(t *testing.T, docs []schemas.ToolDocument) *tool.Registry {
	t.Helper()
	r := tool.NewRegistry()
	r.Swap(snapshotOf(t, docs))
	return r
}

func snapshotOf(t *testing.T, docs []schemas.ToolDocument) *tool.Snapshot {
	t.Helper()
	m := fixtureManifest()
	m.Tools = docs
	s, err := tool.NewSnapshot([]*tool.Plugin{{Manifest: m, Caller: unreached{}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unreached is a plugin that no test calls: the fixture dispatcher answers.
type unreached struct{}

func (unreached) Call(context.Context, tool.CallIn) (tool.CallOut, error) {
	panic("the fixture dispatcher answers calls")
}

func (unreached) Available() bool { return true }

func fixtureManifest() schemas.Manifest {
	return schemas.Manifest{
		Name: "fixture", Kind: schemas.ManifestKindOperator, Version: "1.0.0", Protocol: 1,
		Prompts: []schemas.ManifestPrompt{
			{Name: "plan", Arguments: []schemas.PromptArgument{{Name: "goal", Required: new(true)}}, Text: new("Plan {{goal}}.")},
			{Name: "by_tool", Tool: new("t_echo")},
		},
		Resources: []schemas.ManifestResource{{Uri: "guide://fixture", Name: "guide", Tool: "t_echo"}},
	}
}

// visible lists what tools/list has to show.
func (r *rig) visible() []string {
	var names []string
	for _, e := range r.registry.Snapshot().Visible() {
		names = append(names, e.Doc.Name)
	}
	return names
}
