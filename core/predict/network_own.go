//go:build !wasip1 || !lent

package predict

import "crypto/sha256"

// networkElsewhere returns 0, because this build has no host that runs a network.
func networkElsewhere([sha256.Size]byte) int32 { return 0 }

// recogniseElsewhere is never called, because networkElsewhere returns 0.
func recogniseElsewhere(int32, []byte, *Embedding, []float32, []float32) bool { return false }

// cellsElsewhere is never called, because networkElsewhere returns 0.
func cellsElsewhere(int32, []byte, []float32) (height, width int) { return 0, 0 }
