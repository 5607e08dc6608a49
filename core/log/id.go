package log

import (
	"encoding/hex"
	"fmt"
	"io"
)

// NewID returns an id of 32 lower-case hex digits, made from 128 bits of random. Callers use it for an application, a client, an input, a
// model or a version that is created without an id. The error is that of random.
func NewID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
