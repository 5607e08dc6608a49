package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/control"
	"github.com/sightline-dev/sightline/origin/system"
)

func newStatus(env *Env) *cobra.Command {
	var dir string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say how the server is that has a data folder open",
		Long: `Say how the server is that has the data folder open: since when, where it serves, what it works on
and what it holds.

Exit codes: 0 it serves and takes writes, 1 it does not run or takes no writes, 2 the command line is wrong.`,
		Example: `  sightline status --data ./data
  sightline status --data ./data --json`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return Usagef("--data is needed: the data folder")
			}
			s, err := askStatus(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(env.Stdout).Encode(s)
			} else {
				err = tellStatus(env.Stdout, &s)
			}
			if err == nil && s.Refuses != "" {
				err = errTold
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data `folder`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// askStatus asks whoever has the folder open.
func askStatus(ctx context.Context, dir string) (s control.Status, err error) {
	if !system.IsDir(dir) {
		return s, fmt.Errorf("data folder %s: there is none", dir)
	}
	client := Dial(dir)
	defer func() { err = errors.Join(err, client.Close()) }()
	s, err = client.Status(ctx)
	if system.IsGone(err) {
		err = fmt.Errorf("%s: no server has it open", dir)
	}
	return s, err
}

// Dial is the process that has a data folder open. It connects when it is used.
func Dial(dir string) *control.Caller {
	return control.NewCaller(func(ctx context.Context) (net.Conn, error) { return system.DialUnix(ctx, dir, control.Socket) })
}

// tellStatus prints it in lines.
func tellStatus(w io.Writer, s *control.Status) error {
	takes := "yes"
	if s.Refuses != "" {
		takes = "no: " + strings.TrimSpace(s.Refuses)
	}
	lines := []pair{
		{"program", s.Program + " " + s.Version},
		{"since", s.Since.Local().Format(time.DateTime)},
		{"serves", s.URL},
		{"takes writes", takes},
		{"applications", fmt.Sprint(s.Apps)},
		{"calls", fmt.Sprintf("%d under way", s.Calls)},
		{"pictures", fmt.Sprintf("%d under way, %d analysed since the start", s.Pictures, s.Analysed)},
		{"store", fmt.Sprintf("%s, and %s free on its disk", bytesText(s.DiskBytes), bytesText(s.FreeBytes))},
	}
	if m := s.Module; m != nil {
		lines = append(lines,
			pair{"module", m.SHA256},
			pair{"instances", fmt.Sprintf("%d, with %s of memory", m.Instances, bytesText(m.Bytes))})
	}
	for i := range s.Copies {
		lines = append(lines, pair{"copy", tellCopy(&s.Copies[i])})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(table, "%s\t%s\n", l.name, clean(l.value))
	}
	return table.Flush()
}

// keysAge says how old what is known of a copy's keys is, and what follows.
func keysAge(c *control.Copy) string {
	age := "never"
	if d := time.Duration(c.KeysAge) * time.Second; d < 10*365*24*time.Hour {
		age = d.String() + " ago"
	}
	if c.Admits != "" {
		age += " (too old: " + c.Admits + " is let through)"
	}
	return age
}

// tellCopy says how a copy is, and no more than is known.
func tellCopy(c *control.Copy) string {
	as := "never in step since the start"
	if !c.AsOf.IsZero() {
		as = "in step at " + c.AsOf.Local().Format(time.DateTime)
	}
	line := fmt.Sprintf("%s of %s: %s, entry %d of %d, %s, %d writes to be confirmed", c.App, c.Origin, c.Phase, c.Cursor, c.Head, as, c.Pending)
	line += ", keys known as of " + keysAge(c)
	if c.Conflicts > 0 {
		line += fmt.Sprintf(", %d came to nothing", c.Conflicts)
	}
	if c.Problem != "" {
		line += ": " + c.Problem
	}
	return line
}
