package raw_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/raw"
	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRead checks format, preview and orientation of each format. The largest JPEG counts, wherever it is.
func TestRead(t *testing.T) {
	preview := picture(t, 640, 480)
	for _, orientation := range []int{1, 3, 6, 8} {
		for name, file := range rawtest.Files(preview, orientation) {
			if name != "crw" { // its directory is at the end
				file = append(file, picture(t, 160, 120)...)
			}
			f, ok := raw.Read(file)
			if !ok || f.MediaType != rawtest.MediaTypes[name] || f.Width != 640 || f.Height != 480 || !bytes.Equal(f.Preview, preview) {
				t.Errorf("%s: Read = %v, %+v, %d × %d, %d bytes", name, ok, f.Format, f.Width, f.Height, len(f.Preview))
			}
			want := orientation
			if name == "raf" || orientation == 1 && (name == "crw" || name == "x3f") {
				want = 0
			}
			if f.Orientation != want {
				t.Errorf("%s: orientation %d, want %d", name, f.Orientation, want)
			}
		}
	}
}

// TestRecogniseStart checks the formats whose first bytes suffice.
func TestRecogniseStart(t *testing.T) {
	for name, file := range rawtest.Files(nil, 1) {
		f, ok := raw.Recognise(file[:min(len(file), 32)])
		if want := !slices.Contains([]string{"nef", "arw", "dng", "pef", "srw"}, name); ok != want || ok && f.MediaType != rawtest.MediaTypes[name] {
			t.Errorf("%s: %+v, %v", name, f, ok)
		}
	}
}

func TestOrdinaryFiles(t *testing.T) {
	order := binary.LittleEndian
	rgb := []byte("II*\x00\x08\x00\x00\x00\x01\x00")
	rgb = order.AppendUint32(order.AppendUint16(order.AppendUint16(rgb, 262), 3), 1)
	rgb = append(rgb, 2, 0, 0, 0, 0, 0, 0, 0)
	for name, b := range map[string][]byte{
		"TIFF": append(rgb, picture(t, 640, 480)...), "JPEG": picture(t, 640, 480), "nothing": nil, "TIFF without directories": []byte("II*\x00\xff\xff\xff\xff"),
		"MP4": []byte("\x00\x00\x00\x14ftypisom\x00\x00\x00\x00crx1"), "minor version": []byte("\x00\x00\x00\x14ftypisomcrx mp41"),
	} {
		if f, ok := raw.Read(b); ok {
			t.Errorf("%s is %+v", name, f.Format)
		}
	}
}

// TestSensorDataIsNotPreview checks that a tile of sensor data, which a lossy DNG stores as JPEG, is not the preview.
func TestSensorDataIsNotPreview(t *testing.T) {
	preview, tile := picture(t, 640, 480), picture(t, 1024, 1024)
	file := rawtest.Files(preview, 1)["dng"]
	at := len(file)
	file = append(file, tile...)
	old := binary.LittleEndian.AppendUint16(nil, 273)
	old = append(old, 4, 0, 1, 0, 0, 0)
	first := bytes.Index(file, old)
	binary.LittleEndian.PutUint32(file[first+len(old):], uint32(at)) // the strip of the directory of sensor data, which comes first
	if f, _ := raw.Read(file); f.Width != 640 {
		t.Errorf("the preview has %d pixels a row", f.Width)
	}
}

// TestPreviewWithoutEnd checks that a preview without an end marker reaches to the end of the file.
func TestPreviewWithoutEnd(t *testing.T) {
	preview := picture(t, 640, 480)
	preview = preview[:len(preview)-2]
	file := append(rawtest.Files(nil, 1)["raf"], preview...)
	if f, _ := raw.Read(file); !bytes.Equal(f.Preview, preview) {
		t.Errorf("%d of %d bytes", len(f.Preview), len(preview))
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	preview := picture(t, 640, 480)
	for name, file := range rawtest.Files(preview, 6) {
		n := testing.AllocsPerRun(2, func() { raw.Read(file) })
		if most := 3.0; n > most {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestHostile checks that files which would take much work end.
func TestHostile(t *testing.T) {
	const size = 8 << 20
	be := binary.BigEndian
	for name, part := range map[string]string{
		"start markers":     "\xff\xd8\xff",
		"long segments":     "\xff\xd8\xff\xe0\xff\xff",
		"headers in a row":  "\xff\xd8\xff\xe0\x00\x02",
		"nested heaps":      "\x01\x00\x0a\x30\x00\x00\x10\x00\x00\x00\x00\x00",
		"empty boxes":       "\x00\x00\x00\x08moov",
		"chained directory": "\x01\x00\x4a\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00\x1a\x00\x00\x00",
	} {
		for start, head := range map[string]string{
			"dng": "II*\x00\x08\x00\x00\x00", "cr3": "\x00\x00\x00\x10ftypcrx \x00\x00\x00\x00", "crw": "II\x1a\x00\x00\x00HEAPCCDR", "mrw": "\x00MRM\x00\x00\x00\x00",
			"raf": "FUJIFILMCCD-RAW ",
		} {
			file := append([]byte(head), bytes.Repeat([]byte(part), size/len(part))...)
			if f, _ := raw.Read(be.AppendUint32(file, 8)); f.Preview != nil {
				t.Errorf("%s in %s: a preview", name, start)
			}
		}
	}
}

// FuzzRead checks that Read ends, and that a preview is a JPEG in the file.
func FuzzRead(f *testing.F) {
	for _, file := range rawtest.Files(picture(f, 16, 16), 6) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := raw.Read(b)
		if !ok && (got.Preview != nil || got.Name != "") || ok && (got.Name == "" || got.MediaType == "") || got.Orientation < 0 || got.Orientation > 8 {
			t.Fatalf("Read = %+v, %v", got, ok)
		}
		if p := got.Preview; p != nil && (p[0] != 0xff || !bytes.Contains(b, p[1:]) || got.Width < 1 || got.Height < 1) {
			t.Fatalf("preview of %d × %d pixels, %d bytes", got.Width, got.Height, len(p))
		}
	})
}

func ExampleRead() {
	file := rawtest.Files([]byte("no picture"), 6)["nef"]
	f, ok := raw.Read(file)
	fmt.Println(ok, f.Name, f.MediaType, f.Orientation, f.Preview == nil)
	// Output: true Nikon raw (NEF) image/x-nikon-nef 6 true
}
