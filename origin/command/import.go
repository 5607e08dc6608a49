package command

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/collection"
	"github.com/sightline-dev/sightline/origin/fetch"
	"github.com/sightline-dev/sightline/origin/system"
)

type importFlags struct {
	where
	parallel int
	folders  bool
	noWait   bool
	asJSON   bool
	quiet    bool
}

func newImport(env *Env) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import DIR|FILE.jsonl|FILE.csv|FILE.zip",
		Short: "Add pictures, and what is said of them, to an application",
		Long: `Add inputs to an application: pictures of a folder, the lines of a .jsonl file, the rows of a
.csv file, or an archive of these. An export, as folder or archive, brings its concepts, models
and workflows with it.

  DIR      every picture below it, found by its content; its id is its path below DIR. With
           --folder-concepts the first folder of the path is a concept of the picture. A folder
           that holds inputs.jsonl or inputs.csv is read by that.
  .jsonl   one input a line, as POST /v2/inputs takes it, or flat:
             {"id":"a","url":"https://…"}          or "path", below the file's folder, or "base64"
             {"id":"b","path":"b.jpg","concepts":["cat",{"id":"dog","value":false}],
              "metadata":{"shelf":7},"geo":{"longitude":11.6,"latitude":48.1},"crop":[0,0,1,0.5]}
  .csv     a header and a row for each input; columns are id, url or path, concepts and
           not_concepts (separated by semicolons), lat, lon, and metadata.NAME for members of the
           metadata; numbers, true and false are taken as such, everything else as text
  .zip     a folder, packed

An input without an id gets one that depends on the source alone. Inputs that the application has
already, by id, are left as they are: an import that was interrupted goes on when the same
command is given again. Pictures behind addresses are downloaded by the server; the command
waits until that has ended too, unless --no-wait is given.

Exit codes: 0 everything is there, 1 nothing worked or the import was broken off, 2 the command
line is wrong, 3 some inputs failed.` + whereHelp,
		Example: `  sightline import photos/ --data ./data
  sightline import inputs.jsonl --url http://127.0.0.1:8080 --key 0123456789abcdef0123456789abcdef
  sightline import export.zip --data ./other --app 0123456789abcdef0123456789abcdef`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("one source is needed: a folder, .jsonl, .csv or .zip")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.parallel < 0 || f.parallel > 16 {
				return Usagef("--parallel %d: 1 to 16", f.parallel)
			}
			return runImport(cmd.Context(), &f, args[0], env)
		},
	}
	f.flags(cmd, env)
	flags := cmd.Flags()
	flags.IntVar(&f.parallel, "parallel", 0, "`calls` at once (default: 2; 1, which keeps the order, for an export)")
	flags.BoolVar(&f.folders, "folder-concepts", false, "label the pictures of a folder with the first folder of their path")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait for the server's downloads")
	flags.BoolVar(&f.asJSON, "json", false, "print the sum as a JSON object")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// openSource opens what a person named.
func openSource(name string, o collection.Options) (s *collection.Source, done func() error, err error) {
	files := collection.Files{IsPicture: fetch.LooksLikePicture}
	done = func() error { return nil }
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case system.IsDir(name):
		files.FS = system.DirFS(name)
		name = ""
	case ext == ".zip":
		archive, err := zip.OpenReader(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		files.FS, name, done = archive, "", archive.Close
	default:
		dir := filepath.Dir(name)
		files.FS = system.DirFS(dir)
		files.ReadFile = func(path string, limit int64) ([]byte, error) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			return system.ReadFile(path, limit)
		}
		name = filepath.Base(name)
	}
	if s, err = collection.Open(files, name, o); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return s, done, nil
}

func runImport(ctx context.Context, f *importFlags, name string, env *Env) (err error) {
	source, done, err := openSource(name, collection.Options{FolderConcepts: f.folders})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	_, isExport, err := source.Manifest()
	if err != nil {
		return err
	}
	total, err := source.Count()
	if err != nil {
		return err
	}
	s, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	im := &importer{session: s, source: source, parallel: f.parallel}
	if im.parallel == 0 {
		im.parallel = 2
		if isExport {
			im.parallel = 1
		}
	}
	im.progress = newProgress(env.Stderr, "importing", "inputs", total, f.quiet, isTerminal(env.Stdout))
	err = im.run(ctx, !f.noWait)
	im.progress.finish()
	if err := im.tell(env.Stdout, f.asJSON); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d of %d inputs; the same command goes on from here", im.progress.done, total)
	case err != nil:
		return err
	case im.sum.Failed > 0 && im.sum.Failed == total:
		return errTold
	case im.sum.Failed > 0:
		return errSome
	}
	return nil
}

// sum is what became of an import.
type sum struct {
	Inputs    int `json:"inputs"`  // looked at
	Added     int `json:"added"`   // now
	There     int `json:"there"`   // before
	Failed    int `json:"failed"`  // told, one by one
	Pending   int `json:"pending"` // of the added: not downloaded yet
	Concepts  int `json:"concepts,omitempty"`
	Models    int `json:"models,omitempty"`
	Workflows int `json:"workflows,omitempty"`
}

// tell prints the sum.
func (im *importer) tell(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(im.sum)
	}
	if im.progress.quiet {
		return nil
	}
	text := fmt.Sprintf("%d added, %d were there, %d failed", im.sum.Added, im.sum.There, im.sum.Failed)
	if im.sum.Pending > 0 {
		text += fmt.Sprintf(", %d are being downloaded", im.sum.Pending)
	}
	for _, n := range []struct {
		n    int
		noun string
	}{{im.sum.Concepts, "concepts"}, {im.sum.Models, "models"}, {im.sum.Workflows, "workflows"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s made", n.n, n.noun)
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
