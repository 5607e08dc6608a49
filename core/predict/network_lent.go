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
func networkLent(base *byte) int32

//go:wasmimport kernel recognise
//go:noescape
func recogniseLent(network int32, pixels *byte, n int32, embedding *int16, general *float32, concepts int32, food *float32, foods int32) int32

//go:wasmimport kernel cells
//go:noescape
func cellsLent(network int32, pixels *byte, n int32, rows *float32, room int32) int64

// networkElsewhere returns the host's number for the network with the given base, or 0 if the host does not run that network.
func networkElsewhere(base [sha256.Size]byte) int32 { return networkLent(&base[0]) }

// recogniseElsewhere asks the host to run [Recogniser.Recognise], which fills e, general and food. It reports whether the network's output
// was usable.
func recogniseElsewhere(network int32, pix []byte, e *Embedding, general, food []float32) bool {
	return recogniseLent(network, unsafe.SliceData(pix), int32(len(pix)), &e.Q[0],
		unsafe.SliceData(general), int32(len(general)), unsafe.SliceData(food), int32(len(food))) != 0
}

// cellsElsewhere asks the host to run the network on a picture cell by cell, and returns the size of the map. Without a picture it only
// returns the size. The size is 0 if the network has no map or its outputs are unusable.
func cellsElsewhere(network int32, pix []byte, rows []float32) (height, width int) {
	n := cellsLent(network, unsafe.SliceData(pix), int32(len(pix)), unsafe.SliceData(rows), int32(len(rows)))
	return int(n >> 32), int(n & 0xffffffff)
}
