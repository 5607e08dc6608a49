//go:build wasip1

package main

import (
	"runtime"
	"unsafe"

	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/instance"
)

// guest is the only instance in the module.
var guest = instance.Instance{Imports: imports{}}

// input is the buffer to which the host writes arguments. It only grows, and its size is a multiple of inputStep bytes.
var input []byte

const inputStep = 64 << 10

//go:wasmexport abi
func version() uint32 { return abi.Version }

//go:wasmexport reserve
func reserve(n uint32) uint32 {
	if need := int(n); need > len(input) || input == nil {
		input = nil // so that the collector can free it before the larger one is allocated
		input = make([]byte, max(need+inputStep-1, inputStep)/inputStep*inputStep)
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(input))))
}

// call passes the first n bytes of input to do, and returns the place of the answer. It then yields to the collector's goroutines, which
// cannot run between two calls of the host.
func call(n uint32, do func([]byte) []byte) uint64 {
	answer := do(input[:min(int(n), len(input))])
	runtime.Gosched()
	return abi.Answer(uint32(uintptr(unsafe.Pointer(unsafe.SliceData(answer)))), uint32(len(answer)))
}

//go:wasmexport open
func open(n uint32) uint64 {
	answer := call(n, guest.Open)
	if guest.StoresPictures() {
		runtime.GC() // otherwise pace would use the amount of live memory before Open
	}
	pace()
	return answer
}

//go:wasmexport serve
func serve(n uint32) uint64 { return call(n, guest.Serve) }

//go:wasmexport resume
func resume(n uint32) uint64 { return call(n, guest.Resume) }

//go:wasmexport step
func step(n uint32) uint64 { return call(n, guest.Step) }

//go:wasmexport analyse
func analyse(n uint32) uint64 { return call(n, guest.Analyse) }

//go:wasmexport ask
func ask(n uint32) uint64 { return call(n, guest.Ask) }

//go:wasmexport sync
func sync(n uint32) uint64 { return call(n, guest.Sync) }
