// Command arm64 writes the arm64 assembly of package kernel:
//
//	go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel
//
// Every function takes one pointer to a struct of 8-byte fields (args_arm64.go), so a field's offset is 8 times its index.
package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

func main() { arm64.Generate(emit) }

func emit(f *arm64.File) {
	for _, rows := range []int{3, 2, 1} {
		(&tile{File: f, rows: rows, panels: 2}).dots("gemmU8Tile")
	}
	for _, rows := range []int{4, 2, 1} {
		(&tile{File: f, rows: rows, panels: 1}).dots("gemmU8Tile")
	}
	for _, rows := range []int{4, 2, 1} {
		(&tile{File: f, rows: rows, panels: 1}).matrices("gemmU8Tile")
	}
	for _, rows := range []int{2, 1} {
		(&words{&tile{File: f, rows: rows}, 2, rows == 2}).emit("gemmU8Tile")
		(&words{&tile{File: f, rows: rows}, 1, false}).emit("gemmU8Wide")
	}
	(&tile{File: f, rows: 2, panels: 2, raw: true}).dots("gemmI32Tile")
	(&tile{File: f, rows: 2, panels: 1, raw: true}).matrices("gemmI32Tile")
	(&words{&tile{File: f, rows: 2, raw: true}, 1, false}).emit("gemmI32Wide")
	for _, rows := range []int{4, 2, 1} {
		(&tile{File: f, rows: rows, panels: 1}).floats()
	}
	depthwiseU8(f)
	depthwiseF32(f)
	winograd(f)
	addU8(f)
	sumRowsU8(f)
}

// load emits the load of a field of the struct at R0 into register reg.
func load(f *arm64.File, field, reg int) { f.Go("MOVD %d(R0), R%d", field, reg) }
