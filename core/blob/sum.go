//go:build !(wasip1 && lent)

package blob

import "crypto/sha256"

// Sum returns the hash of data.
func Sum(data []byte) Hash { return sha256.Sum256(data) }
