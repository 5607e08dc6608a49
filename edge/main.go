// Sightline-edge is a node near those who ask: all of /v2 from the module, and its command line.
package main

import (
	"github.com/sightline-dev/sightline/edge/node"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

func main() { cli.Main(node.New()) }
