package main

import (
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
)

func (a *app) pluginCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "List and reload plugins of a running host"}
	list := &cobra.Command{Use: "list", Short: "List plugins", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var page struct {
			Plugins []core.Plugin `json:"plugins"`
		}
		if err := c.do(cmd.Context(), "GET", "/api/plugins", nil, &page); err != nil {
			return err
		}
		return a.print(page, func(w io.Writer) { printPlugins(w, page.Plugins) })
	}}
	reload := &cobra.Command{Use: "reload [NAME]", Short: "Read the catalog again and swap what changed", Args: cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		path := "/api/plugins/reload"
		if len(args) == 1 {
			path = "/api/plugins/" + url.PathEscape(args[0]) + "/reload"
		}
		var page struct {
			Plugins []core.Plugin `json:"plugins"`
		}
		if err := c.do(cmd.Context(), "POST", path, nil, &page); err != nil {
			return err
		}
		return a.print(page, func(w io.Writer) { printPlugins(w, page.Plugins) })
	}}
	cmd.AddCommand(list, reload)
	return cmd
}

func printPlugins(w io.Writer, plugins []core.Plugin) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, p := range plugins {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d tools\t%s\n", p.Name, p.Kind, p.Version, p.Status, len(p.Tools), p.StatusReason)
	}
	_ = tw.Flush()
}
