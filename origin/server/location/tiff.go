package location

import (
	"encoding/binary"
	"io"
)

// Tags of TIFF, which is also the format of Exif.
const (
	tagOrientation = 274
	tagSubIFDs     = 330
	tagXMP         = 700
	tagIPTC        = 33723
	tagPhotoshop   = 34377
	tagExif        = 34665
	tagGPS         = 34853
	tagInterop     = 40965
)

const (
	entryBytes = 12
	maxFolders = 64 // maximum number of image file directories in a file
	maxEdits   = 1 << 12
)

// directories reads the directories of a TIFF file or of a picture's Exif.
type directories struct {
	data  []byte
	order byteOrder
	seen  map[int64]bool // offsets of the directories that were read
	edits
}

// IsTIFF reports whether a file that begins with start is TIFF.
func IsTIFF(start []byte) bool {
	return len(start) >= 4 && (string(start[:4]) == "II*\x00" || string(start[:4]) == "MM\x00*")
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// openTIFF reads the header. at is the offset of the first directory. ok is false for other files.
func openTIFF(data []byte) (t *directories, at int64, ok bool) {
	if len(data) < 8 {
		return nil, 0, false
	}
	t = &directories{data: data, seen: map[int64]bool{}}
	switch string(data[:4]) {
	case "II*\x00":
		t.order = binary.LittleEndian
	case "MM\x00*":
		t.order = binary.BigEndian
	default:
		return nil, 0, false
	}
	return t, int64(t.order.Uint32(data[4:])), true
}

// directory returns the bytes of the entries of the directory at an offset, as far as they are in the file.
func (t *directories) directory(at int64) []byte {
	if at < 8 || at+2 > int64(len(t.data)) {
		return nil
	}
	from := at + 2
	to := min(from+entryBytes*int64(t.order.Uint16(t.data[at:])), int64(len(t.data)))
	return t.data[from : to-(to-from)%entryBytes]
}

// sizes lists the number of bytes of a value of each type.
var sizes = [...]int64{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4}

// value returns the offset and the length of an entry's value outside the entry. It returns zeros if the value is in the entry or invalid.
func (t *directories) value(e []byte) (at, n int64) {
	kind := int(t.order.Uint16(e[2:]))
	if kind >= len(sizes) {
		return 0, 0
	}
	n = sizes[kind] * int64(t.order.Uint32(e[4:]))
	at = int64(t.order.Uint32(e[8:]))
	if n <= 4 || at < 8 || at >= int64(len(t.data)) {
		return 0, 0
	}
	return at, min(n, int64(len(t.data))-at)
}

// keepOrientation replaces Exif data by data of the same length that only contains the picture's orientation.
func keepOrientation(exif []byte) {
	orientation := uint16(0)
	if t, at, ok := openTIFF(exif); ok {
		for e := t.directory(at); len(e) > 0; e = e[entryBytes:] {
			if t.order.Uint16(e) == tagOrientation && t.order.Uint16(e[2:]) == 3 {
				orientation = t.order.Uint16(e[8:])
			}
		}
	}
	clear(exif)
	const head, with = 14, 14 + entryBytes
	switch {
	case len(exif) < head:
		return
	case len(exif) < with || orientation < 1 || orientation > 8:
		copy(exif, "II*\x00\x08\x00\x00\x00")
		return
	}
	copy(exif, "II*\x00\x08\x00\x00\x00\x01\x00")
	e := exif[10:]
	binary.LittleEndian.PutUint16(e, tagOrientation)
	binary.LittleEndian.PutUint16(e[2:], 3)
	binary.LittleEndian.PutUint32(e[4:], 1)
	binary.LittleEndian.PutUint16(e[8:], orientation)
}

// Edit replaces Len bytes of a file, starting at offset At.
type Edit struct {
	At, Len int64
	By      []byte // Len bytes; nil: zeros
}

// TIFF returns the edits that remove the place from a TIFF file. They keep the file's length. For another file TIFF returns nil.
func TIFF(data []byte) []Edit {
	t, at, ok := openTIFF(data)
	if !ok {
		return nil
	}
	t.chain(at)
	return t.edits
}

// chain removes entries from the directory at an offset and from the directories that follow it.
func (t *directories) chain(at int64) {
	for at != 0 && !t.seen[at] && len(t.seen) < maxFolders {
		t.seen[at] = true
		entries := t.directory(at)
		end := at + 2 + int64(len(entries))
		if len(entries) == 0 || end+4 > int64(len(t.data)) {
			return
		}
		next := t.data[end : end+4]
		var retained []byte
		for ; len(entries) > 0; entries = entries[entryBytes:] {
			e := entries[:entryBytes]
			switch t.order.Uint16(e) {
			case tagXMP, tagIPTC, tagPhotoshop, tagInterop:
				t.blank(t.value(e))
				continue
			case tagExif, tagGPS:
				t.forget(int64(t.order.Uint32(e[8:])))
				continue
			case tagSubIFDs:
				t.below(e)
			}
			retained = append(retained, e...)
		}
		if n := end - at - 2 - int64(len(retained)); n > 0 {
			by := t.order.AppendUint16(nil, uint16(len(retained)/entryBytes))
			by = append(append(by, retained...), next...)
			t.edit(Edit{At: at, Len: end + 4 - at, By: append(by, make([]byte, n)...)})
		}
		at = int64(t.order.Uint32(next))
	}
}

// below calls chain for the directories that entry e names.
func (t *directories) below(e []byte) {
	if t.order.Uint32(e[4:]) == 1 {
		t.chain(int64(t.order.Uint32(e[8:])))
		return
	}
	at, n := t.value(e)
	for ; n >= 4; at, n = at+4, n-4 {
		t.chain(int64(t.order.Uint32(t.data[at:])))
	}
}

// forget zeroes a directory of Exif or GPS entries, with all their values and the directories below it.
func (t *directories) forget(at int64) {
	if t.seen[at] || len(t.seen) >= maxFolders {
		return
	}
	t.seen[at] = true
	entries := t.directory(at)
	for e := entries; len(e) > 0; e = e[entryBytes:] {
		switch t.order.Uint16(e) {
		case tagExif, tagGPS, tagInterop:
			t.forget(int64(t.order.Uint32(e[8:])))
		default:
			t.blank(t.value(e))
		}
	}
	if len(entries) > 0 {
		t.blank(at, 2+int64(len(entries)))
	}
}

// edits is a list of at most maxEdits edits of a file.
type edits []Edit

func (all *edits) blank(at, n int64) {
	if n > 0 {
		all.edit(Edit{At: at, Len: n})
	}
}

func (all *edits) edit(e Edit) {
	if len(*all) < maxEdits {
		*all = append(*all, e)
	}
}

// editReader reads a file and applies edits.
type editReader struct {
	from  io.Reader
	edits []Edit
	at    int64
}

// NewEditReader returns a reader of a file with the edits applied. If edits overlap, the later one in the list counts.
func NewEditReader(from io.Reader, edits []Edit) io.Reader {
	return &editReader{from: from, edits: edits}
}

// Read implements [io.Reader].
func (r *editReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	for _, e := range r.edits {
		from, to := max(e.At, r.at), min(e.At+e.Len, r.at+int64(n))
		if from >= to {
			continue
		}
		if e.By != nil {
			copy(p[from-r.at:to-r.at], e.By[from-e.At:])
		} else {
			clear(p[from-r.at : to-r.at])
		}
	}
	r.at += int64(n)
	return n, err
}
