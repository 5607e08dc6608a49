package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func newStatus(env *server.Env) *cobra.Command {
	var dir string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the status of the server that uses a data folder",
		Long: `Shows the status of the server that uses the data folder: start time, address, load, and contents.

Exit codes: 0 running and accepting writes; 1 not running, or read-only; 2 usage error.`,
		Example: `  {prog} status --data ./data
  {prog} status --data ./data --json`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return server.Usagef("--data is required")
			}
			s, err := askStatus(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if asJSON {
				err = server.NewJSONEncoder(env.Stdout).Encode(s)
			} else {
				err = printStatus(env.Stdout, &s)
			}
			if err == nil && s.Refuses != "" {
				err = server.ExitError(server.ExitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data `folder`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// askStatus returns the status of the process that has the folder open.
func askStatus(ctx context.Context, dir string) (s control.Status, err error) {
	if !system.IsDir(dir) {
		return s, fmt.Errorf("data folder %s does not exist", dir)
	}
	client := server.Dial(dir)
	defer func() { err = errors.Join(err, client.Close()) }()
	s, err = control.ShowStatus.Do(ctx, client, control.Nothing{})
	if system.IsNotListening(err) {
		err = fmt.Errorf("no server is running on %s", dir)
	}
	return s, err
}

// printStatus prints a status in lines.
func printStatus(w io.Writer, s *control.Status) error {
	writes := "yes"
	if s.Refuses != "" {
		writes = "no: " + strings.TrimSpace(s.Refuses)
	}
	lines := []pair{
		{"program", s.Program + " " + s.Version},
		{"running since", s.Since.Local().Format(time.DateTime)},
		{"URL", s.URL},
		{"accepts writes", writes},
		{"applications", fmt.Sprint(s.Apps)},
		{"calls", fmt.Sprintf("%d in progress", s.Calls)},
		{"pictures", fmt.Sprintf("%d in progress, %d analysed since the start", s.Pictures, s.Analysed)},
		{"store", fmt.Sprintf("%s, %s free on the disk", bytesText(s.DiskBytes), bytesText(s.FreeBytes))},
	}
	if s.Missing > 0 {
		lines = append(lines, pair{"missing", fmt.Sprintf("pictures of %d inputs, which cannot be analysed; the command doctor lists them", s.Missing)})
	}
	if m := s.Module; m != nil {
		lines = append(lines,
			pair{"module", m.SHA256},
			pair{"instances", fmt.Sprintf("%d, using %s of memory", m.Instances, bytesText(m.Bytes))})
	}
	for i := range s.Replicas {
		lines = append(lines, pair{"replica", formatReplica(&s.Replicas[i])})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(table, "%s\t%s\n", l.name, server.Printable(l.value))
	}
	return table.Flush()
}

// keysAge returns a description of the age of a replica's keys and of the consequence.
func keysAge(c *control.ReplicaStatus) string {
	age := "never"
	if d := time.Duration(c.KeysAge) * time.Second; d < 10*365*24*time.Hour {
		age = d.String() + " ago"
	}
	switch c.Admits {
	case "":
	case "reads":
		age += " (too old: only reads are accepted)"
	default:
		age += " (too old: no calls are accepted)"
	}
	return age
}

// formatReplica returns a description of a replica's status.
func formatReplica(c *control.ReplicaStatus) string {
	as := "not in sync since the start"
	if !c.AsOf.IsZero() {
		as = "in sync at " + c.AsOf.Local().Format(time.DateTime)
	}
	line := fmt.Sprintf("%s from %s: %s, entry %d of %d, %s, %d writes pending", c.App, c.Origin, c.Phase, c.Cursor, c.Head, as, c.Pending)
	line += ", keys last verified " + keysAge(c)
	if c.Conflicts > 0 {
		line += fmt.Sprintf(", %d conflicts", c.Conflicts)
	}
	if c.Problem != "" {
		line += ": " + c.Problem
	}
	return line
}
