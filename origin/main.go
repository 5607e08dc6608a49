// Sightline is the origin server and its command line.
package main

import (
	"github.com/sightline-dev/sightline/origin/program"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

func main() { cli.Main(program.New()) }
