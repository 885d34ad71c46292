package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
)

func (a *app) runCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "Bring goals and read runs of a running host"}
	var project string
	var wait int
	create := &cobra.Command{
		Use: "create GOAL", Short: "Bring a goal", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			body := map[string]string{"goal": args[0]}
			if project != "" {
				body["projectId"] = project
			}
			var run core.Run
			if err := c.do(cmd.Context(), "POST", "/api/runs", body, &run, "Prefer", fmt.Sprintf("wait=%d", wait)); err != nil {
				return err
			}
			return a.print(run, func(w io.Writer) { printRun(w, run) })
		},
	}
	create.Flags().StringVar(&project, "project", "", "your own label")
	create.Flags().IntVar(&wait, "wait", 30, "seconds to wait for the pack, at most 60")

	get := &cobra.Command{Use: "get ID", Short: "Show a run", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		run, err := a.getRun(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.print(run, func(w io.Writer) { printRun(w, *run) })
	}}

	var status, cursor string
	list := &cobra.Command{Use: "list", Short: "List runs, newest first", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var page struct {
			Runs       []core.Run `json:"runs"`
			NextCursor string     `json:"nextCursor,omitempty"`
		}
		if err := c.do(cmd.Context(), "GET", "/api/runs"+query("status", status, "cursor", cursor), nil, &page); err != nil {
			return err
		}
		return a.print(page, func(w io.Writer) {
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, r := range page.Runs {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.ID, r.Status, r.CreatedAt.Format(time.RFC3339), r.Goal)
			}
			_ = tw.Flush()
		})
	}}
	list.Flags().StringVar(&status, "status", "", "only runs in this state")
	list.Flags().StringVar(&cursor, "cursor", "", "where the page before ended")

	watch := &cobra.Command{Use: "watch ID", Short: "Print a run whenever it changes, until it is decided and done", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		version := -1
		for {
			run, err := a.getRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if run.Version != version {
				version = run.Version
				if err := a.print(run, func(w io.Writer) {
					fmt.Fprintf(w, "%s %s %s\n", run.UpdatedAt.Format(time.RFC3339), run.Status, run.StatusReason)
				}); err != nil {
					return err
				}
			}
			switch run.Status {
			case core.RunStatusCompleted, core.RunStatusRejected, core.RunStatusExpired, core.RunStatusFailed, core.RunStatusCancelled, core.RunStatusMeasuring:
				return nil
			}
			select {
			case <-cmd.Context().Done():
				return cmd.Context().Err()
			case <-time.After(time.Second):
			}
		}
	}}
	cmd.AddCommand(create, get, list, watch)
	return cmd
}

func (a *app) getRun(ctx context.Context, id string) (*core.Run, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	var run core.Run
	return &run, c.do(ctx, "GET", "/api/runs/"+id, nil, &run)
}

func printRun(w io.Writer, r core.Run) {
	fmt.Fprintf(w, "%s  %s\n%s\n", r.ID, r.Status, r.Goal)
	if r.StatusReason != "" {
		fmt.Fprintln(w, r.StatusReason)
	}
	fmt.Fprintf(w, "%d drafts, %d actions, %d pieces of evidence\nreview: %s\n", len(r.AssetIds), len(r.ActionIds), len(r.EvidenceIds), r.ReviewURL)
}
