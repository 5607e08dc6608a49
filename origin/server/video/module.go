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

// The decoding module is FFmpeg, compiled to one WASI program. Its first argument selects ffmpeg or ffprobe. The Makefile
// reads the lines of the first two constants.
const (
	moduleSource = "codeberg.org/gruf/go-ffmpreg@v0.6.22"                             // Go module with the file embed/ffmpreg.wasm.gz
	moduleSHA256 = "6f0631a13291741daeea3cf32b5b9c478ac913a384a4d4d31f41700ec9c4205f" // SHA-256 of that file

	unpackedSHA256 = "357dd97d37f5fa01b45865bc5d6e90a9538e8bff236de7f1c143a3bc863bc766" // SHA-256 of its decompressed content
)

// ModuleFile is the name of the module's file. By default it is next to the program.
const ModuleFile = "ffmpreg.wasm.gz"

// Maximum size of the module in bytes: compressed and decompressed.
const (
	maxPacked = 16 << 20
	maxModule = 64 << 20
)

// Module returns the content of the decoding module's file: a WASI program, compressed with gzip. The text of the error is for API users.
func (d *Decoder) Module() ([]byte, error) { return readPacked(d.o.Module) }

// readModule returns the decompressed module in a file.
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
		return nil, missingError(name)
	case err != nil:
		return nil, fmt.Errorf("the decoding module cannot be read: %w", err)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != moduleSHA256 {
		return nil, fmt.Errorf("the decoding module %s is not the one of %s: its SHA-256 is %x", name, moduleSource, sum)
	}
	return packed, nil
}

// missingError is the error for a missing file of the module. Its text does not repeat the system's.
type missingError string

func (m missingError) Error() string {
	return fmt.Sprintf("the decoding module %s is missing: install it there, or set --video-decoder", string(m))
}

func (missingError) Unwrap() error { return fs.ErrNotExist }
