package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/train/spago"
	"github.com/sightline-dev/sightline/core/training"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func newHead(env *server.Env) *cobra.Command {
	return cli.Group("head", "Export and import trained heads of models",
		`Exports and imports the trained part of a model's version, its head: a row of 256 weights and a
bias per concept, applied to the embedding of a picture. A head can be trained elsewhere, on the
embeddings that the model general-v1.3 of type embed returns.`,
		newHeadExport(env), newHeadImport(env))
}

// headFlags are the flags of the commands head export and head import.
type headFlags struct {
	*cli.FolderCommand
	control.HeadID
}

func (f *headFlags) flags(cmd *cobra.Command, output string) *cobra.Command {
	f.Flags(cmd, output)
	cmd.Flags().StringVar(&f.App, "app", "", "`ID` of the application; optional if there is only one")
	cmd.Flags().StringVar(&f.Model, "model", "", "`ID` of the model")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.Model == "" {
			return server.Usagef("--model is required")
		}
		return nil
	}
	return cmd
}

// with calls do on the data folder with the chosen application.
func (f *headFlags) with(cmd *cobra.Command, do func(context.Context, control.Folder) error) error {
	return f.With(cmd, func(ctx context.Context, s control.Folder) (err error) {
		if f.App, err = cli.ChooseApp(ctx, s, f.App); err != nil {
			return err
		}
		return do(ctx, s)
	})
}

// print prints the version that a head belongs to.
func (f *headFlags) print(h *control.Head, did string) error {
	return f.Print(map[string]string{"model_id": f.Model, "version_id": h.Version}, "version %s, %d concepts, %s\n", h.Version, len(h.Concepts), did)
}

// formats has an encoder of heads for each format.
var formats = map[string]func(h *control.Head) ([]byte, error){
	"json": func(h *control.Head) ([]byte, error) {
		data, err := json.Marshal(h)
		return append(data, '\n'), err
	},
	"spago": func(h *control.Head) ([]byte, error) {
		of, err := h.ModelHead()
		if err != nil {
			return nil, err
		}
		var file bytes.Buffer
		err = spago.Write(&file, &of.Head, h.Embedding)
		return file.Bytes(), err
	},
}

func newHeadExport(env *server.Env) *cobra.Command {
	f := &headFlags{FolderCommand: &cli.FolderCommand{Env: env}}
	var format string
	cmd := f.flags(&cobra.Command{
		Use:   "export FILE",
		Short: "Export the head of a model's version",
		Long: `Writes the head of a model's newest trained version to a new file, or to standard output if FILE
is "-". Formats:

  json   an object with concepts, weights (a row per output), biases, concepts_mutually_exclusive,
         and embedding, the identity of the embeddings that the head needs. The value of a concept is
         the sigmoid of weights·embedding + bias. With concepts_mutually_exclusive it is the softmax,
         which may have one more output, the last, for none of the concepts.
  spago  a model of spago v1.1 (github.com/nlpodyssey/spago) with the fields Linear, Activation,
         Concepts and Embedding. A Go program loads it with nn.Load into a struct with these fields,
         trains it with any optimiser, and writes it with nn.Dump.` + cli.FolderHelp,
		Example: `  {prog} head export --model garden --format spago garden.spago --data ./data
  {prog} head export --model garden - --data ./data`,
		Args: cli.OneArgument(`the file, or "-"`),
	}, "the exported version as a JSON object")
	cmd.Flags().StringVar(&f.Version, "version", "", "`ID` of the version (default: the newest trained one)")
	cmd.Flags().StringVar(&format, "format", "json", "`json|spago`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		encode, ok := formats[format]
		if !ok {
			return server.Usagef("--format must be json or spago, not %q", format)
		}
		if args[0] == "-" && f.AsJSON {
			return server.Usagef(`--json cannot be combined with "-"`)
		}
		var h control.Head
		err := f.with(cmd, func(ctx context.Context, s control.Folder) (err error) {
			h, err = control.ExportHead.Do(ctx, s, f.HeadID)
			return err
		})
		if err != nil {
			return err
		}
		data, err := encode(&h)
		if err != nil {
			return err
		}
		if args[0] == "-" {
			_, err := env.Stdout.Write(data)
			return err
		}
		if err := create(args[0], data); err != nil {
			return err
		}
		return f.print(&h, "exported")
	}
	return cmd
}

// create writes data to a new file.
func create(name string, data []byte) error {
	file, finish, err := system.CreateFile(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, finish(false))
	}
	return finish(true)
}

// maxHeadFile is the maximum size of a head's file: twice the JSON of 5,000 concepts, the maximum of a model.
const maxHeadFile = 40 << 20

func newHeadImport(env *server.Env) *cobra.Command {
	f := &headFlags{FolderCommand: &cli.FolderCommand{Env: env}}
	cmd := f.flags(&cobra.Command{
		Use:   "import FILE",
		Short: "Import a head as a new version of a model",
		Long: `Makes a new version of a model from a head that 'head export' wrote and another program may have
trained since, in either format. FILE is "-" for standard input. The version predicts at once, and
edges and browsers receive it like any other; it has no evaluation. The head must have the concepts
of the model, in any order, and the embedding of this application. An import that fails changes
nothing. If a later release has another embedding, imported versions stop predicting: train or
import another one.` + cli.FolderHelp,
		Example: `  {prog} head import --model garden garden.spago --data ./data
  python3 train.py | {prog} head import --model garden - --data ./data`,
		Args: cli.OneArgument(`the file, or "-"`),
	}, "a JSON object with model_id and version_id")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		read := func() ([]byte, error) { return system.ReadFile(args[0], maxHeadFile) }
		if args[0] == "-" {
			read = func() ([]byte, error) { return system.ReadAll(env.Stdin, maxHeadFile) }
		}
		data, err := read()
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		h, err := readHead(data)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		h.Model = f.Model
		err = f.with(cmd, func(ctx context.Context, s control.Folder) error {
			version, err := control.ImportHead.Do(ctx, s, control.NewHead{App: f.App, Head: *h})
			h.Version = version.ID
			return err
		})
		if err != nil {
			return err
		}
		return f.print(h, "imported")
	}
	return cmd
}

// readHead reads a head in either format: JSON is valid UTF-8, and a file of gob never is.
func readHead(data []byte) (*control.Head, error) {
	h := &control.Head{}
	if utf8.Valid(data) {
		if err := json.Unmarshal(data, h); err != nil {
			return nil, fmt.Errorf("not a head in JSON: %w", err)
		}
		_, err := h.ModelHead()
		return h, err
	}
	of, embedding, err := spago.Read(data)
	if err != nil {
		return nil, err
	}
	*h = control.HeadOf(&training.ModelHead{Head: *of})
	h.Embedding = embedding
	_, err = h.ModelHead()
	return h, err
}
