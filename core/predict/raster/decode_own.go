//go:build !(wasip1 && lent)

package raster

// decodeAtHost returns false, because in this build no host decodes.
func (*Decoder) decodeAtHost([]byte, View) (img Image, done bool, err error) {
	return Image{}, false, nil
}

// inspectAtHost returns false, because in this build no host reads headers.
func inspectAtHost([]byte) (Info, bool) { return Info{}, false }
