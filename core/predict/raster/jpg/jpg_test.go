package jpg

import (
	"bytes"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// globTestData returns the files that match the patterns in the folder next to the project.
func globTestData(t testing.TB, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(testkit.Root(t), "..", "shared", p))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("no shared pictures beside the project")
	}
	return files
}

// against decodes data with image/jpeg and with d at full size. It fails if only one of them accepts data, or if their samples differ. It
// reports whether both accept it.
func against(t testing.TB, d *Decoder, data []byte) bool {
	t.Helper()
	want, wantErr := jpeg.Decode(bytes.NewReader(data))
	got, err := d.Decode(data, Options{})
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Decode = %v, image/jpeg says %v", err, wantErr)
	}
	if err != nil {
		return false
	}
	switch m := want.(type) {
	case *image.Gray:
		samePlane(t, got, 0, m.Pix, m.Stride, m.Rect)
	case *image.YCbCr:
		if got.Model != YCbCr {
			t.Fatalf("Model = %v, want YCbCr", got.Model)
		}
		samePlane(t, got, 0, m.Y, m.YStride, m.Rect)
		r := image.Rect(0, 0, ceil(m.Rect.Dx(), got.P[1].HSub), ceil(m.Rect.Dy(), got.P[1].VSub))
		samePlane(t, got, 1, m.Cb, m.CStride, r)
		samePlane(t, got, 2, m.Cr, m.CStride, r)
	case *image.RGBA:
		if got.Model != RGB {
			t.Fatalf("Model = %v, want RGB", got.Model)
		}
		sameColors(t, got, m.Pix, m.Stride, m.Rect, 3, 0)
	case *image.CMYK:
		if got.Model == CMYK {
			sameColors(t, got, m.Pix, m.Stride, m.Rect, 4, 255)
		} else {
			sameInk(t, got, m)
		}
	default:
		t.Fatalf("image/jpeg gave %T", m)
	}
	return true
}

// samePlane compares plane i with the samples of pix in r.
func samePlane(t testing.TB, got *Planes, i int, pix []byte, stride int, r image.Rectangle) {
	t.Helper()
	p := &got.P[i]
	if r.Empty() && (p.Width == 0 || p.Height == 0) {
		return
	}
	if p.Width != r.Dx() || p.Height != r.Dy() {
		t.Fatalf("plane %d is %dx%d, want %dx%d", i, p.Width, p.Height, r.Dx(), r.Dy())
	}
	for y := range p.Height {
		if a, b := p.Pix[y*p.Stride:][:p.Width], pix[y*stride:][:p.Width]; !bytes.Equal(a, b) {
			for x := range a {
				if a[x] != b[x] {
					t.Fatalf("plane %d (%d, %d) = %d, want %d", i, x, y, a[x], b[x])
				}
			}
		}
	}
}

// sameColors compares n planes with four interleaved bytes a pixel, each xor flip.
func sameColors(t testing.TB, got *Planes, pix []byte, stride int, r image.Rectangle, n int, flip byte) {
	t.Helper()
	for i := range n {
		p := &got.P[i]
		for y := range r.Dy() {
			for x := range r.Dx() {
				a, b := p.Pix[y/p.VSub*p.Stride+x/p.HSub], pix[y*stride+4*x+i]^flip
				if a != b {
					t.Fatalf("plane %d (%d, %d) = %d, want %d", i, x, y, a, b)
				}
			}
		}
	}
}

// sameInk compares YCCK planes with the CMYK picture image/jpeg makes of them.
func sameInk(t testing.TB, got *Planes, m *image.CMYK) {
	t.Helper()
	if got.Model != YCCK {
		t.Fatalf("Model = %v, want YCCK", got.Model)
	}
	ratio := image.YCbCrSubsampleRatio444
	if got.P[1].HSub == 2 {
		ratio = image.YCbCrSubsampleRatio420
	}
	ycc := image.YCbCr{
		Y: got.P[0].Pix, Cb: got.P[1].Pix, Cr: got.P[2].Pix, YStride: got.P[0].Stride, CStride: got.P[1].Stride,
		SubsampleRatio: ratio, Rect: m.Rect,
	}
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			r, g, b, _ := ycc.YCbCrAt(x, y).RGBA()
			k := 255 - got.P[3].Pix[y*got.P[3].Stride+x]
			want := m.CMYKAt(x, y)
			if want.C != byte(r>>8) || want.M != byte(g>>8) || want.Y != byte(b>>8) || want.K != k {
				t.Fatalf("(%d, %d) = %d %d %d %d, want %v", x, y, r>>8, g>>8, b>>8, k, want)
			}
		}
	}
}

func TestDecodeSharedPictures(t *testing.T) {
	var d Decoder
	accepted, every := 0, 1
	if testing.Short() {
		every = 12
	}
	for i, file := range globTestData(t, "photos/*.jpg", "photos/formats/*.jpg", "samples/*.jpg", "eval/pictures/*.jpg") {
		if i%every != 0 {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			if against(t, &d, data) {
				accepted++
			}
		})
	}
	if accepted < 50/every {
		t.Errorf("took %d pictures", accepted)
	}
}
