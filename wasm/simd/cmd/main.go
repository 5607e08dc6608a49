// Command cmd writes the module of the kernels to a file:
//
//	go run ./wasm/simd/cmd wasm/dist/kernels.wasm
package main

import (
	"fmt"
	"os"

	"github.com/sightline-dev/sightline/wasm/simd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cmd FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], simd.Module(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
