package video

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// The decoding module is FFmpeg, compiled to one WASI program that is ffmpeg and ffprobe by its first argument. The Makefile
// reads both lines.
const (
	moduleSource = "codeberg.org/gruf/go-ffmpreg@v0.6.22"                             // its file embed/ffmpreg.wasm.gz
	moduleSHA256 = "6f0631a13291741daeea3cf32b5b9c478ac913a384a4d4d31f41700ec9c4205f" // of that file
)

// ModuleFile is the name of the module's file, next to the program.
const ModuleFile = "ffmpreg.wasm.gz"

// Largest module that is read, in bytes.
const (
	maxPacked = 16 << 20
	maxModule = 64 << 20
)

// Module returns the file of the decoding module, a WASI program compressed by gzip. The error is a sentence for the caller of the interface.
func (d *Decoder) Module() ([]byte, error) { return readPacked(d.o.Module) }

// readModule returns the module in a file, as Module does.
func readModule(name string) ([]byte, error) {
	packed, err := readPacked(name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return system.ReadAll(r, maxModule)
}

func readPacked(name string) ([]byte, error) {
	packed, err := system.ReadFile(name, maxPacked)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the decoding module %s is missing: install it there, or set --video-decoder", name)
	case err != nil:
		return nil, fmt.Errorf("the decoding module cannot be read: %w", err)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != moduleSHA256 {
		return nil, fmt.Errorf("the decoding module %s is not the one of %s: its SHA-256 is %x", name, moduleSource, sum)
	}
	return packed, nil
}
