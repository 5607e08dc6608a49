package cli

import (
	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// newDecodeVideo returns the hidden command that decodes one video. The server starts its own program with it, as a child process.
func newDecodeVideo(env *server.Env) *cobra.Command {
	return &cobra.Command{
		Use:    video.Command,
		Short:  "Decode a video for the server",
		Hidden: true,
		Args:   server.NoArguments,
		RunE:   func(cmd *cobra.Command, _ []string) error { return video.Serve(cmd.Context(), env.Stdin, env.Stdout) },
	}
}
