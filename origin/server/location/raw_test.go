package location

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/raw"
	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// photoWithPlace returns a JPEG whose Exif has an orientation of 6 and a place.
func photoWithPlace(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 648, 40)), nil); err != nil {
		t.Fatal(err)
	}
	order := binary.LittleEndian
	exif := tiffDir(tiffHeader(order, 8), order, []entry{{tag: 270, kind: 2, value: []byte(rawtest.Place)}, {tag: 274, kind: 3, value: order.AppendUint16(nil, 6)}}, 0)
	return append(append([]byte("\xff\xd8"), segment(0xe1, exifStart+string(exif))...), b.Bytes()[2:]...)
}

// TestRawLosesLocation removes the place from camera raw of each format. The picture, the orientation and the sensor data stay.
func TestRawLosesLocation(t *testing.T) {
	preview, folder := photoWithPlace(t), t.TempDir()
	d := raster.NewDecoder(raster.Limits{})
	for name, file := range rawtest.Files(preview, 8) {
		if name != "crw" { // its directory is at the end
			file = append(file, "<x:xmpmeta>"+rawtest.Place+"</x:xmpmeta>rest"...)
		}
		got := remove(t, file)
		if i := bytes.Index(got, []byte(rawtest.Place[:8])); i >= 0 {
			t.Errorf("%s: the place is still at %d of %d", name, i, len(got))
		}
		for _, kept := range []string{"data\xff\xd8\xff\xe0", "2019:07:21", "rest"} { // sensor data, the date
			if bytes.Count(got, []byte(kept)) != bytes.Count(file, []byte(kept)) {
				t.Errorf("%s lost %q", name, kept)
			}
		}
		want, err := d.Decode(file, raster.View{MaxSide: 64})
		if err != nil {
			t.Fatal(name, err)
		}
		pix := bytes.Clone(want.Pix)
		if m, err := d.Decode(got, raster.View{MaxSide: 64}); err != nil || !bytes.Equal(m.Pix, pix) {
			t.Errorf("%s has other pixels: %v", name, err)
		}
		before, _ := raw.Read(file)
		after, ok := raw.Read(got)
		if !ok || after.Format != before.Format || after.Orientation != before.Orientation {
			t.Errorf("%s became %+v, orientation %d", name, after.Format, after.Orientation)
		}
		if again := remove(t, got); !bytes.Equal(again, got) {
			t.Errorf("%s: a second time it is another file", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name+"."+name), got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exiftoolFindsNoPlace(t, folder)
}

// exiftoolFindsNoPlace checks files with exiftool, if it is installed.
func exiftoolFindsNoPlace(t *testing.T, folder string) {
	t.Helper()
	tool, err := exec.LookPath("exiftool")
	if err != nil {
		t.Log("exiftool is not installed")
		return
	}
	out, err := exec.CommandContext(t.Context(), tool, "-a", "-u", "-ee", "-G1", "-r", folder).Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	for _, text := range []string{"GPS Latitude", "51 deg", "LONDON"} {
		if i := bytes.Index(out, []byte(text)); i >= 0 {
			t.Errorf("exiftool finds: %q", out[max(0, i-80):min(len(out), i+80)])
		}
	}
}

// TestMakerNotes removes the places in the notes of makers that have them, and nothing else.
func TestMakerNotes(t *testing.T) {
	order := binary.LittleEndian
	for name, note := range map[string]func(at int) []byte{
		"Nikon": func(int) []byte {
			return append([]byte("Nikon\x00\x02\x10\x00\x00"), tiffDir(tiffHeader(order, 8), order, []entry{{tag: 0x39, kind: 7, value: []byte(marker)}, {tag: 0x84, kind: 7, value: []byte("lens data")}}, 0)...)
		},
		"Panasonic": func(at int) []byte { // its offsets count from the start of the file
			b := append(make([]byte, at), "Panasonic\x00\x00\x00"...)
			return tiffDir(b, order, []entry{{tag: 0x6d, kind: 7, value: []byte(marker)}, {tag: 0x51, kind: 2, value: []byte("lens data")}}, 0)[at:]
		},
	} {
		const at = 8 + 2 + 12*3 + 4
		b := tiffDir(tiffHeader(order, 8), order, []entry{{tag: 34665, kind: 4, value: order.AppendUint32(nil, at)}, {tag: 271, kind: 2, value: []byte("SONY")}, {tag: 262, kind: 3, value: []byte{0x23, 0x80}}}, 0)
		const noteAt = at + 2 + 12 + 4
		b = append(b, tiffDir(nil, order, []entry{{tag: 37500, kind: 7, value: make([]byte, 300)}}, 0)[:18]...)
		order.PutUint32(b[at+10:], noteAt)
		b = append(append(b, note(noteAt)...), make([]byte, 300)...)
		if _, ok := raw.Recognise(b); !ok {
			t.Fatal("not raw")
		}
		got := remove(t, b)
		if bytes.Contains(got, []byte(marker[:5])) || !bytes.Contains(got, []byte("lens data")) {
			t.Errorf("%s: %q", name, got[noteAt:])
		}
	}
}

// pictureFile returns a HEIC with a picture, Exif and XMP in media data, and the same in the box of items. version is that of its box of
// places.
func pictureFile(version byte) []byte {
	exif, xmp := "\x00\x00\x00\x06"+exifStart+"II*\x00"+marker, "<x:xmpmeta>"+marker
	parts := []string{"picture of tiles", exif, xmp}
	infe := func(id uint16, kind, rest string) []byte {
		return atom("infe", uint32(2<<24), id, uint16(0), kind, "\x00"+rest)
	}
	build := func(mdat int) []byte {
		var iloc []any
		iloc = append(iloc, uint32(version)<<24, uint16(0x4440))
		if version == 2 {
			iloc = append(iloc, uint32(6))
		} else {
			iloc = append(iloc, uint16(6))
		}
		at := [2]uint32{uint32(mdat), 0}
		for i := range 6 {
			method := i / 3
			if version == 2 {
				iloc = append(iloc, uint32(1+i))
			} else {
				iloc = append(iloc, uint16(1+i))
			}
			if version > 0 {
				iloc = append(iloc, uint16(method))
			}
			size := uint32(len(parts[i%3]))
			iloc = append(iloc, uint16(0), at[method], uint16(1), uint32(0), size)
			at[method] += size
		}
		idat := atom("idat", strings.Join(parts, ""))
		if version == 0 {
			idat = nil // version 0 cannot name it: the offsets of these items are those of the file's start
		}
		meta := atom("meta", uint32(0), atom("hdlr", uint64(0), "pict", [3]uint32{}, marker), atom("pitm", uint32(0), uint16(1)),
			atom("iinf", uint32(0), uint16(6), infe(1, "hvc1", ""), infe(2, "Exif", ""), infe(3, "mime", "application/rdf+xml\x00"),
				infe(4, "grid", ""), infe(5, "Exif", ""), infe(6, "mime", "")),
			atom("iloc", iloc...), atom("iprp", atom("ipco", atom("ispe", uint32(0), uint64(1)), atom("udes", uint32(0), "en\x00"+marker+"\x00\x00\x00"))),
			atom("priv", marker), idat)
		return bytes.Join([][]byte{atom("ftyp", "heic", uint32(0), "mif1"), meta, atom("uuid", marker), atom("mdat", strings.Join(parts, "")), atom("sefd", marker)}, nil)
	}
	one := build(0)
	return build(bytes.LastIndex(one, []byte("picture of tiles")))
}

// TestPictureItems removes the place from HEIC. AVIF has the same boxes. The data of pictures stays, wherever it is.
func TestPictureItems(t *testing.T) {
	for version := range byte(3) {
		file := pictureFile(version)
		got := remove(t, file)
		if bytes.Contains(got, []byte(marker[:5])) || bytes.Contains(got, []byte(exifStart+"II")) || bytes.Contains(got, []byte("xmpmeta")) {
			t.Errorf("version %d: %q", version, got)
		}
		if n, want := bytes.Count(got, []byte("picture of tiles")), bytes.Count(file, []byte("picture of tiles")); n != want {
			t.Errorf("version %d: %d of %d pictures stay", version, n, want)
		}
		for _, kind := range []string{"meta", "pitm", "iinf", "iloc", "iprp", "ipco", "ispe", "udes", "mdat", "Exif"} {
			if bytes.Count(got, []byte(kind)) < 1 {
				t.Errorf("version %d lost %s", version, kind)
			}
		}
		if again := remove(t, got); !bytes.Equal(again, got) {
			t.Errorf("version %d: a second time it is another file", version)
		}
	}
}

// TestFilmsMeta checks that the box of text of a film, which has the kind of the box of items, is removed.
func TestFilmsMeta(t *testing.T) {
	file := bytes.Join([][]byte{atom("ftyp", "isom"), atom("meta", uint32(0), atom("hdlr", uint64(0), "mdir", [3]uint32{}), atom("ilst", marker))}, nil)
	if got := remove(t, file); bytes.Contains(got, []byte(marker[:5])) {
		t.Errorf("%q", got)
	}
}

func TestJPEGXL(t *testing.T) {
	signature := "\x00\x00\x00\x0cJXL \r\n\x87\n"
	stay := [][]byte{[]byte(signature), atom("ftyp", "jxl ", uint32(0), "jxl "), atom("jxll", "\x0a"), atom("jxlp", uint32(0), "first")}
	file := bytes.Join(append(stay, atom("Exif", uint32(0), "II*\x00"+marker), atom("xml ", marker), atom("brob", "Exif"+marker), atom("jbrd", marker),
		atom("jumb", marker), atom("jxlp", uint32(1<<31+1), "last")), nil)
	got := remove(t, file)
	if bytes.Contains(got, []byte(marker[:5])) || !bytes.HasPrefix(got, bytes.Join(stay, nil)) || !bytes.HasSuffix(got, atom("jxlp", uint32(1<<31+1), "last")) {
		t.Errorf("%q", got)
	}
	if n := bytes.Count(got, []byte("free")); n != 5 {
		t.Errorf("%d of 5 boxes are skipped: %q", n, got)
	}
	for _, bare := range []string{"\xff\x0a codestream", signature} {
		if got := remove(t, []byte(bare)); string(got) != bare {
			t.Errorf("%q became %q", bare, got)
		}
	}
}
