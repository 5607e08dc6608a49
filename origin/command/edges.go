package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/control"
)

func newEdge(env *Env) *cobra.Command {
	return group("edge", "Make, list and revoke edges, which hold copies of applications",
		`Make, list and revoke edges. An edge is another machine that runs 'sightline-edge serve' and holds
copies of some of this folder's applications: it answers for them, takes writes, and goes on with
both while this server cannot be reached.`,
		newEdgeCreate(env), newEdgeList(env), newEdgeRevoke(env))
}

func newEdgeCreate(env *Env) *cobra.Command {
	c := &common{env: env}
	var e control.NewEdge
	cmd := c.flags(&cobra.Command{
		Use:   "create NAME",
		Short: "Make an edge and print the token that it enrols with, once",
		Long: `Make an edge that may hold applications, and print its token. It is shown only now. The edge enrols
with it once, at its first start, and goes on with a key of its own:

    sightline-edge serve --origin URL --token TOKEN --data DIR` + folderHelp,
		Example: `  sightline edge create attic --apps 0123456789abcdef0123456789abcdef --data ./data
  sightline edge create kiosk --data ./data --json`,
		Args: one("name"),
	}, "a JSON object with token, edge_id, name and app_ids")
	cmd.Flags().StringSliceVar(&e.Apps, "apps", nil, "`ids` of the applications that it may hold, separated by commas; not needed where there is one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e.Name = args[0]
		return c.with(cmd, func(ctx context.Context, s control.Service) error {
			if len(e.Apps) == 0 {
				apps, err := s.Apps(ctx)
				if err != nil {
					return err
				}
				if len(apps) != 1 {
					return Usagef("--apps is needed: the folder holds %d applications, which 'app list' shows", len(apps))
				}
				e.Apps = []string{apps[0].ID}
			}
			token, record, err := s.CreateEdge(ctx, e)
			if err != nil {
				return err
			}
			return c.tellToken(token, record)
		})
	}
	return cmd
}

// tellToken prints the token of an edge that was made: alone, so that a script can take it as it is.
func (c *common) tellToken(token string, e control.Edge) error {
	if !c.asJSON {
		_, err := fmt.Fprintln(c.env.Stdout, token)
		return err
	}
	return json.NewEncoder(c.env.Stdout).Encode(struct {
		Token string   `json:"token"`
		ID    string   `json:"edge_id"`
		Name  string   `json:"name"`
		Apps  []string `json:"app_ids"`
	}{token, e.ID, e.Name, e.Apps})
}

func newEdgeList(env *Env) *cobra.Command {
	c := &common{env: env}
	cmd := c.flags(&cobra.Command{
		Use:     "list",
		Short:   "List the edges",
		Long:    `List the edges, the oldest first, and whether they have enrolled or were revoked.` + folderHelp,
		Example: `  sightline edge list --data ./data --json`,
		Args:    NoArguments,
	}, "one JSON object a line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd, func(ctx context.Context, s control.Service) error {
			edges, err := s.Edges(ctx)
			if err != nil {
				return err
			}
			return list(cmd.OutOrStdout(), c.asJSON, edges, "EDGE_ID\tNAME\tCREATED\tSTATE\tAPP_IDS", func(e control.Edge) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.ID, clean(e.Name), e.Created.Format(time.DateTime), edgeState(e), strings.Join(e.Apps, ","))
			})
		})
	}
	return cmd
}

// edgeState is how far an edge has come, in words.
func edgeState(e control.Edge) string {
	switch {
	case !e.Revoked.IsZero():
		return "revoked " + e.Revoked.Format(time.DateTime)
	case !e.Enrolled.IsZero():
		return "enrolled " + e.Enrolled.Format(time.DateTime)
	}
	return "not enrolled"
}

func newEdgeRevoke(env *Env) *cobra.Command {
	c := &common{env: env}
	cmd := c.flags(&cobra.Command{
		Use:   "revoke EDGE_ID",
		Short: "Shut an edge out for ever",
		Long: `Shut an edge out, given by the id that 'sightline edge list' shows: all 32 digits of it, or at least
8 where no other begins so. Nothing that it sends from then on is taken, and at its next contact it is
told to give up what it holds.` + folderHelp,
		Example: `  sightline edge revoke 0123456789abcdef0123456789abcdef --data ./data`,
		Args:    one("edge_id"),
	}, "the edge's record as a JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.with(cmd, func(ctx context.Context, s control.Service) error {
			edges, err := s.Edges(ctx)
			if err != nil {
				return err
			}
			e, err := chosenEdge(edges, args[0])
			if err != nil {
				return err
			}
			if e, err = s.RevokeEdge(ctx, e.ID); err != nil {
				return err
			}
			if c.asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked %s, %s\n", e.ID, clean(e.Name))
			return err
		})
	}
	return cmd
}

// chosenEdge finds the edge that the operator means by the beginning of its id. A token is not repeated.
func chosenEdge(edges []control.Edge, text string) (control.Edge, error) {
	id := strings.ToLower(strings.TrimSpace(text))
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) < 8 || len(id) > 32 {
		return control.Edge{}, Usagef("this is not the id of an edge: 8 to 32 of the hex digits that 'edge list' shows")
	}
	var found []control.Edge
	for _, e := range edges {
		if strings.HasPrefix(e.ID, id) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return control.Edge{}, Usagef("the folder knows no edge with the id %s", id)
	case 1:
		return found[0], nil
	}
	return control.Edge{}, Usagef("%d edges have ids that begin with %s; give more of it", len(found), id)
}
