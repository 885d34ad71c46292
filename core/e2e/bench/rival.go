package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rival serves the same tool with the handler in the process, on the same SDK: no
// plugin, no authentication, no schema check, no audit. It also serves a constant
// reply, the floor of any list. It prints its address and runs until its parent ends.
func rival(tool json.RawMessage, answer json.RawMessage, list []byte) error {
	var doc struct {
		Name, Description         string
		InputSchema, OutputSchema json.RawMessage
	}
	if err := json.Unmarshal(tool, &doc); err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "rival", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: doc.Name, Description: doc.Description, InputSchema: doc.InputSchema, OutputSchema: doc.OutputSchema},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil
		})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	mux.HandleFunc("/constant", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(list)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go func() { // the parent holds our standard input; its end is ours
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(ln)
}
