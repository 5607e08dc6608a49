//go:build !wasm

package jpg

import "bytes"

// indexFF is the place of the first 0xff in b, −1: there is none.
func indexFF(b []byte) int { return bytes.IndexByte(b, 0xff) }
