package video

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// The Makefile takes each module out of a Go module. It reads the lines of the first two constants of each block.

// The module of videos, HEIC and AVIF is FFmpeg, compiled to one WASI program. Its first argument selects ffmpeg or ffprobe.
const (
	moduleSource = "codeberg.org/gruf/go-ffmpreg@v0.6.22"                             // Go module with the file embed/ffmpreg.wasm.gz
	moduleSHA256 = "6f0631a13291741daeea3cf32b5b9c478ac913a384a4d4d31f41700ec9c4205f" // SHA-256 of that file

	unpackedSHA256 = "357dd97d37f5fa01b45865bc5d6e90a9538e8bff236de7f1c143a3bc863bc766" // SHA-256 of its decompressed content
)

// The module of JPEG XL is libjxl, compiled to a WASI reactor with the function decode: see picture.go.
const (
	jxlSource = "github.com/gen2brain/jpegxl@v0.4.5"                               // Go module with the file lib/decode.wasm.gz
	jxlSHA256 = "9ab633d753803618fb8984743f37507eed76eae740b928c9fee6a6aad7e6a19f" // SHA-256 of that file

	jxlUnpackedSHA256 = "c849c653cce87ea160092964819ed1e60b4e0c3a970bafa5e837aba3c7bf9486" // SHA-256 of its decompressed content
)

// Names of the modules' files. By default they are next to the program. The module of JPEG XL is always next to the module of videos.
const (
	ModuleFile = "ffmpreg.wasm.gz"
	JXLFile    = "jpegxl.wasm.gz"
)

// moduleInfo describes a module.
type moduleInfo struct {
	source, packed, unpacked string // the Go module, and the SHA-256 of the file and of its decompressed content
	advice                   string // what a user may do if the file is missing, besides installing it
}

var moduleInfos = [...]moduleInfo{
	raster.FFmpeg: {moduleSource, moduleSHA256, unpackedSHA256, ", or set --video-decoder"},
	raster.JPEGXL: {jxlSource, jxlSHA256, jxlUnpackedSHA256, ""},
}

// Maximum size of a module in bytes: compressed and decompressed.
const (
	maxPacked = 16 << 20
	maxModule = 64 << 20
)

// Module returns the content of the file of the module of videos, compressed with gzip. The text of the error is for API users.
func (d *Decoder) Module() ([]byte, error) { return readPacked(raster.FFmpeg, d.o.Module) }

// JXLModule does what Module does for the module of JPEG XL.
func (d *Decoder) JXLModule() ([]byte, error) {
	return readPacked(raster.JPEGXL, d.file(raster.JPEGXL))
}

// file returns the name of a module's file.
func (d *Decoder) file(m raster.Module) string {
	if m == raster.JPEGXL {
		return filepath.Join(filepath.Dir(d.o.Module), JXLFile)
	}
	return d.o.Module
}

// readModule returns the decompressed module in a file.
func readModule(m raster.Module, name string) ([]byte, error) {
	packed, err := readPacked(m, name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return system.ReadAll(r, maxModule)
}

func readPacked(m raster.Module, name string) ([]byte, error) {
	packed, err := system.ReadFile(name, maxPacked)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &missingError{name, moduleInfos[m].advice}
	case err != nil:
		return nil, fmt.Errorf("the decoding module cannot be read: %w", err)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != moduleInfos[m].packed {
		return nil, fmt.Errorf("the decoding module %s is not the one of %s: its SHA-256 is %x", name, moduleInfos[m].source, sum)
	}
	return packed, nil
}

// missingError is the error for a missing file of a module. Its text does not repeat the system's.
type missingError struct{ name, advice string }

func (m *missingError) Error() string {
	return fmt.Sprintf("the decoding module %s is missing: install it there%s", m.name, m.advice)
}

func (*missingError) Unwrap() error { return fs.ErrNotExist }
