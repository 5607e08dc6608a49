// Sightline is the origin server and the command line.
package main

import (
	"context"
	"os"

	"github.com/sightline-dev/sightline/origin/program"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func main() {
	ctx, stop := system.Terminated(context.Background())
	system.IgnoreBrokenPipes()
	code := cli.Run(ctx, program.New(), server.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ,
	})
	stop()
	os.Exit(code)
}
