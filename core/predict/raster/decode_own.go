//go:build !(wasip1 && lent)

package raster

// decodeElsewhere would have a host decode: here we do it ourselves.
func (*Decoder) decodeElsewhere([]byte, View) (img Image, done bool, err error) {
	return Image{}, false, nil
}
