package program

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
)

func newEdge(env *server.Env) *cobra.Command {
	return cli.Group("edge", "Manage edges, which hold replicas of applications",
		`Manages edges. An edge is another machine that runs 'sightline-edge serve' with replicas of some
of these applications. It accepts reads and writes, also while this server is unreachable.`,
		newEdgeCreate(env), newEdgeList(env), newEdgeRevoke(env))
}

func newEdgeCreate(env *server.Env) *cobra.Command {
	var e control.NewEdge
	cmd := cli.OnFolder(env, server.Use{}, &cobra.Command{
		Use:   "create NAME",
		Short: "Create an edge and print its enrolment token",
		Long: `Creates an edge and prints its enrolment token, which is not shown again. The edge uses it once,
at its first start within 30 days, and then authenticates with its own key:

    sightline-edge serve --origin URL --token TOKEN --data DIR` + cli.FolderHelp,
		Example: `  {prog} edge create attic --apps 0123456789abcdef0123456789abcdef --data ./data
  {prog} edge create kiosk --data ./data --json`,
		Args: cli.OneArgument("the name"),
	}, "a JSON object with token, edge_id, name and app_ids", func(ctx context.Context, c *cli.FolderCommand, s control.Folder, args []string) error {
		e.Name = args[0]
		if len(e.Apps) == 0 {
			apps, err := control.Apps.Do(ctx, s, control.Nothing{})
			if err != nil {
				return err
			}
			if len(apps) != 1 {
				return server.Usagef("--apps is required: the folder has %d applications (see 'app list')", len(apps))
			}
			e.Apps = []string{apps[0].ID}
		}
		edge, err := control.CreateEdge.Do(ctx, s, e)
		if err != nil {
			return err
		}
		return printToken(c, edge)
	})
	cmd.Flags().StringSliceVar(&e.Apps, "apps", nil, "comma-separated `IDs` of the applications to replicate; optional if there is only one")
	return cmd
}

// printToken prints the enrolment token of a created edge, and nothing else, so that a script can read it.
func printToken(c *cli.FolderCommand, e control.CreatedEdge) error {
	return c.Print(struct {
		Token string   `json:"token"`
		ID    string   `json:"edge_id"`
		Name  string   `json:"name"`
		Apps  []string `json:"app_ids"`
	}{e.Token, e.Record.ID, e.Record.Name, e.Record.Apps}, "%s\n", e.Token)
}

func newEdgeList(env *server.Env) *cobra.Command {
	return cli.OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "list",
		Short:   "List edges",
		Long:    `Lists edges, oldest first, and whether they are enrolled or revoked.` + cli.FolderHelp,
		Example: `  {prog} edge list --data ./data --json`,
		Args:    server.NoArguments,
	}, "one JSON object per line", func(ctx context.Context, c *cli.FolderCommand, s control.Folder, _ []string) error {
		edges, err := control.Edges.Do(ctx, s, control.Nothing{})
		if err != nil {
			return err
		}
		return cli.PrintTable(c, edges, "EDGE_ID\tNAME\tCREATED\tSTATE\tAPP_IDS", func(e control.Edge) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.ID, server.Printable(e.Name), e.Created.Format(time.DateTime), edgeState(e), strings.Join(e.Apps, ","))
		})
	})
}

// edgeState returns the state of an edge as text.
func edgeState(e control.Edge) string {
	switch {
	case !e.Revoked.IsZero():
		return "revoked " + e.Revoked.Format(time.DateTime)
	case !e.Enrolled.IsZero():
		return "enrolled " + e.Enrolled.Format(time.DateTime)
	}
	return "not enrolled"
}

func newEdgeRevoke(env *server.Env) *cobra.Command {
	return cli.OnFolder(env, server.Use{}, &cobra.Command{
		Use:   "revoke EDGE_ID",
		Short: "Permanently revoke an edge",
		Long: `Revokes an edge, given its ID (see '{prog} edge list') or a unique prefix of at least 8 digits.
The origin rejects all its requests; at its next connection the edge deletes its replicas.` + cli.FolderHelp,
		Example: `  {prog} edge revoke 0123456789abcdef0123456789abcdef --data ./data`,
		Args:    cli.OneArgument("the edge_id"),
	}, "the revoked edge as a JSON object", func(ctx context.Context, c *cli.FolderCommand, s control.Folder, args []string) error {
		edges, err := control.Edges.Do(ctx, s, control.Nothing{})
		if err != nil {
			return err
		}
		e, err := chosenEdge(edges, args[0])
		if err != nil {
			return err
		}
		if e, err = control.RevokeEdge.Do(ctx, s, control.ID{ID: e.ID}); err != nil {
			return err
		}
		return c.Print(e, "revoked %s, %s\n", e.ID, server.Printable(e.Name))
	})
}

// chosenEdge returns the edge whose ID begins with text. Its errors do not repeat text that may be a token.
func chosenEdge(edges []control.Edge, text string) (control.Edge, error) {
	id := strings.ToLower(strings.TrimSpace(text))
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) < 8 || len(id) > 32 {
		return control.Edge{}, server.Usagef("not an edge ID (8 to 32 hex digits; see 'edge list')")
	}
	var found []control.Edge
	for _, e := range edges {
		if strings.HasPrefix(e.ID, id) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return control.Edge{}, server.Usagef("no edge with ID %s (see 'edge list')", id)
	case 1:
		return found[0], nil
	}
	return control.Edge{}, server.Usagef("edge ID %s is ambiguous: %d edges match; give more digits", id, len(found))
}
