package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// dialHost opens the Host service on the descriptor that the host passed down. There is
// one connection for the life of the process: when it breaks, the host is gone.
func dialHost() (pluginpb.HostClient, error) {
	f := os.NewFile(pluginpb.HostDescriptor, "host")
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d leads to no host: %w", pluginpb.HostDescriptor, err)
	}
	if err := f.Close(); err != nil { // FileConn holds its own copy
		return nil, err
	}
	return newHostClient(conn)
}

func newHostClient(conn net.Conn) (pluginpb.HostClient, error) {
	var taken atomic.Bool
	client, err := grpc.NewClient("passthrough:///host",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if taken.Swap(true) {
				return nil, errors.New("the connection to the host is closed")
			}
			return conn, nil
		}),
		grpc.WithIdleTimeout(0), // going idle would close the only connection
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginpb.MaxHostMessage), grpc.MaxCallSendMsgSize(pluginpb.MaxPluginMessage)))
	if err != nil {
		return nil, err
	}
	return pluginpb.NewHostClient(client), nil
}

// remoteHost is the Host of one call: every request carries its ticket.
type remoteHost struct {
	dial   func() (pluginpb.HostClient, error)
	ticket string
}

// ask runs one request and turns a transport error into a Failure.
func ask[T any](ctx context.Context, h *remoteHost, call func(pluginpb.HostClient) (T, error)) (T, error) {
	var zero T
	client, err := h.dial()
	if err != nil {
		return zero, Fail("host_unreachable", "The host cannot be reached: %v", err)
	}
	out, err := call(client)
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	return zero, Fail("host_unreachable", "The host did not answer: %v", err)
}

func (h *remoteHost) CallTool(ctx context.Context, tool string, input, out any) error {
	in, err := json.Marshal(input)
	if err != nil {
		return Fail("invalid_input", "The input of %s is not JSON: %v", tool, err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.CallToolResponse, error) {
		return c.CallTool(ctx, &pluginpb.CallToolRequest{Ticket: h.ticket, Tool: tool, Input: in})
	})
	if err != nil {
		return err
	}
	return decode(r.GetResult(), r.GetFailure(), out)
}

func (h *remoteHost) Complete(ctx context.Context, req CompleteRequest) (*Completion, error) {
	in, err := json.Marshal(req)
	if err != nil {
		return nil, Fail("invalid_input", "The request is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.CompleteResponse, error) {
		return c.Complete(ctx, &pluginpb.CompleteRequest{Ticket: h.ticket, Request: in})
	})
	if err != nil {
		return nil, err
	}
	return decoded[*Completion](r.GetCompletion(), r.GetFailure())
}

func (h *remoteHost) Fetch(ctx context.Context, req FetchRequest) (*FetchReply, error) {
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.FetchResponse, error) {
		return c.Fetch(ctx, &pluginpb.FetchRequest{
			Ticket: h.ticket, Endpoint: req.Endpoint, PathParams: req.PathParams,
			Query: pairsToWire(req.Query), Headers: pairsToWire(req.Headers), Body: req.Body, Url: req.URL,
		})
	})
	if err != nil {
		return nil, err
	}
	if err := failureFromWire(r.GetFailure()); err != nil {
		return nil, err
	}
	return &FetchReply{
		Status: int(r.GetStatus()), Headers: pairsFromWire(r.GetHeaders()), Body: r.GetBody(),
		EvidenceID: r.GetEvidenceId(), FinalURL: r.GetFinalUrl(), Truncated: r.GetTruncated(),
	}, nil
}

func (h *remoteHost) Recall(ctx context.Context, key string, out any) (bool, error) {
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.RecallResponse, error) {
		return c.Recall(ctx, &pluginpb.RecallRequest{Ticket: h.ticket, Key: key})
	})
	if err != nil {
		return false, err
	}
	if err := failureFromWire(r.GetFailure()); err != nil || !r.GetFound() {
		return false, err
	}
	return true, decode(r.GetValue(), nil, out)
}

func (h *remoteHost) Remember(ctx context.Context, key string, value any) error {
	in, err := json.Marshal(value)
	if err != nil {
		return Fail("invalid_input", "What is to be remembered is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.RememberResponse, error) {
		return c.Remember(ctx, &pluginpb.RememberRequest{Ticket: h.ticket, Key: key, Value: in})
	})
	if err != nil {
		return err
	}
	return failureFromWire(r.GetFailure())
}

func (h *remoteHost) SaveEvidence(ctx context.Context, items []Evidence) ([]Evidence, error) {
	in, err := json.Marshal(items)
	if err != nil {
		return nil, Fail("invalid_input", "The evidence is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.SaveEvidenceResponse, error) {
		return c.SaveEvidence(ctx, &pluginpb.SaveEvidenceRequest{Ticket: h.ticket, Evidence: in})
	})
	if err != nil {
		return nil, err
	}
	return decoded[[]Evidence](r.GetEvidence(), r.GetFailure())
}

func (h *remoteHost) SaveAsset(ctx context.Context, a Asset) (*AssetRef, error) {
	in, err := json.Marshal(a)
	if err != nil {
		return nil, Fail("invalid_input", "The asset is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.SaveAssetResponse, error) {
		return c.SaveAsset(ctx, &pluginpb.SaveAssetRequest{Ticket: h.ticket, Asset: in})
	})
	if err != nil {
		return nil, err
	}
	return decoded[*AssetRef](r.GetAsset(), r.GetFailure())
}

func (h *remoteHost) Propose(ctx context.Context, p Proposal) (*Proposed, error) {
	in, err := json.Marshal(p)
	if err != nil {
		return nil, Fail("invalid_input", "The proposal is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.ProposeResponse, error) {
		return c.Propose(ctx, &pluginpb.ProposeRequest{Ticket: h.ticket, Proposal: in})
	})
	if err != nil {
		return nil, err
	}
	return decoded[*Proposed](r.GetAction(), r.GetFailure())
}

func (h *remoteHost) Connections(ctx context.Context) ([]Connection, error) {
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.ConnectionsResponse, error) {
		return c.Connections(ctx, &pluginpb.ConnectionsRequest{Ticket: h.ticket})
	})
	if err != nil {
		return nil, err
	}
	return decoded[[]Connection](r.GetConnections(), r.GetFailure())
}

func (h *remoteHost) UpdateRun(ctx context.Context, u RunUpdate) error {
	in, err := json.Marshal(u)
	if err != nil {
		return Fail("invalid_input", "The update is not JSON: %v", err)
	}
	r, err := ask(ctx, h, func(c pluginpb.HostClient) (*pluginpb.UpdateRunResponse, error) {
		return c.UpdateRun(ctx, &pluginpb.UpdateRunRequest{Ticket: h.ticket, Update: in})
	})
	if err != nil {
		return err
	}
	return failureFromWire(r.GetFailure())
}

func (h *remoteHost) ReadDataset(ctx context.Context, id string, row func(json.RawMessage) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when row stops early
	stream, err := ask(ctx, h, func(c pluginpb.HostClient) (grpc.ServerStreamingClient[pluginpb.ReadDatasetResponse], error) {
		return c.ReadDataset(ctx, &pluginpb.ReadDatasetRequest{Ticket: h.ticket, DatasetId: id})
	})
	if err != nil {
		return err
	}
	for {
		r, err := ask(ctx, h, func(pluginpb.HostClient) (*pluginpb.ReadDatasetResponse, error) {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil, nil
			}
			return m, err
		})
		if err != nil || r == nil {
			return err
		}
		var rows []json.RawMessage
		if err := decode(r.GetRows(), r.GetFailure(), &rows); err != nil {
			return err
		}
		for _, one := range rows {
			if err := row(one); err != nil {
				return err
			}
		}
	}
}

// decode reads an answer of the host; out may be nil.
func decode(raw []byte, failure *pluginpb.Failure, out any) error {
	if failure != nil {
		return failureFromWire(failure)
	}
	if out == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return Fail("unexpected_answer", "The answer does not fit %T: %v", out, err)
	}
	return nil
}

// decoded is decode into a fresh value; nothing of it is returned with an error.
func decoded[T any](raw []byte, failure *pluginpb.Failure) (T, error) {
	var out, none T
	if err := decode(raw, failure, &out); err != nil {
		return none, err
	}
	return out, nil
}

func pairsToWire(pairs []Pair) []*pluginpb.Pair {
	out := make([]*pluginpb.Pair, 0, len(pairs))
	for _, p := range pairs {
		out = append(out, &pluginpb.Pair{Name: p.Name, Value: p.Value})
	}
	return out
}

func pairsFromWire(pairs []*pluginpb.Pair) []Pair {
	out := make([]Pair, 0, len(pairs))
	for _, p := range pairs {
		out = append(out, Pair{Name: p.GetName(), Value: p.GetValue()})
	}
	return out
}
