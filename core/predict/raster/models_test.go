package raster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"testing"
)

// composeJPEG returns a JPEG with one component for each grey picture, in separate scans and with these ids. It has an Adobe segment unless
// adobe is negative.
func composeJPEG(t testing.TB, planes []*image.Gray, ids string, adobe int) []byte {
	t.Helper()
	var head, scans []byte
	frame := []byte{8, 0, 0, 0, 0, byte(len(planes))}
	for i, p := range planes {
		b := asJPEG(t, p)
		sof, sos := bytes.Index(b, []byte("\xff\xc0\x00\x0b")), bytes.Index(b, []byte("\xff\xda\x00\x08"))
		if i == 0 {
			// Tables may come before or after the frame header, so head is everything but that header.
			head = slices.Concat(b[:sof], b[sof+13:sos])
			copy(frame[1:5], b[sof+5:])
		}
		frame = append(frame, ids[i], 0x11, 0)
		scan := slices.Clone(b[sos : len(b)-2])
		scan[5] = ids[i]
		scans = append(scans, scan...)
	}
	sof := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xc0}, uint16(2+len(frame))), frame...)
	var app []byte
	if adobe >= 0 {
		app = append([]byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"), byte(adobe))
	}
	return slices.Concat(head[:2], app, head[2:], sof, scans, []byte{0xff, 0xd9})
}

// TestColourModels compares with the samples that image/jpeg decodes. It averages each component separately and converts the averages with
// package color.
func TestColourModels(t *testing.T) {
	const w, h = 40, 30
	var planes []*image.Gray
	for i := range 4 {
		m := image.NewGray(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				m.SetGray(x, y, color.Gray{Y: byte(40 + (x*(3+i)+y*(5-i))%190)})
			}
		}
		planes = append(planes, m)
	}
	tests := []struct {
		name    string
		picture []byte
		n       int
		convert func(p [4]byte) (r, g, b byte)
	}{
		{"grey", composeJPEG(t, planes[:1], "\x01", -1), 1, func(p [4]byte) (r, g, b byte) { return p[0], p[0], p[0] }},
		{"YCbCr 4:4:4", composeJPEG(t, planes[:3], "\x01\x02\x03", -1), 3, func(p [4]byte) (r, g, b byte) { return color.YCbCrToRGB(p[0], p[1], p[2]) }},
		{"RGB by its ids", composeJPEG(t, planes[:3], "RGB", -1), 3, func(p [4]byte) (r, g, b byte) { return p[0], p[1], p[2] }},
		{"RGB by Adobe", composeJPEG(t, planes[:3], "\x01\x02\x03", 0), 3, func(p [4]byte) (r, g, b byte) { return p[0], p[1], p[2] }},
		{"YCbCr by Adobe", composeJPEG(t, planes[:3], "RGB", 1), 3, nil},
		{"CMYK", composeJPEG(t, planes, "CMYK", 0), 4, func(p [4]byte) (r, g, b byte) {
			return color.CMYKToRGB(255-p[0], 255-p[1], 255-p[2], 255-p[3])
		}},
		{"YCCK", composeJPEG(t, planes, "\x01\x02\x03\x04", 2), 4, func(p [4]byte) (r, g, b byte) {
			c, m, y := color.YCbCrToRGB(p[0], p[1], p[2])
			return color.CMYKToRGB(c, m, y, 255-p[3])
		}},
	}
	d := NewDecoder(Limits{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// At full size, the result must equal image/jpeg's.
			m, err := jpeg.Decode(bytes.NewReader(tt.picture))
			check(t, err)
			reference := flatten(m)
			if c, ok := m.(*image.CMYK); ok {
				reference = newFlat(w, h, func(x, y int) [3]byte {
					p := c.CMYKAt(x, y)
					r, g, b := color.CMYKToRGB(p.C, p.M, p.Y, p.K)
					return [3]byte{r, g, b}
				})
			}
			got, err := d.Decode(tt.picture, View{Width: w, Height: h})
			check(t, err)
			if diff := difference(got, reference); diff != "" {
				t.Fatal("full size: " + diff)
			}
			if tt.convert == nil {
				return
			}
			// In a smaller view, the result is computed from averages of the samples.
			v := View{Width: 23, Height: 23, Centre: 16}
			var samples [4]flat
			for i := range tt.n {
				var b bytes.Buffer
				check(t, jpeg.Encode(&b, planes[i], &jpeg.Options{Quality: 92}))
				one, err := jpeg.Decode(&b)
				check(t, err)
				samples[i] = flatten(one).view(v)
			}
			want := newFlat(23, 23, func(x, y int) [3]byte {
				var p [4]byte
				for i := range tt.n {
					p[i] = samples[i].at(x, y)[0]
				}
				r, g, b := tt.convert(p)
				return [3]byte{r, g, b}
			})
			got, err = d.Decode(tt.picture, v)
			check(t, err)
			if diff := difference(got, want); diff != "" {
				t.Error("averaged: " + diff)
			}
		})
	}
}

// TestSubsampling checks every chroma sampling that image/jpeg's pictures can have, in odd sizes and with crops that begin within a
// chroma sample.
func TestSubsampling(t *testing.T) {
	for ratio := image.YCbCrSubsampleRatio444; ratio <= image.YCbCrSubsampleRatio410; ratio++ {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			m := image.NewYCbCr(image.Rect(0, 0, 37, 29), ratio)
			for _, plane := range [][]byte{m.Y, m.Cb, m.Cr} {
				for i := range plane {
					plane[i] = byte(i*i*31 + i*len(plane))
				}
			}
			reference := replicateChroma(m)
			for _, v := range []View{
				{Width: 37, Height: 29},
				{Width: 9, Height: 9, Centre: 15},
				{Width: 19, Height: 19, Centre: 15, Box: true},
				{Width: 11, Height: 8, Crop: Crop{Top: 0.1, Left: 0.09, Bottom: 0.97, Right: 0.92}},
			} {
				win, err := v.window(37, 29, upright)
				check(t, err)
				d := NewDecoder(Limits{})
				d.planesOf(m)
				got, err := d.render(loaded{3, rowYCbCr}, &win)
				check(t, err)
				if diff := difference(got, reference.view(v).fromYCbCr()); diff != "" {
					t.Errorf("%+v: %s", v, diff)
				}
			}
		})
	}
}

// TestSteadyState checks that a decoder takes no memory from the heap after its first photo.
func TestSteadyState(t *testing.T) {
	b := turnJPEG(asJPEG(t, noisy(300, 200)), 6)
	d := NewDecoder(Limits{})
	for _, v := range []View{{Width: 64, Height: 64, Centre: 15}, {Width: 64, Height: 64, Centre: 15, Box: true}, {MaxSide: 300}} {
		n := testing.AllocsPerRun(20, func() {
			if _, err := d.Decode(b, v); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%+v: %v allocations, want 0", v, n)
		}
	}
}

// TestDecodersDoNotMix checks that a decoder's earlier pictures do not affect its result.
func TestDecodersDoNotMix(t *testing.T) {
	used := NewDecoder(Limits{})
	v := View{Width: 30, Height: 30, Centre: 15}
	for range 2 {
		for _, pictures := range smallPictures(t) {
			for i, b := range pictures {
				want, wantErr := NewDecoder(Limits{}).Decode(b, v)
				got, err := used.Decode(b, v)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !slices.Equal(got.Pix, want.Pix) {
					t.Errorf("picture %d: a used decoder gives %v and other pixels, a new one %v", i, err, wantErr)
				}
			}
		}
	}
}
