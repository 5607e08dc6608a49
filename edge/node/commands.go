package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// precompileResult is the output of the command precompile.
type precompileResult struct {
	SHA256   string `json:"sha256"`           // of the module
	Compiled bool   `json:"compiled"`         // the command compiled it now and did not read it from the cache
	Decoder  bool   `json:"compiled_decoder"` // the command compiled a decoder of videos or pictures now
}

// precompile are the flags of the command precompile.
type precompile struct {
	data, videoModule string
	asJSON, quiet     bool
}

// newPrecompile returns the command that compiles the modules in advance, so that the next start and the first video need not.
func (n *Node) newPrecompile(env *server.Env) *cobra.Command {
	var p precompile
	cmd := &cobra.Command{
		Use:     "precompile",
		Aliases: []string{"warm"},
		Short:   "Precompile the module and the decoder of videos",
		Long: `Compiles the module and the decoder of videos ahead of time, so that the next start and the first video
are fast. Run it after installing or upgrading; servers may be running. Without the decoder's file
next to the program, it compiles the module only.

The results are in the user's cache folder (CACHE_DIRECTORY or XDG_CACHE_HOME), for all data folders
of the user. If there is none, or others can write to it, they are in the data folder, which is
created if it does not exist.`,
		Example: `  {prog} precompile
  {prog} precompile --data /var/lib/{prog}`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return n.precompile(cmd, env, &p) },
	}
	cmd.Flags().StringVar(&p.data, "data", "", "data `folder` for the results if the user has no cache folder")
	cmd.Flags().StringVar(&p.videoModule, "video-module", "", server.VideoModuleHelp)
	cmd.Flags().BoolVar(&p.asJSON, "json", false, "print a JSON object")
	cmd.Flags().BoolVarP(&p.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// precompile compiles the module and the decoder of videos, unless the cache has them.
func (n *Node) precompile(cmd *cobra.Command, env *server.Env, p *precompile) error {
	show := func(step string) func(percent int) {
		if p.quiet {
			return func(int) {}
		}
		return cli.PrintProgress(env.Stderr, step)
	}
	cache, err := system.CacheFolder(env.Lookup)
	if err != nil {
		if p.data == "" {
			return server.Usagef("--data is required: %w", err)
		}
		cache = ""
	}
	rt, err := n.load(cmd.Context(), places{cache, p.data}, slog.New(slog.DiscardHandler), show(compilingModule))
	if err != nil {
		return err
	}
	w := precompileResult{SHA256: fmt.Sprintf("%x", rt.Hash()), Compiled: rt.WasCompiled()}
	if err := rt.Close(cmd.Context()); err != nil {
		return err
	}
	_, w.Decoder, err = server.PrecompileDecoder(cmd.Context(), server.DecoderCompilation{
		Cache: cache, Data: p.data, Module: p.videoModule, Progress: show(video.CompilingStep),
	})
	if p.videoModule == "" && errors.Is(err, fs.ErrNotExist) { // it is optional
		err = nil
	}
	switch {
	case err != nil:
		return err
	case p.asJSON:
		return json.NewEncoder(env.Stdout).Encode(w)
	}
	_, err = fmt.Fprintln(env.Stdout, w.SHA256)
	return err
}
