// Command cmd removes the tables that only stack traces read from a linked module:
//
//	go run ./wasm/slim/cmd LINKED wasm/dist/guest.wasm
//
// A new release of Go may have other tables. The command then prints a line and copies the linked module, which runs as well but takes a fifth
// longer to download.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/sightline-dev/sightline/wasm/slim"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cmd LINKED FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, to string, notes io.Writer) error {
	linked, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	slimmed, err := slim.Module(linked)
	if err != nil {
		fmt.Fprintf(notes, "build: the module keeps the tables of stack traces, so it takes longer to download: %v\n", err)
		slimmed = linked
	}
	return os.WriteFile(to, slimmed, 0o644)
}
