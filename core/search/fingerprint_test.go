package search

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/draw"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// encodePicture encodes a picture.
func encodePicture(t testing.TB, m image.Image, format string, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, m)
	case "gif":
		err = gif.Encode(&b, m, nil)
	default:
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// thumbOf returns the thumbnail of an encoded picture, made as in an analysis.
func thumbOf(t testing.TB, d *raster.Decoder, picture []byte) []byte {
	t.Helper()
	img, err := d.Decode(picture, raster.View{MaxSide: predict.ThumbnailSide})
	if err != nil {
		t.Fatal(err)
	}
	m := image.NewRGBA(image.Rect(0, 0, img.Width, img.Height))
	for i := range img.Width * img.Height {
		copy(m.Pix[4*i:], img.Pix[3*i:3*i+3])
		m.Pix[4*i+3] = 0xff
	}
	return encodePicture(t, m, "jpeg", 80)
}

func resize(m image.Image, width, height int) image.Image {
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.ApproxBiLinear.Scale(out, out.Rect, m, m.Bounds(), draw.Src, nil)
	return out
}

// TestFingerprintsOfPhotos saves real photographs again in many ways. It compares their prints with those of the originals, of all other
// photographs, and of the pictures' mirror images and middles.
func TestFingerprintsOfPhotos(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testkit.DataPath(t, "photos"), "*.jpg"))
	if err != nil || len(names) < 40 {
		t.Fatalf("%d photos, %v", len(names), err)
	}
	d := raster.NewDecoder(raster.Limits{})
	look := func(picture []byte) *fingerprint {
		t.Helper()
		fingerprint, err := Fingerprint(d, thumbOf(t, d, picture))
		if err != nil {
			t.Fatal(err)
		}
		return decodeFingerprint(fingerprint)
	}
	var prints []*fingerprint
	for i, name := range names {
		original, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		own := look(original)
		for j, p := range prints {
			if own.same(p) || p.same(own) {
				t.Errorf("%s and %s are one picture", name, names[j])
			}
		}
		prints = append(prints, own)
		if i%12 != 0 {
			continue
		}
		m, err := jpeg.Decode(bytes.NewReader(original))
		if err != nil {
			t.Fatal(err)
		}
		w, h := m.Bounds().Dx(), m.Bounds().Dy()
		for variant, data := range map[string][]byte{
			"quality 80": encodePicture(t, m, "jpeg", 80), "quality 20": encodePicture(t, m, "jpeg", 20),
			"PNG": encodePicture(t, m, "png", 0), "GIF": encodePicture(t, m, "gif", 0),
			"half": encodePicture(t, resize(m, w/2, h/2), "jpeg", 70), "a third": encodePicture(t, resize(m, w/3, h/3), "jpeg", 70),
			"larger": encodePicture(t, resize(m, w*3/2, h*3/2), "jpeg", 90),
		} {
			if p := look(data); !p.same(own) || !own.same(p) {
				t.Errorf("%s: %s is another picture", name, variant)
			}
		}
		if p := look(encodePicture(t, resize(m, w, h*3/4), "jpeg", 90)); p.same(own) {
			t.Errorf("%s squeezed is the same picture", name)
		}
		middle := image.NewRGBA(image.Rect(0, 0, w*3/4, h*3/4))
		draw.Draw(middle, middle.Rect, m, m.Bounds().Min.Add(image.Pt(w/8, h/8)), draw.Src)
		if p := look(encodePicture(t, middle, "jpeg", 90)); p.same(own) {
			t.Errorf("%s: its middle is the same picture", name)
		}
	}
}

// TestFingerprint compares fingerprints of photographs with the means of the thumbnails' pixels.
func TestFingerprint(t *testing.T) {
	d := raster.NewDecoder(raster.Limits{})
	for _, size := range [][2]int{{1, 1}, {3, 2}, {64, 64}, {57, 300}, {320, 213}} {
		m := image.NewRGBA(image.Rect(0, 0, size[0], size[1]))
		for y := range size[1] {
			for x := range size[0] {
				m.SetRGBA(x, y, color.RGBA{byte(50 + 150*x/size[0]), byte(200 - 100*y/size[1]), byte(60 + 40*x/size[0] + 80*y/size[1]), 255})
			}
		}
		thumb := encodePicture(t, m, "jpeg", 90)
		got, err := Fingerprint(d, thumb)
		if err != nil {
			t.Fatal(err)
		}
		p := decodeFingerprint(got)
		if p.width != size[0] || p.height != size[1] {
			t.Fatalf("%v: the shape is %d×%d", size, p.width, p.height)
		}
		var sums [cells]int
		for y := range fingerprintSide * size[1] {
			for x := range fingerprintSide * size[0] {
				at := m.RGBAAt(x/fingerprintSide, y/fingerprintSide)
				for c, v := range []byte{at.R, at.G, at.B} {
					sums[3*(y/size[1]*fingerprintSide+x/size[0])+c] += int(v)
				}
			}
		}
		for i, sum := range sums {
			if min(size[0], size[1]) < fingerprintSide { // the parts lie between the centres of pixels
				continue
			}
			if want := sum / (size[0] * size[1]); int(p.means[i]) < want-4 || int(p.means[i]) > want+4 {
				t.Fatalf("%v: mean %d is %d, want %d", size, i, p.means[i], want)
			}
		}
	}
}

// TestFingerprintsOfPlainPictures compares the fingerprints of pictures of one colour, which have no rising or falling brightness.
func TestFingerprintsOfPlainPictures(t *testing.T) {
	plain := func(level byte, width int) *fingerprint {
		p := &fingerprint{width: width, height: 100}
		for i := range p.means {
			p.means[i] = level
		}
		return p
	}
	if !plain(100, 100).same(plain(101, 100)) {
		t.Error("two greys that are close are different pictures")
	}
	if plain(100, 100).same(plain(140, 100)) {
		t.Error("two greys are one picture")
	}
	if plain(100, 100).same(plain(100, 120)) {
		t.Error("two shapes are one picture")
	}
	if _, err := Fingerprint(raster.NewDecoder(raster.Limits{}), []byte("no picture")); err == nil {
		t.Error("no picture has a fingerprint")
	}
	if p := decodeFingerprint(make([]byte, fingerprintBytes-1)); p != nil {
		t.Errorf("bytes that are no fingerprint are %+v", p)
	}
}
