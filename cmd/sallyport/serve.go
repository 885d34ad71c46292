package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core/server"
)

func (a *app) serveCmd() *cobra.Command {
	var inTree string
	cmd := &cobra.Command{Use: "serve", Short: "Run the host", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := a.config()
		if err != nil {
			return err
		}
		return server.Serve(cmd.Context(), cfg, server.Options{
			InTree: inTree, Log: server.NewLogger(cfg, a.errOut), Getenv: a.getenv,
			Say: func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) },
		})
	}}
	cmd.Flags().StringVar(&inTree, "in-tree", "", "program with the plugins of this repository; they are put into the catalog with its digest")
	return cmd
}

func (a *app) mcpCmd() *cobra.Command {
	var stdio bool
	var inTree, email string
	cmd := &cobra.Command{Use: "mcp", Short: "Serve MCP to a desktop client", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if !stdio {
			return usagef("say --stdio; over HTTP the host serves MCP at /mcp")
		}
		cfg, _, err := a.config()
		if err != nil {
			return err
		}
		return server.ServeStdio(cmd.Context(), cfg, server.StdioOptions{
			Options: server.Options{InTree: inTree, Log: server.NewLogger(cfg, a.errOut), Getenv: a.getenv,
				Say: func(format string, args ...any) { fmt.Fprintf(a.errOut, format+"\n", args...) }},
			In: a.in, Out: a.out, Key: a.getenv("SALLYPORT_KEY"), Server: a.serverURL, Email: email,
		})
	}}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "speak over standard input and output")
	cmd.Flags().StringVar(&inTree, "in-tree", "", "program with the plugins of this repository")
	cmd.Flags().StringVar(&email, "email", "", "whose key is used when none is in SALLYPORT_KEY")
	return cmd
}
