// Command guest is the module: the core behind the exports and imports of wasm/README.md, a reactor of wasip1.
//
//	GOOS=wasip1 GOARCH=wasm go build -tags lent -buildmode=c-shared -o guest.wasm ./wasm/guest
//
// Package instance does the work. This package has the exports, which find arguments and answers in memory, and the imports in the form
// of that package. For any other target it is empty.
package main

// main is not called in a reactor.
func main() {}
