package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/server"
)

// withCore runs do on the opened data directory or database, beside a running host.
func (a *app) withCore(ctx context.Context, do func(*server.Core) error) error {
	cfg, _, err := a.config()
	if err != nil {
		return err
	}
	c, err := server.Open(ctx, cfg, server.NewLogger(cfg, a.errOut), a.getenv)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// password reads a password: from standard input when asked to, else from the terminal, twice.
func (a *app) password(fromStdin bool) (string, error) {
	if fromStdin {
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", usagef("no terminal to ask for a password: use --password-stdin")
	}
	var typed [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(a.errOut, prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.errOut)
		if err != nil {
			return "", err
		}
		typed[i] = string(b)
	}
	if typed[0] != typed[1] {
		return "", usagef("the two passwords differ")
	}
	return typed[0], nil
}

func (a *app) initCmd() *cobra.Command {
	var in server.Init
	var stdin bool
	cmd := &cobra.Command{Use: "init", Short: "Set up the installation: its first owner", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		var err error
		if in.Password, err = a.password(stdin); err != nil {
			return err
		}
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			user, err := c.Auth.Init(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.print(user, func(w io.Writer) {
				fmt.Fprintf(w, "%s owns this installation. Next: sallyport serve\n", user.Email)
			})
		})
	}}
	cmd.Flags().StringVar(&in.Email, "email", "", "e-mail of the owner")
	cmd.Flags().StringVar(&in.Name, "name", "", "name of the owner")
	cmd.Flags().StringVar(&in.Workspace, "workspace", "", "name of the workspace")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}

func (a *app) tokenCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Mint access tokens for scripts"}
	var email string
	var scopes []string
	create := &cobra.Command{Use: "create", Short: "Print an access token; it counts as a sign-in of this minute", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), email)
			if err != nil {
				return err
			}
			token, err := c.Auth.MintToken(cmd.Context(), p, scopes...)
			if err != nil {
				return err
			}
			return a.print(token, func(w io.Writer) { fmt.Fprintln(w, token.Token) })
		})
	}}
	create.Flags().StringVar(&email, "email", "", "the person; the first owner when absent")
	create.Flags().StringArrayVar(&scopes, "scope", nil, "narrow the token to these scopes")
	cmd.AddCommand(create)
	return cmd
}

func (a *app) keyCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Make, list and revoke API keys"}
	var in server.NewKey
	var kind, email string
	var days int
	create := &cobra.Command{Use: "create", Short: "Make a key; it is shown once", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		in.Kind = core.APIKeyKind(kind)
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), email)
			if err != nil {
				return err
			}
			if days > 0 {
				at := c.Clock.Now().AddDate(0, 0, days)
				in.ExpiresAt = &at
			}
			key, err := c.Auth.CreateKey(cmd.Context(), p, in)
			if err != nil {
				return err
			}
			return a.print(key, func(w io.Writer) { fmt.Fprintln(w, *key.Key) })
		})
	}}
	create.Flags().StringVar(&in.Name, "name", "", "what it is for")
	create.Flags().StringVar(&kind, "kind", "agent", "agent (never decides) or service")
	create.Flags().StringArrayVar(&in.Scopes, "scope", nil, "scopes; a sensible set when absent")
	create.Flags().IntVar(&days, "days", 0, "days until it expires; never when 0")
	create.Flags().StringVar(&email, "email", "", "owner of the key; the first owner when absent")
	_ = create.MarkFlagRequired("name")

	list := &cobra.Command{Use: "list", Short: "List keys", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), email)
			if err != nil {
				return err
			}
			page, err := c.Auth.Keys(cmd.Context(), p, core.Query{Limit: core.MaxLimit})
			if err != nil {
				return err
			}
			return a.print(map[string]any{"keys": page.Items}, func(w io.Writer) {
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, k := range page.Items {
					state := "live"
					if k.RevokedAt != nil {
						state = "revoked"
					}
					used := "never used"
					if k.LastUsedAt != nil {
						used = "used " + k.LastUsedAt.Format(time.RFC3339)
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Kind, k.Name, state, used)
				}
				_ = tw.Flush()
			})
		})
	}}
	revoke := &cobra.Command{Use: "revoke ID", Short: "Revoke a key at its next request", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), email)
			if err != nil {
				return err
			}
			if err := c.Auth.RevokeKey(cmd.Context(), p, args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"revoked": args[0]}, func(w io.Writer) { fmt.Fprintln(w, args[0], "is revoked") })
		})
	}}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

func (a *app) userCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Add and list people, reset passwords"}
	var in server.NewUser
	var role string
	var stdin bool
	add := &cobra.Command{Use: "add", Short: "Add a person", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		var err error
		if in.Password, err = a.password(stdin); err != nil {
			return err
		}
		in.Role = core.UserRole(role)
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), "")
			if err != nil {
				return err
			}
			user, err := c.Auth.AddUser(cmd.Context(), p, in)
			if err != nil {
				return err
			}
			return a.print(user, func(w io.Writer) { fmt.Fprintf(w, "%s is %s\n", user.Email, user.Role) })
		})
	}}
	add.Flags().StringVar(&in.Email, "email", "", "e-mail")
	add.Flags().StringVar(&in.Name, "name", "", "name")
	add.Flags().StringVar(&role, "role", "member", "owner, approver, member or viewer")
	add.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	_ = add.MarkFlagRequired("email")

	list := &cobra.Command{Use: "list", Short: "List people", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), "")
			if err != nil {
				return err
			}
			page, err := c.Auth.Users(cmd.Context(), p, core.Query{Limit: core.MaxLimit})
			if err != nil {
				return err
			}
			return a.print(map[string]any{"users": page.Items}, func(w io.Writer) {
				for _, u := range page.Items {
					fmt.Fprintf(w, "%s  %-8s  %s\n", u.ID, u.Role, u.Email)
				}
			})
		})
	}}
	var resetStdin bool
	reset := &cobra.Command{Use: "reset EMAIL", Short: "Give a person a new password and end their sessions", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		password, err := a.password(resetStdin)
		if err != nil {
			return err
		}
		return a.withCore(cmd.Context(), func(c *server.Core) error {
			p, err := c.Auth.OnThisMachine(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := c.Auth.SetPassword(cmd.Context(), p, p.ID, password); err != nil {
				return err
			}
			return a.print(map[string]string{"reset": p.ID}, func(w io.Writer) { fmt.Fprintln(w, "The password of", p.Label, "is new; their sessions have ended.") })
		})
	}}
	reset.Flags().BoolVar(&resetStdin, "password-stdin", false, "read the password from standard input")
	cmd.AddCommand(add, list, reset)
	return cmd
}
