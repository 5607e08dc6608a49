package cli

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/system"
)

type importFlags struct {
	target
	parallel int
	folders  bool
	hidden   bool
	noPlaces bool
	sidecars bool
	noWait   bool
	asJSON   bool
	quiet    bool
}

const importHelp = `Imports pictures from a folder, a .jsonl or .csv file, or a .zip of these. An export also brings
its concepts, models and workflows.

  DIR      all pictures below it, recognised by their content; the ID of each is its path below
           DIR. With --label-by-folder the first folder of the path is a label of the picture.
           If the folder has an inputs.jsonl or inputs.csv, only the inputs in that file are read.
           Links are followed within DIR, to each file once.
  .jsonl   one input per line, in the form of POST /v2/inputs, or flat:
             {"id":"a","url":"https://…"}          or "path", below the file's folder, or "base64"
             {"id":"b","path":"b.jpg","concepts":["cat",{"id":"dog","value":false}],
              "metadata":{"shelf":7},"geo":{"longitude":11.6,"latitude":48.1},"crop":[0,0,1,0.5]}
  .csv     a header and one row per input; columns are id, url or path, concepts and not_concepts
           (separated by semicolons), lat, lon, and metadata.NAME for members of the metadata.
           Numbers, true and false are read as such, everything else as text. Commas, semicolons
           or tabs separate the cells. Where commas do not, lat and lon may have decimal commas.
  .zip     a zipped folder

Lists are UTF-8, or UTF-16 with a byte order mark. They may also be named .ndjson and .tsv.

An input gets the location that the EXIF or XMP of its file has, unless the list has one or
--no-location is given. An export keeps its own locations. The date of a file is always read.

Files and folders that cannot be read are named, and all others are imported. Sidecars (.xmp,
.aae, .json), thumbnails of a NAS, hidden files, files of operating systems and files of unknown
formats are left out and counted. --hidden imports hidden files.

--sidecars reads the XMP (IMG_1.xmp, IMG_1.jpg.xmp) and the JSON of Google Takeout
(IMG_1.jpg.json, IMG_1.jpg.supplemental-metadata.json) next to a picture: keywords become labels,
the date and the description the members "taken" and "description" of the metadata, the place
the location. The date of Google's JSON is in UTC.

Inputs without an ID get one derived from the source. Inputs whose ID already exists with the
same picture are skipped, so you can rerun an import. If the ID belongs to another picture, the
new one gets the ID, "~" and the first eight digits of its SHA-256. The metadata get the path of
each file as "file", unless the list has that member. The server downloads pictures given by
URL; the command waits for these downloads unless --no-wait is given. Control characters in the
names of an export's concepts and models become spaces.

Exit codes: 0 everything imported; 1 all inputs failed, or the import stopped early; 2 usage
error; 3 some inputs failed, or some files could not be read.`

func newImport(env *server.Env) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import DIR|FILE.jsonl|FILE.csv|FILE.zip",
		Short: "Import pictures with labels and metadata",
		Long:  importHelp + targetHelp,
		Example: `  {prog} import photos/ --data ./data
  {prog} import inputs.jsonl --url http://127.0.0.1:8080 --key 0123456789abcdef0123456789abcdef
  {prog} import export.zip --data ./other --app 0123456789abcdef0123456789abcdef`,
		Args: OneArgument("a folder, or a .jsonl, .csv or .zip file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.parallel < 0 || f.parallel > 16 {
				return server.Usagef("--parallel %d: must be 1 to 16", f.parallel)
			}
			return runImport(cmd.Context(), &f, args[0], env)
		},
	}
	f.flags(cmd, env)
	flags := cmd.Flags()
	flags.IntVar(&f.parallel, "parallel", 0, "parallel `calls` (default: 2; 1 for an export, to keep the order)")
	flags.BoolVar(&f.folders, "label-by-folder", false, "use the top-level folder name as a label")
	flags.BoolVar(&f.hidden, "hidden", false, "import hidden files, too")
	flags.BoolVar(&f.sidecars, "sidecars", false, "read dates, places, descriptions and keywords from .xmp and .json files")
	flags.BoolVar(&f.noPlaces, "no-location", false, "do not read locations from the files of pictures")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait for the server's downloads")
	flags.BoolVar(&f.asJSON, "json", false, "print the summary as a JSON object")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// openSource opens the folder, archive or file with the given name. The caller must call done.
func openSource(name string, o collection.Options) (s *collection.Source, done func() error, err error) {
	files := collection.Files{IsPicture: IsPicture}
	done = func() error { return nil }
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case system.IsDir(name):
		tree, err := system.OpenTree(name)
		if err != nil {
			return nil, nil, err
		}
		dir := name
		files.FS, name, done = tree, "", tree.Close
		files.ReadFile = func(path string, limit int64) ([]byte, error) { // a list may name files behind links out of the folder
			if !filepath.IsLocal(path) {
				return nil, fmt.Errorf("%s: not below the folder", path)
			}
			return system.ReadFile(filepath.Join(dir, path), limit)
		}
	case ext == ".zip":
		archive, err := zip.OpenReader(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		files.FS, name, done = collection.OpenZip(&archive.Reader), "", archive.Close
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

func runImport(ctx context.Context, f *importFlags, name string, env *server.Env) (err error) {
	source, done, err := openSource(name, collection.Options{FolderConcepts: f.folders, Hidden: f.hidden, Sidecars: f.sidecars, NoPlaces: f.noPlaces})
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
	im := newImporter(s, source, total)
	im.keepPaths, im.readPlaces = !isExport, !isExport && !f.noPlaces
	if isExport {
		im.parallel = 1
	}
	im.parallel = cmp.Or(f.parallel, im.parallel)
	im.progress = NewProgress(env.Stderr, ProgressOptions{Verb: "importing", Noun: "inputs", Total: total, Quiet: f.quiet, Shared: server.IsTerminal(env.Stdout)})
	err = im.run(ctx, !f.noWait)
	im.progress.Finish()
	if err := im.printSummary(env.Stdout, f.asJSON); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d of %d inputs; run the same command to resume", im.progress.Done, total)
	case err != nil:
		return err
	case im.sum.Failed > 0 && im.sum.Failed == total:
		return server.ExitError(server.ExitFailed)
	case im.sum.Failed > 0:
		return server.ExitError(server.ExitPartial)
	}
	return nil
}

// importSummary is the result of an import.
type importSummary struct {
	Inputs    int `json:"inputs"`  // number of inputs in the source that were handled
	Added     int `json:"added"`   // added by this import
	Existing  int `json:"there"`   // already in the application, with the same picture
	Failed    int `json:"failed"`  // failed; each failure is reported
	Pending   int `json:"pending"` // added inputs that are not downloaded yet
	Concepts  int `json:"concepts,omitempty"`
	Models    int `json:"models,omitempty"`
	Workflows int `json:"workflows,omitempty"`
	Renamed   int `json:"renamed,omitempty"` // created with another name: control characters became spaces

	OtherIDs int                       `json:"other_ids,omitempty"` // added with another ID, since theirs belongs to another picture
	LeftOut  map[collection.Reason]int `json:"left_out,omitempty"`  // number of files left out on purpose
}

// printSummary prints the result of the import.
func (im *importer) printSummary(w io.Writer, asJSON bool) error {
	if asJSON {
		return server.NewJSONEncoder(w).Encode(im.sum)
	}
	if im.progress.Quiet {
		return nil
	}
	text := fmt.Sprintf("%d added, %d already existed, %d failed", im.sum.Added, im.sum.Existing, im.sum.Failed)
	if im.sum.Pending > 0 {
		text += fmt.Sprintf(", %d still downloading", im.sum.Pending)
	}
	for _, n := range []struct {
		n    int
		noun string
	}{{im.sum.Concepts, "concepts"}, {im.sum.Models, "models"}, {im.sum.Workflows, "workflows"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s created", n.n, n.noun)
		}
	}
	if im.sum.Renamed > 0 {
		text += fmt.Sprintf(", control characters replaced in %d names", im.sum.Renamed)
	}
	if im.sum.OtherIDs > 0 {
		text += fmt.Sprintf(", %d with another ID because theirs belongs to another picture", im.sum.OtherIDs)
	}
	_, err := fmt.Fprintln(w, text+LeftOutText(im.sum.LeftOut))
	return err
}

// reasonTexts name the files that a walk leaves out.
var reasonTexts = map[collection.Reason]string{
	collection.Sidecars: "sidecars", collection.Thumbnails: "thumbnails of a NAS", collection.Hidden: "hidden", collection.System: "system files",
	collection.Unknown: "of unknown formats",
}

// LeftOutText returns the end of a summary about files that were left out on purpose, or "" if there are none.
func LeftOutText(leftOut map[collection.Reason]int) string {
	var parts []string
	for _, reason := range collection.Reasons {
		if n := leftOut[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, reasonTexts[reason]))
		}
	}
	if parts == nil {
		return ""
	}
	return "; left out: " + strings.Join(parts, ", ")
}

// MaxPictureBytes is the largest picture that the API accepts, a camera raw file. That of most kinds is lower.
const MaxPictureBytes = 64 << 20

// IsPicture reports whether a file that begins with b is a picture or a video, supported or not.
func IsPicture(b []byte) bool { return raster.Recognise(b).Kind != 0 }
