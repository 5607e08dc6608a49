// Command cmd writes the two modules of kernels to files. The second module uses the relaxed dot product:
//
//	go run ./wasm/simd/cmd wasm/dist/kernels.wasm wasm/dist/kernels-relaxed.wasm
package main

import (
	"fmt"
	"os"

	"github.com/sightline-dev/sightline/wasm/simd"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cmd FILE FILE")
		os.Exit(2)
	}
	for i, module := range [][]byte{simd.Module(), simd.Relaxed()} {
		if err := os.WriteFile(os.Args[1+i], module, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
