//go:build wasip1 && lent

package raster

// The import is that of wasm/README.md.
//
//go:wasmimport kernel inspect
//go:noescape
func inspectLent(src *byte, n int32, info *[4]int32) int32

// inspectElsewhere has the host read a picture's headers, and reports whether they are those of one that it may
// decode: what is wrong with others we say ourselves.
func inspectElsewhere(picture []byte) (Info, bool) {
	if len(picture) == 0 {
		return Info{}, false
	}
	var v [4]int32
	f := inspectLent(&picture[0], int32(len(picture)), &v)
	if f <= 0 || int(f) >= len(formatNames) {
		return Info{}, false
	}
	return Info{Format: formatNames[f], Width: int(v[0]), Height: int(v[1]), Orientation: int(v[2]), Frames: int(v[3])}, true
}
