// Command cmd removes the tables that only stack traces read from a linked module:
//
//	go run ./wasm/slim/cmd LINKED wasm/dist/guest.wasm
package main

import (
	"fmt"
	"os"

	"github.com/sightline-dev/sightline/wasm/slim"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cmd LINKED FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	linked, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	slimmed, err := slim.Module(linked)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, slimmed, 0o644)
}
