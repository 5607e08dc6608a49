//go:build !(wasip1 && lent)

package raster

// viewsAtHost returns false, because in this build no host decodes.
func (*Decoder) viewsAtHost([]byte, []View, func(int, Image)) (done bool, err error) {
	return false, nil
}

// inspectAtHost returns false, because in this build no host reads headers.
func inspectAtHost([]byte) (Info, bool) { return Info{}, false }
