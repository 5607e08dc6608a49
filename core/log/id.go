package log

import (
	"encoding/hex"
	"fmt"
	"io"
)

// NewID makes an id of 32 lower-case hex digits from 128 bits of random: of an application, a
// client, an input, a model or a version whose maker gives none.
func NewID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
