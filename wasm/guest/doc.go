// Command guest is the module: the core behind the exports and imports of wasm/README.md, a
// reactor of wasip1.
//
//	GOOS=wasip1 GOARCH=wasm go build -tags lent -buildmode=c-shared -o guest.wasm ./wasm/guest
//
// What it does is package instance; here are the exports, which find arguments and answers in
// memory, and the imports as that package wants them. For any other target it is empty.
package main

// main is not called in a reactor.
func main() {}
