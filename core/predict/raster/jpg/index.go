//go:build !wasm

package jpg

import "bytes"

// indexFF returns the index of the first 0xff in b, or −1.
func indexFF(b []byte) int { return bytes.IndexByte(b, 0xff) }
