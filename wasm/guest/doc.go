// Command guest is the module: the core with the exports and imports that wasm/README.md specifies. It is a reactor for wasip1.
//
//	GOOS=wasip1 GOARCH=wasm go build -tags lent -buildmode=c-shared -o guest.wasm ./wasm/guest
//
// Package instance does the work. This package implements the calling convention: its exports read arguments from memory and return the
// places of answers, and it implements the interface Imports of package hostapi. For targets other than wasip1 it is empty.
package main

// main is required by the compiler. The host of a reactor does not call it.
func main() {}
