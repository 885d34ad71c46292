package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core/server"
)

func (a *app) doctorCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Check the installation; exit 5 when something is wrong", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := a.config()
		if err != nil {
			return err
		}
		findings := server.Doctor(cmd.Context(), cfg, server.NewLogger(cfg, io.Discard), a.getenv)
		bad := 0
		for _, f := range findings {
			if f.Verdict == server.Bad {
				bad++
			}
		}
		if err := a.print(map[string]any{"checks": findings}, func(w io.Writer) {
			for _, f := range findings {
				fmt.Fprintf(w, "%-5s %-16s %s\n", f.Verdict, f.Name, f.Reason)
				if f.Fix != "" {
					fmt.Fprintf(w, "      %-16s %s\n", "", f.Fix)
				}
			}
		}); err != nil {
			return err
		}
		if bad > 0 {
			return checkFailed("%d of %d checks failed", bad, len(findings))
		}
		return nil
	}}
	return cmd
}
