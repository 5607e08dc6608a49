//go:build wasip1 && lent

package raster

// wasm/README.md describes the import.
//
//go:wasmimport kernel inspect
//go:noescape
func hostInspect(src *byte, n int32, info *[4]int32) int32

// inspectAtHost asks the host to read a picture's headers. It returns false if the host does not inspect or the
// picture is invalid: then the guest inspects the picture and returns the error.
func inspectAtHost(picture []byte) (Info, bool) {
	if len(picture) == 0 {
		return Info{}, false
	}
	var v [4]int32
	f := hostInspect(&picture[0], int32(len(picture)), &v)
	if f <= 0 || int(f) >= len(formatNames) {
		return Info{}, false
	}
	return Info{Format: formatNames[f], Width: int(v[0]), Height: int(v[1]), Orientation: int(v[2]), Frames: int(v[3])}, true
}
