// Sightline-edge is the server that runs near its callers, and its command line. The WebAssembly module answers all of /v2.
package main

import (
	"github.com/sightline-dev/sightline/edge/node"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

func main() { cli.Main(node.New()) }
