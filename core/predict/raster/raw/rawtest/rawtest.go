// Package rawtest makes camera raw files for tests: the parts of each format that readers of previews and places use, around a JPEG. The
// sensor data is a few bytes that look like the start of a JPEG.
package rawtest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Place is the text in all parts of the files that can contain a place, except in the preview.
const Place = "51.5N 0.12W LONDON"

// sensor is sensor data: a lossless JPEG, and start markers that begin nothing.
const sensor = "\xff\xd8\xff\xc4\x00\x05abc\xff\xc3\x00\x0b\x0e\x10\x00\x10\x00\x01\x00\x11\x00\xff\xda\x00\x08\x01\x00\x00\x01\x00\x00data\xff\xd8\xff\xe0\xff\xd8\xff"

// MediaTypes has the media type of each file of Files, by its name.
var MediaTypes = map[string]string{
	"cr2": "image/x-canon-cr2", "cr3": "image/x-canon-cr3", "crw": "image/x-canon-crw", "nef": "image/x-nikon-nef", "arw": "image/x-sony-arw",
	"dng": "image/x-adobe-dng", "orf": "image/x-olympus-orf", "rw2": "image/x-panasonic-rw2", "raf": "image/x-fuji-raf", "pef": "image/x-pentax-pef",
	"srw": "image/x-samsung-srw", "mrw": "image/x-minolta-mrw", "x3f": "image/x-sigma-x3f",
}

// Names returns the names of the files of Files, in order.
func Names() []string { return slices.Sorted(maps.Keys(MediaTypes)) }

// Files returns a file of each format around a preview, by name. A file has the orientation 1, 3, 6 or 8 itself. raf has none, so that of the
// preview counts.
func Files(preview []byte, orientation int) map[string][]byte {
	le, be := binary.LittleEndian, binary.BigEndian
	files := map[string][]byte{}
	for name, f := range map[string]tiff{
		"cr2": {le, "II*\x00", "CR\x02\x00", "Canon", 6},
		"nef": {be, "MM\x00*", "", "NIKON CORPORATION", 32803},
		"arw": {le, "II*\x00", "", "SONY", 32803},
		"dng": {le, "II*\x00", "", "Ricoh", 34892},
		"orf": {le, "IIRO", "", "OLYMPUS", 1},
		"rw2": {le, "IIU\x00", "", "Panasonic", 1},
		"pef": {be, "MM\x00*", "", "PENTAX", 32803},
		"srw": {le, "II*\x00", "", "SAMSUNG", 32803},
	} {
		files[name] = f.file(preview, orientation, name == "dng")
	}
	exif := tiff{le, "II*\x00", "", "Canon", 1}.file(nil, orientation, false)

	files["cr3"] = slices.Concat(
		box("ftyp", "crx \x00\x00\x00\x01crx isom"),
		box("moov", string(box("uuid", "\x85\xc0\xb6\x87\x82\x0f\x11\xe0\x81\x11\xf4\xce\x46\x2b\x6a\x48",
			string(box("CNCV", "CanonCR3")), string(box("CMT1", string(exif))), string(box("CMT4", string(gpsFile())))))),
		box("uuid", "\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac", xmp),
		box("uuid", "\xea\xf4\x2b\x5e\x1c\x98\x4b\x88\xb9\xfb\xb7\xdc\x40\x6e\x4d\x16", "\x00\x00\x00\x00\x00\x00\x00\x01", string(box("PRVW", "123456781234", string(preview)))),
		box("mdat", sensor))

	size := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 64), 48), 0)
	size = le.AppendUint32(size, uint32(degrees(orientation)))
	heap := slices.Concat([]byte(sensor), preview, size)
	at := len(heap)
	heap = le.AppendUint16(heap, 2)
	heap = record(heap, 0x2007, len(preview), len(sensor))
	heap = record(heap, 0x1810, len(size), len(sensor)+len(preview))
	inner := le.AppendUint32(heap, uint32(at))
	outer := record(le.AppendUint16(slices.Clone(inner), 1), 0x300a, len(inner), 0)
	files["crw"] = slices.Concat([]byte("II\x1a\x00\x00\x00HEAPCCDR"), make([]byte, 12), le.AppendUint32(outer, uint32(len(inner))))

	header := slices.Concat([]byte("FUJIFILMCCD-RAW 0201"), make([]byte, 64))
	header = be.AppendUint32(be.AppendUint32(header, 100), uint32(len(preview)))
	files["raf"] = slices.Concat(header, make([]byte, 100-len(header)), preview, []byte(sensor))

	broken := slices.Clone(preview)
	if len(broken) > 0 {
		broken[0] = 0x02 // as Minolta's cameras write it
	}
	blocks := slices.Concat(block("\x00PRD", "12345678"), block("\x00TTW", string(tiff{be, "MM\x00*", "", "Minolta", 1}.file(broken, orientation, false))))
	files["mrw"] = slices.Concat(block("\x00MRM", string(blocks)), []byte(sensor))

	x3f := slices.Concat([]byte("FOVb\x01\x00\x02\x00"), make([]byte, 28))
	x3f = le.AppendUint32(x3f, uint32(degrees(orientation)))
	files["x3f"] = slices.Concat(x3f, []byte(sensor+"SECi\x00\x00\x02\x00"), preview, []byte("SECd"))
	return files
}

func degrees(orientation int) int { return map[int]int{3: 180, 6: 90, 8: 270}[orientation] }

const xmp = "<x:xmpmeta xmlns:x='adobe:ns:meta/'>" + Place + "</x:xmpmeta>"

func box(kind string, parts ...string) []byte {
	body := kind + strings.Join(parts, "")
	return append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
}

func block(kind, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
}

func record(b []byte, kind uint16, size, at int) []byte {
	le := binary.LittleEndian
	return le.AppendUint32(le.AppendUint32(le.AppendUint16(b, kind), uint32(size)), uint32(at))
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// tiff describes a file with the directories of TIFF.
type tiff struct {
	order       byteOrder
	magic       string
	prefix      string // bytes after the header
	maker       string
	photometric uint16 // of the sensor data
}

// entry is an entry of a directory. value has all of its bytes.
type entry struct {
	tag, kind uint16
	value     []byte
}

// writer appends directories.
type writer struct {
	order byteOrder
	b     []byte
}

func (w *writer) short(tag, v uint16) entry { return entry{tag, 3, w.order.AppendUint16(nil, v)} }

func (w *writer) long(tag uint16, v int) entry {
	return entry{tag, 4, w.order.AppendUint32(nil, uint32(v))}
}

func text(tag uint16, v string) entry { return entry{tag, 2, []byte(v + "\x00")} }

// add appends bytes at an even offset, which it returns.
func (w *writer) add(b []byte) int {
	if len(w.b)%2 == 1 {
		w.b = append(w.b, 0)
	}
	w.b = append(w.b, b...)
	return len(w.b) - len(b)
}

// dir appends a directory, and before it the values that do not fit into its entries. It returns the directory's offset.
func (w *writer) dir(next int, entries ...entry) int {
	sizes := map[uint16]int{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1}
	body := w.order.AppendUint16(nil, uint16(len(entries)))
	for _, e := range entries {
		body = w.order.AppendUint16(w.order.AppendUint16(body, e.tag), e.kind)
		body = w.order.AppendUint32(body, uint32(len(e.value)/sizes[e.kind]))
		if len(e.value) > 4 {
			body = w.order.AppendUint32(body, uint32(w.add(e.value)))
		} else {
			body = append(append(body, e.value...), make([]byte, 4-len(e.value))...)
		}
	}
	return w.add(w.order.AppendUint32(body, uint32(next)))
}

// gps appends a directory with a place.
func (w *writer) gps() int {
	var degrees []byte
	for _, v := range []uint32{51, 1, 30, 1, 2604, 100} {
		degrees = w.order.AppendUint32(degrees, v)
	}
	return w.dir(0, text(1, "N"), entry{2, 5, degrees}, text(3, "W"), entry{4, 5, degrees}, text(27, Place))
}

// gpsFile returns a TIFF whose first directory has a place.
func gpsFile() []byte {
	w := writer{binary.LittleEndian, []byte("II*\x00\x00\x00\x00\x00")}
	first := w.gps()
	w.order.PutUint32(w.b[4:], uint32(first))
	return w.b
}

// file returns a TIFF with a first directory for the preview, and a further one for the sensor data.
func (f tiff) file(preview []byte, orientation int, isDNG bool) []byte {
	w := &writer{f.order, []byte(f.magic + "\x00\x00\x00\x00" + f.prefix)}
	if f.prefix != "" {
		w.b = append(w.b, make([]byte, 8-len(f.prefix))...)
	}
	w.add([]byte(sensor)[:20])
	at := w.add(preview)
	data := w.add([]byte(sensor))
	sub := w.dir(0, w.long(254, 0), w.long(256, 64), w.long(257, 48), w.short(262, f.photometric), w.long(273, data), w.long(279, len(sensor)))
	exif := w.dir(0, entry{36867, 2, []byte("2019:07:21 23:06:38\x00")}, entry{37510, 7, []byte("ASCII\x00\x00\x00" + Place)})
	entries := []entry{
		w.long(254, 1), w.short(259, 6), text(270, Place), text(271, f.maker), w.long(273, at), w.short(274, uint16(orientation)), w.long(279, len(preview)),
		w.long(330, sub),
		{700, 1, []byte(xmp)},
		{33723, 7, []byte(Place)},
		w.long(34665, exif), w.long(34853, w.gps()),
	}
	if isDNG {
		entries = append(entries, entry{50706, 1, []byte{1, 4, 0, 0}})
	}
	first := w.dir(0, entries...)
	f.order.PutUint32(w.b[4:], uint32(first))
	return w.b
}
