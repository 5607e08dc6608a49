// Sightline is the origin server and the command line.
package main

import (
	"github.com/sightline-dev/sightline/origin/program"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

func main() { cli.Main(program.New()) }
