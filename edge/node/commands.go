package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/command"
	"github.com/sightline-dev/sightline/origin/system"
)

// told is what the commands about modules print.
type told struct {
	SHA256    string `json:"sha256"`
	BuiltIn   bool   `json:"built_in"`
	Deadlines bool   `json:"deadlines"` // its calls have them
	Bytes     int    `json:"bytes"`
	Compiled  bool   `json:"compiled"` // now, and not read from the cache
}

func tell(w io.Writer, asJSON bool, t told) error {
	if asJSON {
		return json.NewEncoder(w).Encode(t)
	}
	kind := "the program's own"
	if t.Deadlines {
		kind = "not the program's own: its calls have deadlines"
	}
	_, err := fmt.Fprintf(w, "%s  %d bytes, %s\n", t.SHA256, t.Bytes, kind)
	return err
}

// folderFlags are those of both commands.
type folderFlags struct {
	dir    string
	asJSON bool
}

func (f *folderFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "data", "", "data `folder`")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print a JSON object")
}

// open opens the folder; with make it is made where it is missing.
func (f *folderFlags) open(make bool) (*system.Folder, error) {
	if f.dir == "" {
		return nil, command.Usagef("--data is needed: the data folder")
	}
	if !make && !system.IsDir(f.dir) {
		return nil, fmt.Errorf("data folder %s: there is none", f.dir)
	}
	return system.OpenFolder(f.dir)
}

// newWarm is the command that compiles at leisure what a start would.
func (n *Node) newWarm(env *command.Env) *cobra.Command {
	var f folderFlags
	cmd := &cobra.Command{
		Use:   "warm",
		Short: "Compile the module for a data folder before the first start",
		Long: `Compile the module that the data folder is served with and keep the result in the folder, so that no
start has to: at installation, and after each upgrade of the program. The folder is made when it is
missing. A server may have it open.`,
		Example: `  sightline-edge warm --data /var/lib/sightline-edge`,
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dir, err := f.open(true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dir.Close()) }()
			bytes, err := module(dir)
			if err != nil {
				return err
			}
			t, err := n.try(cmd.Context(), dir, bytes)
			if err != nil {
				return err
			}
			return tell(env.Stdout, f.asJSON, t)
		},
	}
	f.add(cmd)
	return cmd
}

// quiet is where a command says nothing.
var quiet = slog.New(slog.DiscardHandler)

// try compiles a module and says what it is.
func (n *Node) try(ctx context.Context, dir *system.Folder, bytes []byte) (told, error) {
	rt, err := n.compile(ctx, dir, bytes, quiet)
	if err != nil {
		return told{}, err
	}
	t := told{SHA256: fmt.Sprintf("%x", rt.Hash()), BuiltIn: isOwn(rt), Deadlines: !rt.Trusted(), Bytes: len(bytes), Compiled: rt.Compiled()}
	return t, rt.Close(ctx)
}

// newModule is the command that says, and changes, which module serves.
func (n *Node) newModule(env *command.Env) *cobra.Command {
	var f folderFlags
	own := false
	cmd := &cobra.Command{
		Use:   "module [FILE]",
		Short: "Say which module a data folder is served with, or change it",
		Long: `Say which module a data folder is served with, by its SHA-256. With FILE it is that one from now on, with
--built-in it is the program's own again. A server that has the folder open goes over to it between two
calls: no call is broken off. A file that is no module for this program is refused, and nothing changes.

Calls of an operator's module have deadlines, which makes them slower.`,
		Example: `  sightline-edge module --data ./data
  sightline-edge module guest.wasm --data ./data
  sightline-edge module --built-in --data ./data`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && own {
				return command.Usagef("one module, or --built-in")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dir, err := f.open(false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dir.Close()) }()
			var bytes []byte
			if len(args) == 1 {
				if bytes, err = system.ReadFile(args[0], maxModule); err != nil {
					return err
				}
			}
			if own || bytes != nil {
				if err := n.change(cmd.Context(), f.dir, dir, bytes); err != nil {
					return err
				}
			}
			return n.show(dir, env.Stdout, f.asJSON)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&own, "built-in", false, "go back to the program's own module")
	return cmd
}

// show tells which module the folder is served with.
func (n *Node) show(dir *system.Folder, w io.Writer, asJSON bool) error {
	bytes, err := module(dir)
	if err != nil {
		return err
	}
	_, own, err := builtIn()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(bytes)
	return tell(w, asJSON, told{SHA256: fmt.Sprintf("%x", sum), BuiltIn: sum == own, Deadlines: sum != own, Bytes: len(bytes)})
}

// change makes bytes the folder's module, or the program's own where there are none, and has a
// server that has it open go over to it. What that does not take is taken back.
func (n *Node) change(ctx context.Context, name string, dir *system.Folder, bytes []byte) error {
	if bytes != nil {
		if _, err := n.try(ctx, dir, bytes); err != nil {
			return err
		}
	}
	before, err := placed(dir)
	if err != nil {
		return err
	}
	if err := putModule(dir, bytes); err != nil {
		return err
	}
	server := command.Dial(name)
	err = server.Reload(ctx)
	if system.IsGone(err) {
		err = nil // nobody has it open
	}
	if err != nil {
		err = errors.Join(err, putModule(dir, before))
	}
	return errors.Join(err, server.Close())
}
