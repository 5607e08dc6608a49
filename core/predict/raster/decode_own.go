//go:build !(wasip1 && lent)

package raster

// decodeElsewhere returns false, because in this build no host decodes.
func (*Decoder) decodeElsewhere([]byte, View) (img Image, done bool, err error) {
	return Image{}, false, nil
}
