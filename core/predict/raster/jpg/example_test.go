package jpg_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

func ExampleDecoder_Decode() {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, image.NewYCbCr(image.Rect(0, 0, 640, 480), image.YCbCrSubsampleRatio420), nil); err != nil {
		fmt.Println(err)
		return
	}
	var d jpg.Decoder
	planes, err := d.Decode(file.Bytes(), jpg.Options{Scale: 8, Region: jpg.Rect{X0: 80, X1: 560, Y1: 480}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%dx%d from (%d, %d)\n", planes.P[0].Width, planes.P[0].Height, planes.X0, planes.Y0)
	for _, p := range planes.P[:planes.N] {
		fmt.Printf("%dx%d\n", p.Width, p.Height)
	}
	// Output:
	// 60x60 from (10, 0)
	// 60x60
	// 30x30
	// 30x30
}
