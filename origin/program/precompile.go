package program

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// precompileResult is the output of the command precompile.
type precompileResult struct {
	Compiled bool   `json:"compiled"` // the command compiled a decoder now
	Folder   string `json:"folder"`   // folder of the compiled decoders
}

// newPrecompile returns the command that compiles the decoders in advance.
func newPrecompile(env *server.Env) *cobra.Command {
	var data, module string
	asJSON, quiet := false, false
	cmd := &cobra.Command{
		Use:   "precompile",
		Short: "Precompile the decoders of videos and pictures",
		Long: `Compiles the decoder of videos, HEIC and AVIF and that of JPEG XL ahead of time, so that the first
file need not wait for it. Run it after installing or upgrading; servers may be running.

The result is in the user's cache folder (CACHE_DIRECTORY or XDG_CACHE_HOME), for all data folders of
the user. If there is none, or others can write to it, it is in the data folder.`,
		Example: `  {prog} precompile`,
		Args:    server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			show := func(int) {}
			if !quiet {
				show = cli.PrintProgress(env.Stderr, video.CompilingStep)
			}
			cache, _ := system.CacheFolder(env.Lookup) // without one, the result is in the data folder
			folder, compiled, err := server.PrecompileDecoder(cmd.Context(), server.DecoderCompilation{Cache: cache, Data: data, Module: module, Progress: show})
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(env.Stdout).Encode(precompileResult{compiled, folder})
			}
			_, err = fmt.Fprintln(env.Stdout, folder)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data `folder` for the result if the user has no cache folder")
	cmd.Flags().StringVar(&module, "video-module", "", server.VideoModuleHelp)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}
