package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
)

func (a *app) actionCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "action", Short: "Read and decide proposed actions of a running host"}
	var runID, status string
	list := &cobra.Command{Use: "list", Short: "List actions, newest first", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var page struct {
			Actions    []core.Action `json:"actions"`
			NextCursor string        `json:"nextCursor,omitempty"`
		}
		if err := c.do(cmd.Context(), "GET", "/api/actions"+query("runId", runID, "status", status), nil, &page); err != nil {
			return err
		}
		return a.print(page, func(w io.Writer) {
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, act := range page.Actions {
				fmt.Fprintf(tw, "%s\t%s\t%s\n", act.ID, act.Status, act.Title)
			}
			_ = tw.Flush()
		})
	}}
	list.Flags().StringVar(&runID, "run", "", "only actions of this run")
	list.Flags().StringVar(&status, "status", "", "only actions in this state")

	show := &cobra.Command{Use: "show ID", Short: "Show an action with the exact bytes", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var act core.Action
		if err := c.do(cmd.Context(), "GET", "/api/actions/"+args[0], nil, &act); err != nil {
			return err
		}
		return a.print(act, func(w io.Writer) { printAction(w, act) })
	}}
	cmd.AddCommand(list, show, a.decideCmd("approve", "Approve exactly this digest"), a.decideCmd("reject", "Reject, with a reason"), a.decideCmd("revoke", "Take an approval back"))
	return cmd
}

// decideCmd decides one action. Approving asks for the digest back unless --digest
// gives it: nobody approves what they have not looked at.
func (a *app) decideCmd(verb, short string) *cobra.Command {
	var digest, reason string
	cmd := &cobra.Command{Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var act core.Action
		if err := c.do(cmd.Context(), "GET", "/api/actions/"+args[0], nil, &act); err != nil {
			return err
		}
		if digest == "" && verb == "approve" {
			printAction(a.errOut, act)
			fmt.Fprint(a.errOut, "Type the first eight digits of the digest to approve: ")
			line, err := bufio.NewReader(a.in).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if line = strings.TrimSpace(line); len(line) < 8 || !strings.HasPrefix(act.Digest, line) {
				return usagef("that is not the digest; nothing was decided")
			}
			digest = act.Digest
		}
		body := map[string]string{}
		if digest != "" {
			body["expectedDigest"] = digest
		}
		if reason != "" {
			body["reason"] = reason
		}
		var out core.Action
		if err := c.do(cmd.Context(), "POST", "/api/actions/"+args[0]+"/"+verb, body, &out); err != nil {
			return err
		}
		return a.print(out, func(w io.Writer) { fmt.Fprintf(w, "%s is %s\n", out.ID, out.Status) })
	}}
	cmd.Flags().StringVar(&digest, "digest", "", "digest that must be in force")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func printAction(w io.Writer, act core.Action) {
	fmt.Fprintf(w, "%s  %s\n%s\n", act.ID, act.Status, act.Title)
	fmt.Fprintf(w, "target:  %s\ndigest:  %s\n", act.Target.Label, act.Digest)
	for _, sum := range act.ContentSha256 {
		fmt.Fprintf(w, "content: sha256 %s\n", sum)
	}
	fmt.Fprintf(w, "review:  %s\n", act.ReviewURL)
}
