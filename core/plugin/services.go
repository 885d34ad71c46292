package plugin

import (
	"context"
	"encoding/json"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Services answer what plugins ask of the host.
type Services struct {
	Tools      *tool.Dispatcher
	Runs       *run.Service
	Connectors *connector.Service
	Memory     Memory
	Model      Model    // nil: no model is configured
	Datasets   Datasets // nil: there are none
	Clock      core.Clock
}

// Memory is what a workspace remembers between runs.
type Memory interface {
	// Get is not_found when nothing stands under key.
	Get(ctx context.Context, workspaceID, key string) (json.RawMessage, error)
	Put(ctx context.Context, workspaceID, key string, value json.RawMessage, by string) error
}

// Model completes prompts on a workspace's own key, metered and capped.
type Model interface {
	Complete(ctx context.Context, workspaceID string, request json.RawMessage) (completion json.RawMessage, err error)
}

// Datasets holds uploaded rows.
type Datasets interface {
	// Rows calls each with some rows at a time, in order.
	Rows(ctx context.Context, workspaceID, id string, each func(rows []json.RawMessage) error) error
}

// typedMemory is a memory service that has a type of its own for workspaces.
type typedMemory[W ~string] interface {
	Get(ctx context.Context, workspaceID W, key string) (json.RawMessage, error)
	Put(ctx context.Context, workspaceID W, key string, value json.RawMessage, by string) error
}

// MemoryOf adapts *memory.Service, whose type for workspaces belongs to the store.
func MemoryOf[W ~string](m typedMemory[W]) Memory { return memoryOf[W]{m} }

type memoryOf[W ~string] struct{ m typedMemory[W] }

func (a memoryOf[W]) Get(ctx context.Context, workspaceID, key string) (json.RawMessage, error) {
	return a.m.Get(ctx, W(workspaceID), key)
}

func (a memoryOf[W]) Put(ctx context.Context, workspaceID, key string, value json.RawMessage, by string) error {
	return a.m.Put(ctx, W(workspaceID), key, value, by)
}

// Connections lets the dispatcher ask the connector service, which it must not know.
type Connections struct{ Service *connector.Service }

var _ tool.Connections = Connections{}

// Bind implements tool.Connections.
func (c Connections) Bind(ctx context.Context, workspaceID, provider, name string) (effect.Connection, error) {
	return c.Service.Bind(ctx, workspaceID, provider, name)
}

// Describe implements tool.Connections.
func (c Connections) Describe(ctx context.Context, workspaceID, provider, name string) (json.RawMessage, error) {
	public, ok, err := c.Service.Connection(ctx, workspaceID, provider, name)
	if err != nil || !ok {
		return nil, err
	}
	return json.Marshal(public)
}
