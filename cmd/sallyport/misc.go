package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core/server"
)

func (a *app) configCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	show := &cobra.Command{Use: "show", Short: "Print every value with its origin; secrets are masked", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		_, shown, err := a.config()
		if err != nil {
			return err
		}
		return a.print(map[string]any{"settings": shown}, func(w io.Writer) {
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, s := range shown {
				fmt.Fprintf(tw, "%s\t%v\t%s\n", s.Key, s.Value, s.Origin)
			}
			_ = tw.Flush()
		})
	}}
	cmd.AddCommand(show)
	return cmd
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		v := map[string]string{"version": server.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
		return a.print(v, func(w io.Writer) { fmt.Fprintln(w, "sallyport", v["version"], v["go"], v["platform"]) })
	}}
}

func (a *app) openapiCmd() *cobra.Command {
	return &cobra.Command{Use: "openapi", Short: "Print the REST description", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		cfg, _, err := a.config()
		if err != nil {
			return err
		}
		_, err = a.out.Write(server.OpenAPI(cfg.BaseURL))
		return err
	}}
}
