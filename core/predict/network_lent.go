//go:build wasip1 && lent

package predict

import (
	"crypto/sha256"
	"unsafe"
)

// wasm/README.md describes the imports.
//
//go:wasmimport kernel network
//go:noescape
func hostNetwork(base *byte) int32

//go:wasmimport kernel recognise
//go:noescape
func hostRecognise(network int32, pixels *byte, n int32, embedding *int16, general *float32, concepts int32, food *float32, foods int32) int32

//go:wasmimport kernel cells
//go:noescape
func hostCells(network int32, pixels *byte, n int32, rows *float32, room int32) int64

// networkAtHost returns the host's number for the network with the given base, or 0 if the host does not run that network.
func networkAtHost(base [sha256.Size]byte) int32 { return hostNetwork(&base[0]) }

// recogniseAtHost asks the host to run [Recogniser.Recognise], which fills e, general and food. It reports whether the network's output
// was usable.
func recogniseAtHost(network int32, pix []byte, e *Embedding, general, food []float32) bool {
	return hostRecognise(network, unsafe.SliceData(pix), int32(len(pix)), &e.Q[0],
		unsafe.SliceData(general), int32(len(general)), unsafe.SliceData(food), int32(len(food))) != 0
}

// cellsAtHost asks the host to run the network on a picture cell by cell, and returns the size of the map. Without a picture it only
// returns the size. The size is 0 if the network has no map or its outputs are unusable.
func cellsAtHost(network int32, pix []byte, rows []float32) (height, width int) {
	n := hostCells(network, unsafe.SliceData(pix), int32(len(pix)), unsafe.SliceData(rows), int32(len(rows)))
	return int(n >> 32), int(n & 0xffffffff)
}
