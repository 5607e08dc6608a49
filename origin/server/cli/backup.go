package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/sightline-dev/sightline/core"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// copyProgress shows the progress of copying a folder.
type copyProgress struct {
	*Progress
	env   *server.Env
	quiet bool
}

func (c *copyProgress) report(done, total control.BackupStats) {
	if c.Progress == nil {
		c.Progress = NewProgress(c.env.Stderr, ProgressOptions{Verb: "copying", Noun: "pictures", Total: total.Files, Quiet: c.quiet, Shared: server.IsTerminal(c.env.Stdout)})
	}
	for c.Done < done.Files {
		c.Step(nil)
	}
}

func (c *copyProgress) end(done control.BackupStats) {
	if c.Progress != nil {
		c.report(done, done)
		c.Finish()
	}
}

func newBackup(env *server.Env) *cobra.Command {
	var dir string
	quiet, noVerify := false, false
	cmd := &cobra.Command{
		Use:   "backup TO",
		Short: "Back up a data folder, without stopping the server",
		Long: `Backs up a data folder into the new folder TO: a consistent snapshot of all records with their
pictures. The server keeps running. Pictures are verified while copying, then the whole backup
is checked as by '{prog} doctor', unless --no-verify is given.

The backup contains secrets: hashes of keys, and of an edge that joined an origin the private
key that it is known by there. Its files are readable by their owner alone; keep it so.

'{prog} restore' restores it into a new data folder.` + FolderHelp,
		Example: `  {prog} backup /backup/today --data ./data`,
		Args:    OneArgument("the new folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			c := copyProgress{env: env, quiet: quiet}
			var copied control.BackupStats
			err = withFolder(cmd.Context(), dir, env, server.Use{}, func(s control.Folder) (err error) {
				copied, err = s.Backup(cmd.Context(), to, c.report)
				return err
			})
			if err != nil {
				return fmt.Errorf("backup to %s failed: %w", to, err)
			}
			c.end(copied)
			if !noVerify {
				if err := verifyBackup(cmd.Context(), to); err != nil {
					return err
				}
			}
			if quiet {
				return nil
			}
			_, err = fmt.Fprintf(env.Stdout, "%s: database and %d pictures, %s\n", to, copied.Files, bytesText(copied.Bytes))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "data `folder`")
	f.BoolVar(&noVerify, "no-verify", false, "skip the check of the backup")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// verifyBackup checks a backup like a data folder.
func verifyBackup(ctx context.Context, name string) (err error) {
	space, err := modelSpace()
	if err != nil {
		return err
	}
	f, err := data.Open(name, data.Options{MinFree: 1})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	report, err := f.Check(ctx, data.CheckOptions{Space: space})
	if err == nil && !report.OK() {
		err = fmt.Errorf("%s has problems: %s", name, report.Findings[0].Text)
	}
	return err
}

func bytesText(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, names := float64(n), "KMGT"
	for i := range len(names) {
		if size /= unit; size < unit || i == len(names)-1 {
			return fmt.Sprintf("%.1f %cB", size, names[i])
		}
	}
	panic("not reached")
}

func newRestore(env *server.Env) *cobra.Command {
	var dir string
	quiet := false
	cmd := &cobra.Command{
		Use:   "restore FROM",
		Short: "Restore a backup into a new data folder",
		Long: `Restores the backup FROM into the new folder --data. The backup is not changed. API keys stay
valid. Existing replicas detect that the log has a new epoch and download a new snapshot.

A restored edge joins its origin again by itself, as a newer life of the same edge. If the
edge that was backed up still runs, its origin refuses what that writes from then on, and
keeps it as conflicts.`,
		Example: `  {prog} restore /backup/today --data ./data`,
		Args:    OneArgument("the backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return server.Usagef("--data is required: the new data folder")
			}
			c := copyProgress{env: env, quiet: quiet}
			copied, err := data.Restore(cmd.Context(), args[0], dir, c.report)
			if err != nil {
				return err
			}
			c.end(copied)
			if quiet {
				return nil
			}
			_, err = fmt.Fprintf(env.Stdout, "%s: database and %d pictures, %s\n", dir, copied.Files, bytesText(copied.Bytes))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "new data `folder`")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// modelSpace returns the space of this program's indexes.
func modelSpace() (index.Space, error) {
	set, err := predict.Load(models.FS)
	if err != nil {
		return index.Space{}, err
	}
	return core.SpaceOf(set), nil
}

type doctorFlags struct {
	dir    string
	repair bool
	asJSON bool
	quiet  bool
}

func newDoctor(env *server.Env) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a data folder, and repair it with --repair",
		Long: `Reads the whole data folder and reports problems:

  store     each block of each database file matches its checksum
  log       each entry is readable, and the chain of digests is complete
  state     the records are those that the log gives, and the counts are correct
  index     the search index matches the records, and its graph is complete
  pictures  each file matches its hash, and each input has its picture; in a replica, each
            picture exists that the origin does not have yet

--repair rebuilds indexes from records, and records from the log, where they differ. If
everything else could be read, it also removes unreferenced pictures. It never removes data that
an input, model or log entry refers to. Stop the server first.

Without --repair the server can keep running: the check then reads a snapshot.

Exit codes: 0 no problems, or all repaired; 1 problems remain, or the check failed; 2 usage
error.`,
		Example: `  {prog} doctor --data ./data
  {prog} doctor --data ./data --repair --json`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "data", "", "data `folder`")
	flags.BoolVar(&f.repair, "repair", false, "repair problems")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as a JSON object")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print problems only")
	return cmd
}

func (f *doctorFlags) run(ctx context.Context, env *server.Env) error {
	if f.dir == "" {
		return server.Usagef("--data is required")
	}
	if !system.IsDir(f.dir) {
		return fmt.Errorf("data folder %s does not exist", f.dir)
	}
	space, err := modelSpace()
	if err != nil {
		return err
	}
	o := data.CheckOptions{Space: space, Repair: f.repair}
	if !f.quiet && !f.asJSON {
		o.Progress = func(part string) { fmt.Fprintf(env.Stderr, "checking %s\n", part) }
	}
	report, err := f.check(ctx, o, env)
	if err != nil {
		return err
	}
	if err := f.printReport(&report, env.Stdout); err != nil {
		return err
	}
	if !report.OK() {
		return server.ExitError(server.ExitFailed)
	}
	return nil
}

// check checks the folder. If another process has the folder open, it checks a copy of the store.
func (f *doctorFlags) check(ctx context.Context, o data.CheckOptions, env *server.Env) (report data.Report, err error) {
	options := env.Data
	options.Log = slog.New(slog.DiscardHandler)
	folder, err := data.Open(f.dir, options)
	switch {
	case err == nil:
		report, err = folder.Check(ctx, o)
		return report, errors.Join(err, folder.Close())
	case errors.Is(err, data.ErrUnwritable):
		return report, err
	case !errors.Is(err, system.ErrLocked):
		// If the store does not open, that is the finding.
		return data.Report{Findings: []data.Finding{{Part: "store", Text: err.Error()}}}, nil
	case f.repair:
		return report, fmt.Errorf("--repair: stop the server first: %w", err)
	}
	service, done, err := server.Attach(ctx, f.dir, env, server.Use{})
	if err != nil {
		return report, err
	}
	report, err = data.CheckInUse(ctx, f.dir, func(to string) error {
		_, err := control.Checkpoint.Do(ctx, service, control.Target{To: to})
		return err
	}, o)
	return report, errors.Join(err, done())
}

// printReport prints a report.
func (f *doctorFlags) printReport(r *data.Report, w io.Writer) error {
	if f.asJSON {
		if r.Findings == nil {
			r.Findings = []data.Finding{}
		}
		return server.NewJSONEncoder(w).Encode(struct {
			Sound bool `json:"sound"`
			*data.Report
		}{r.OK(), r})
	}
	for _, x := range r.Findings {
		state := "PROBLEM"
		switch {
		case x.Repaired:
			state = "repaired"
		case x.Harmless:
			state = "harmless"
		}
		location := x.Part
		if x.App != "" {
			location += " of " + x.App
		}
		fmt.Fprintf(w, "%s: %s: %s\n", state, location, server.Printable(x.Text))
	}
	if f.quiet {
		return nil
	}
	c := r.Checked
	fmt.Fprintf(w, "read %d database keys, %d log entries, %d applications, %d inputs and %d pictures (%s)\n", c.Keys, c.Entries, c.Apps, c.Inputs, c.Pictures, bytesText(c.Bytes))
	verdict := "the folder has no problems"
	if !r.OK() {
		verdict = "the folder has problems"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
