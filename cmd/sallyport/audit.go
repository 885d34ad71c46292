package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/server"
)

func (a *app) auditCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Read and verify the audit log, also beside a running host"}
	var limit int
	tail := &cobra.Command{Use: "tail", Short: "Print the newest entries of the workspace", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			entries, err := c.AuditEntries(cmd.Context(), core.Query{Limit: limit})
			if err != nil {
				return err
			}
			return a.print(map[string]any{"entries": entries.Items}, func(w io.Writer) {
				for i := len(entries.Items) - 1; i >= 0; i-- {
					e := entries.Items[i]
					fmt.Fprintf(w, "%6d  %s  %-28s %-8s %s  %s\n", e.Seq, e.At.Format(time.RFC3339), e.Action, e.Outcome, e.Actor.Label, e.Target)
				}
			})
		})
	}}
	tail.Flags().IntVar(&limit, "limit", 50, "how many, at most 200")

	export := &cobra.Command{Use: "export", Short: "Print every entry of the workspace, newest first, one JSON object a line", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			enc := json.NewEncoder(a.out)
			q := core.Query{Limit: core.MaxLimit}
			for {
				page, err := c.AuditEntries(cmd.Context(), q)
				if err != nil {
					return err
				}
				for _, e := range page.Items {
					if err := enc.Encode(e); err != nil {
						return err
					}
				}
				if q.Cursor = page.NextCursor; q.Cursor == "" {
					return nil
				}
			}
		})
	}}

	verify := &cobra.Command{Use: "verify", Short: "Recompute the whole log; exit 5 when anything was changed", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			v, err := c.VerifyAudit(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.print(v, func(w io.Writer) {
				if v.OK {
					fmt.Fprintf(w, "intact: %d entries, %d checkpoints, root %s\n", v.Size, v.Checkpoints, v.Root)
				}
			}); err != nil {
				return err
			}
			if !v.OK && v.FirstBad >= 0 {
				return checkFailed("the audit log is broken at entry %d: %s", v.FirstBad, v.Reason)
			}
			if !v.OK {
				return checkFailed("the audit log is broken: %s", v.Reason)
			}
			return nil
		})
	}}
	cmd.AddCommand(tail, export, verify)
	return cmd
}
