package jpg

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkDecode decodes the files named by the pattern in JPEG_FILES, or one of the
// shared photos, at every scale, and with image/jpeg.
func BenchmarkDecode(b *testing.B) {
	files, err := filepath.Glob(os.Getenv("JPEG_FILES"))
	if err != nil {
		b.Fatal(err)
	}
	if len(files) == 0 {
		files = globTestData(b, "photos/formats/craft-beer.jpg", "photos/001_plant.jpg")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		for _, scale := range []int{8, 4, 2, 1} {
			b.Run(fmt.Sprintf("%s/scale=%d", filepath.Base(file), scale), func(b *testing.B) {
				var d Decoder
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if _, err := d.Decode(data, Options{Scale: scale}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(filepath.Base(file)+"/image-jpeg", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := jpeg.Decode(bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
