package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// precompileResult is the output of the command precompile.
type precompileResult struct {
	SHA256   string `json:"sha256"`   // of the module
	Compiled bool   `json:"compiled"` // the command compiled it now and did not read it from the cache
}

// newPrecompile returns the command that compiles the module in advance, so that the next start need not.
func (n *Node) newPrecompile(env *server.Env) *cobra.Command {
	var name string
	asJSON := false
	cmd := &cobra.Command{
		Use:     "precompile",
		Aliases: []string{"warm"},
		Short:   "Precompile the module for a data folder",
		Long: `Compiles the module ahead of time and caches the result in the data folder, so that the next start
is fast. Run it after installing or upgrading; a server may be running on the folder. Creates the
folder if it does not exist.`,
		Example: `  {prog} precompile --data /var/lib/{prog}`,
		Args:    server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if name == "" {
				return server.Usagef("--data is required")
			}
			dir, err := system.OpenFolder(name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dir.Close()) }()
			rt, err := n.load(cmd.Context(), dir, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			w := precompileResult{SHA256: fmt.Sprintf("%x", rt.Hash()), Compiled: rt.WasCompiled()}
			if asJSON {
				err = json.NewEncoder(env.Stdout).Encode(w)
			} else {
				_, err = fmt.Fprintln(env.Stdout, w.SHA256)
			}
			return errors.Join(err, rt.Close(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&name, "data", "", "data `folder`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
