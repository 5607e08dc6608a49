package raster_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// checks returns a picture of 4 × 2 pixels: a black and a white square of 2 × 2.
func checks() []byte {
	m := image.NewGray(image.Rect(0, 0, 4, 2))
	copy(m.Pix, []byte{0, 0, 255, 255, 0, 0, 255, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func ExampleDecoder_Decode() {
	d := raster.NewDecoder(raster.Limits{})
	img, err := d.Decode(checks(), raster.View{
		Crop:  raster.Crop{Top: 0, Left: 0.25, Bottom: 1, Right: 1}, // three columns
		Width: 3, Height: 1,
	})
	fmt.Println(img.Width, img.Height, img.Pix, err)
	// Output: 3 1 [0 0 0 255 255 255 255 255 255] <nil>
}

func ExampleDecoder_Frames() {
	frames, err := raster.NewDecoder(raster.Limits{}).Frames(checks(), time.Second)
	for err == nil {
		var at time.Duration
		var img raster.Image
		if at, err = frames.Next(); err == nil {
			if img, err = frames.Image(raster.View{MaxSide: 2}); err == nil {
				fmt.Println(at, img.Width, img.Height, img.Pix)
			}
		}
	}
	fmt.Println(err)
	// Output:
	// 0s 2 1 [0 0 0 255 255 255]
	// EOF
}

func ExampleInspect() {
	info, err := raster.Inspect(checks())
	fmt.Printf("%+v %v\n", info, err)
	_, err = raster.Inspect([]byte("\x00\x00\x00\x18ftypqt  \x00\x00\x00\x00qt  "))
	fmt.Println(err)
	// Output:
	// {Format:png Width:4 Height:2 Orientation:1 Frames:1} <nil>
	// QuickTime video: picture format not supported: send it as data.video
}
