package rest

import (
	"context"

	"github.com/sallyport-dev/sallyport/core"
)

// Some services name workspaces by a type of the store, which this package does not
// know. These functions pass the principal's workspace on under whatever type it is.

func listOf[W ~string, T any](ctx context.Context, p core.Principal, q core.Query, list func(context.Context, W, core.Query) (core.Page[T], error)) (core.Page[T], error) {
	return list(ctx, W(p.WorkspaceID), q)
}

func readOf[W ~string, T any](ctx context.Context, p core.Principal, read func(context.Context, W) (T, error)) (T, error) {
	return read(ctx, W(p.WorkspaceID))
}

func follow[W ~string, E any](ctx context.Context, p core.Principal, runID string, after int64, subscribe func(context.Context, W, string, int64) <-chan E) <-chan E {
	return subscribe(ctx, W(p.WorkspaceID), runID, after)
}
