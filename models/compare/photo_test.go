package main

import (
	"bytes"
	"image/jpeg"
	"testing"
)

// TestBenchmarkPhotoIsLikeCameraJPEG keeps the benchmarks' picture near 1.5 bits per pixel, as in a camera's JPEG at quality 85. Fewer bits
// would make every decoder look faster.
func TestBenchmarkPhotoIsLikeCameraJPEG(t *testing.T) {
	const width, height = 1152, 864
	b, err := photo(width, height)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jpeg.Decode(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	if bits := float64(8*len(b)) / (width * height); bits < 1.3 || bits > 1.7 {
		t.Errorf("photo(%d, %d) has %.2f bits a pixel, want 1.5 ± 0.2", width, height, bits)
	}
}
