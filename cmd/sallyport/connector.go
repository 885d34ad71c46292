package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sallyport-dev/sallyport/core"
)

func (a *app) connectorCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "connector", Short: "List, connect and read connectors of a running host"}
	list := &cobra.Command{Use: "list", Short: "List connectors and their status", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var page struct {
			Connectors []core.Connector `json:"connectors"`
		}
		if err := c.do(cmd.Context(), "GET", "/api/connectors", nil, &page); err != nil {
			return err
		}
		return a.print(page, func(w io.Writer) {
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, con := range page.Connectors {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", con.Provider, con.Status, con.Account, con.Title)
			}
			_ = tw.Flush()
		})
	}}

	var name string
	var fields, audiences []string
	connect := &cobra.Command{
		Use: "connect PROVIDER", Short: "Connect a provider", Args: cobra.ExactArgs(1),
		Example: "  sallyport connector connect smtp --field host=mail.example.com --field port=587 --field username=me --field password=@pass.txt --field from='Me <me@example.com>'\n" +
			"  sallyport connector connect webhook --name changelog --field url=https://example.com/hooks/changelog",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{}
			values := map[string]string{}
			for _, field := range fields {
				key, value, err := keyValue(field)
				if err != nil {
					return err
				}
				values[key] = value
			}
			body["fields"] = values
			if name != "" {
				body["name"] = name
			}
			var lists []map[string]any
			for _, audience := range audiences {
				key, value, err := keyValue(audience)
				if err != nil {
					return err
				}
				basis, addresses, ok := strings.Cut(value, ":")
				if !ok {
					return usagef("--audience %s: write NAME=LAWFUL_BASIS:address,address", audience)
				}
				lists = append(lists, map[string]any{"name": key, "lawfulBasis": basis, "addresses": strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })})
			}
			if lists != nil {
				body["audiences"] = lists
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			var con core.Connector
			if err := c.do(cmd.Context(), "PUT", "/api/connectors/"+url.PathEscape(args[0]), body, &con); err != nil {
				return err
			}
			return a.print(con, func(w io.Writer) { fmt.Fprintf(w, "%s is %s as %s\n", con.Provider, con.Status, con.Account) })
		},
	}
	connect.Flags().StringVar(&name, "name", "", "name, for connectors that take several")
	connect.Flags().StringArrayVar(&fields, "field", nil, "KEY=VALUE, or KEY=@FILE to read the value from a file")
	connect.Flags().StringArrayVar(&audiences, "audience", nil, "NAME=LAWFUL_BASIS:address,address, or NAME=@FILE")

	snapshot := &cobra.Command{Use: "snapshot PROVIDER", Short: "Read a connector, or show how to connect it", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := c.do(cmd.Context(), "POST", "/api/connectors/"+url.PathEscape(args[0])+"/snapshot", nil, &raw); err != nil {
			return err
		}
		return a.print(raw, nil)
	}}
	cmd.AddCommand(list, connect, snapshot)
	return cmd
}

// keyValue splits KEY=VALUE; a value of @FILE is the text of the file.
func keyValue(pair string) (key, value string, err error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return "", "", usagef("%q is not KEY=VALUE", pair)
	}
	if file, ok := strings.CutPrefix(value, "@"); ok {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", "", usage(err)
		}
		value = strings.TrimRight(string(b), "\r\n")
	}
	return key, value, nil
}
