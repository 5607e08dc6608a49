package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

type exportFlags struct {
	target
	quiet bool
}

func newExport(env *server.Env) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export DIR|FILE.zip",
		Short: "Export pictures with labels and metadata",
		Long: `Exports an application to a new folder or .zip: inputs with labels, metadata, locations and crops,
pictures with hashes, custom concepts, models and workflows. Trained versions are not included;
retraining from the same inputs reproduces them, except imported ones. '{prog} import' imports the
export into another application.

  sightline.json    manifest, written last; an export without it is incomplete
  inputs.jsonl      one input per line, with the path and the SHA-256 of its picture
  concepts.jsonl, models.jsonl, workflows.jsonl
  pictures/

The export is not a snapshot: concurrent changes may or may not be included. Inputs whose
picture was never downloaded are exported with their URL only. An edge fetches pictures that it
lacks from its origin. A missing or damaged picture is listed, and its input exported without it.
While a server limits the rate, the command waits. If the server does not answer, the export fails.

Exit codes: 0 everything exported; 1 the export is incomplete and was removed; 2 usage error;
3 exported, but pictures are missing.` + targetHelp,
		Example: `  {prog} export backup/birds --data ./data
  {prog} export birds.zip --key 0123456789abcdef0123456789abcdef`,
		Args: OneArgument("a new folder or a .zip file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExport(cmd.Context(), &f, args[0], env)
		},
	}
	f.flags(cmd, env)
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// createTarget creates a new folder or archive. The caller must call finish. If complete is true, a new archive gets its name; otherwise
// finish removes what was written.
func createTarget(name string) (t collection.Target, finish func(complete bool) error, err error) {
	if strings.EqualFold(filepath.Ext(name), ".zip") {
		f, finish, err := system.CreateFile(name)
		if err != nil {
			return nil, nil, err
		}
		return collection.NewZip(f), finish, nil
	}
	if err := system.NewFolder(name); err != nil {
		return nil, nil, err
	}
	f, err := system.OpenFolder(name)
	if err != nil {
		return nil, nil, err
	}
	return collection.NewFolder(f), func(complete bool) (err error) {
		if !complete { // an import would add its pictures without their labels
			err = f.Clear()
		}
		return errors.Join(err, f.Close())
	}, nil
}

func runExport(ctx context.Context, f *exportFlags, name string, env *server.Env) (err error) {
	s, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	target, finish, err := createTarget(name)
	if err != nil {
		return err
	}
	ex := &exporter{session: s, parallel: ahead, to: collection.Create(target, system.Spool)}
	err = ex.run(ctx, func(total int) {
		ex.progress = NewProgress(env.Stderr, ProgressOptions{Verb: "exporting", Noun: "inputs", Total: total, Quiet: f.quiet, Shared: server.IsTerminal(env.Stdout)})
	})
	if err != nil {
		ex.to.Abandon()
		return errors.Join(fmt.Errorf("%s is incomplete: %w", name, err), finish(false))
	}
	ex.progress.Finish()
	if err := finish(true); err != nil || ex.missing == 0 {
		return err
	}
	fmt.Fprintf(env.Stderr, "pictures missing in %s: %d\n", name, ex.missing)
	return server.ExitError(server.ExitPartial)
}

// ExportApp writes an application of an open data folder to w as a zip file, with the same content as the command export. It has one picture
// in memory at a time. A picture must be complete before its entry begins, since an entry cannot be removed if its picture is damaged.
func ExportApp(ctx context.Context, f control.Folder, app string, w io.Writer) error {
	ex := &exporter{session: LocalSession(f, app), parallel: 1, to: collection.Create(collection.NewZip(collection.NopCloser(w)), system.Spool)}
	err := ex.run(ctx, func(total int) { ex.progress = NewProgress(io.Discard, ProgressOptions{Total: total, Quiet: true}) })
	if err != nil {
		ex.to.Abandon()
	}
	return err
}

// exporter writes an application's data to a collection.
type exporter struct {
	session  Session
	to       *collection.Writer
	progress *Progress
	parallel int // maximum number of pictures read in parallel
	missing  int // number of pictures that could not be read
}

// exportRows is the maximum number of elements on a page, a power of two. A page of inputs with much metadata has some megabytes.
const exportRows = 64

// run writes all data. It first calls begin with the number of inputs.
func (ex *exporter) run(ctx context.Context, begin func(total int)) error {
	n, err := countInputs(ctx, ex.session)
	if err != nil {
		return err
	}
	begin(n.Processed + n.ToProcess + n.Errors)
	for _, part := range []func(context.Context) error{ex.concepts, ex.models, ex.workflows, ex.inputs} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return ex.to.Close()
}

// Pages calls visit with the elements of all pages of a list, in order. If a page is larger than an answer of the server may be, the rest of
// the list has pages of half the size.
func Pages[T any](ctx context.Context, s Session, path, list string, visit func(*T) error) error {
	return pages(ctx, s, path+"?", list, exportRows, visit)
}

// pages does what Pages does, with a number of rows and a path with a query.
func pages[T any](ctx context.Context, s Session, path, list string, rows int, visit func(*T) error) error {
	for n := 1; ; n++ {
		var answer map[string]json.RawMessage
		err := SendRequest(ctx, s, "GET", path+page(n, rows), nil, &answer)
		var refusal *StatusError
		switch {
		case err == nil || !errors.As(err, &refusal):
		case refusal.HTTP == http.StatusMultiStatus:
			err = nil // the page contains inputs whose download failed
		case refusal.HTTP == http.StatusBadRequest && rows > 1:
			n, rows = 2*(n-1), rows/2
			continue
		}
		if err != nil {
			return err
		}
		var elements []T
		if err := json.Unmarshal(answer[list], &elements); err != nil {
			return fmt.Errorf("GET %s: %s: %w", path, list, err)
		}
		for i := range elements {
			if err := visit(&elements[i]); err != nil {
				return err
			}
		}
		if len(elements) < rows {
			return nil
		}
	}
}

// isPublic reports whether a concept or model does not belong to the application itself.
func isPublic(appID string) bool { return appID == "" || appID == "main" }

// exportOwn writes the application's own elements of a list as lines of a file.
func exportOwn[Line any](ctx context.Context, ex *exporter, list, file string) error {
	return Pages(ctx, ex.session, "/v2/"+list, list, func(element *json.RawMessage) error {
		var owner struct {
			AppID string `json:"app_id"`
		}
		var line Line
		err := errors.Join(json.Unmarshal(*element, &owner), json.Unmarshal(*element, &line))
		if err != nil || isPublic(owner.AppID) {
			return err
		}
		return ex.to.Line(file, line)
	})
}

func (ex *exporter) concepts(ctx context.Context) error {
	return exportOwn[conceptLine](ctx, ex, "concepts", collection.ConceptsFile)
}

func (ex *exporter) models(ctx context.Context) error {
	type model struct {
		ID     string
		Name   string
		AppID  string `json:"app_id"`
		Output struct {
			Config map[string]json.RawMessage `json:"output_config"`
			Data   struct{ Concepts []struct{ ID string } }
		} `json:"output_info"`
	}
	return Pages(ctx, ex.session, "/v2/models", "models", func(m *model) error {
		if isPublic(m.AppID) {
			return nil
		}
		var answer struct{ Model model }
		if err := SendRequest(ctx, ex.session, "GET", "/v2/models/"+url.PathEscape(m.ID)+"/output_info", nil, &answer); err != nil {
			return err
		}
		line := modelLine{ID: m.ID, Name: m.Name, Concepts: []string{}, Config: answer.Model.Output.Config}
		for _, c := range answer.Model.Output.Data.Concepts {
			line.Concepts = append(line.Concepts, c.ID)
		}
		return ex.to.Line(collection.ModelsFile, line)
	})
}

func (ex *exporter) workflows(ctx context.Context) error {
	return exportOwn[workflowLine](ctx, ex, "workflows", collection.WorkflowsFile)
}

// exportedInput is an input in an answer.
type exportedInput struct {
	ID   string
	Data struct {
		Image    struct{ Crop json.RawMessage }
		Concepts []struct {
			ID    string
			Value float64
		}
		Metadata, Geo json.RawMessage
	}
}

// fetchedInput is an input with its picture, or with the reason why it has none.
type fetchedInput struct {
	input       *exportedInput
	source      inputSource
	picture     []byte
	contentType string
	missing     error // why the picture cannot be read
	err         error
}

// inputSource is the answer of /v2 about an input's source.
type inputSource struct {
	URL     string
	Picture string
	SHA256  string
	Edits   json.RawMessage
}

// ahead is the number of pictures that the command reads in parallel.
const ahead = 8

func (ex *exporter) inputs(ctx context.Context) error {
	var batch []exportedInput
	flush := func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make([]chan fetchedInput, len(batch))
		for i := range batch {
			done[i] = make(chan fetchedInput, 1)
			go func() { done[i] <- ex.fetch(ctx, &batch[i]) }()
		}
		var first error
		for i := range done {
			got := <-done[i]
			if first != nil {
				continue
			}
			if first = ex.input(&got); first != nil {
				cancel() // the others may wait for long
			}
		}
		batch = batch[:0]
		return first
	}
	err := Pages(ctx, ex.session, "/v2/inputs", "inputs", func(in *exportedInput) error {
		if batch = append(batch, *in); len(batch) < ex.parallel {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush())
}

// fetch reads an input's source and picture. An input whose download never succeeded has no picture.
func (ex *exporter) fetch(ctx context.Context, in *exportedInput) fetchedInput {
	got := fetchedInput{input: in}
	var answer struct{ Source *inputSource }
	answer.Source = &got.source
	if got.err = SendRequest(ctx, ex.session, "GET", "/v2/inputs/"+url.PathEscape(in.ID)+"/source", nil, &answer); got.err != nil {
		return got
	}
	if got.source.Picture != "" {
		var missing *missingPicture
		got.picture, got.contentType, got.err = ex.session.picture(ctx, got.source.Picture, got.source.SHA256)
		if ctx.Err() == nil && errors.As(got.err, &missing) {
			got.missing, got.err = missing, nil
		}
	}
	return got
}

// input writes one input. If its picture cannot be read, input writes it without the picture.
func (ex *exporter) input(got *fetchedInput) error {
	if got.err != nil {
		return fmt.Errorf("input %s: %w", got.input.ID, got.err)
	}
	in := got.input
	if got.missing != nil {
		ex.missing++
		ex.progress.Failure(in.ID, fmt.Errorf("picture %s: %w", got.source.SHA256, got.missing))
		got.picture = nil
	}
	line := collection.Input{ID: in.ID, URL: got.source.URL, Crop: in.Data.Image.Crop, Metadata: in.Data.Metadata, Geo: in.Data.Geo}
	line.AllowDuplicateURL = line.URL != ""
	if string(got.source.Edits) != "[]" {
		line.Edits = got.source.Edits
	}
	if got.source.SHA256 != "" {
		if line.Hash, got.err = blob.ParseHash(got.source.SHA256); got.err != nil {
			return fmt.Errorf("picture of %s: %w", in.ID, got.err)
		}
	}
	for _, c := range in.Data.Concepts {
		line.Concepts = append(line.Concepts, collection.Concept{ID: c.ID, False: c.Value == 0})
	}
	slices.SortFunc(line.Concepts, func(a, b collection.Concept) int { return strings.Compare(a.ID, b.ID) })
	err := ex.to.Input(&line, got.picture, got.contentType)
	ex.progress.Step(got.missing)
	return err
}
