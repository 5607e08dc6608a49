package location

import (
	"encoding/binary"
	"io"
)

// Tags of TIFF, which Exif is written in.
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
	maxFolders = 64 // image file directories of one file
	maxEdits   = 1 << 12
)

// directories are those of a file, or the Exif of a picture.
type directories struct {
	data  []byte
	order byteOrder
	seen  map[int64]bool // offsets of directories
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

// openTIFF reads the header. at is the offset of the first directory.
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

// directory returns the entries of a directory that are in the file.
func (t *directories) directory(at int64) []byte {
	if at < 8 || at+2 > int64(len(t.data)) {
		return nil
	}
	from := at + 2
	to := min(from+entryBytes*int64(t.order.Uint16(t.data[at:])), int64(len(t.data)))
	return t.data[from : to-(to-from)%entryBytes]
}

// sizes are the bytes of a value of each type.
var sizes = [...]int64{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4}

// value returns where the value of an entry is that does not fit into the entry.
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

// keepOrientation replaces Exif by one of the same length that has the orientation of the picture only.
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

// TIFF returns the edits that remove the place from a TIFF file, which keep its length; none for another file.
func TIFF(data []byte) []Edit {
	t, at, ok := openTIFF(data)
	if !ok {
		return nil
	}
	t.chain(at)
	return t.edits
}

// chain removes entries from a directory and those that follow it.
func (t *directories) chain(at int64) {
	for at != 0 && !t.seen[at] && len(t.seen) < maxFolders {
		t.seen[at] = true
		entries := t.directory(at)
		end := at + 2 + int64(len(entries))
		if len(entries) == 0 || end+4 > int64(len(t.data)) {
			return
		}
		next := t.data[end : end+4]
		var kept []byte
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
			kept = append(kept, e...)
		}
		if n := end - at - 2 - int64(len(kept)); n > 0 {
			by := t.order.AppendUint16(nil, uint16(len(kept)/entryBytes))
			by = append(append(by, kept...), next...)
			t.edit(Edit{At: at, Len: end + 4 - at, By: append(by, make([]byte, n)...)})
		}
		at = int64(t.order.Uint32(next))
	}
}

// below goes through the directories that an entry names.
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

// forget zeroes a directory of Exif or GPS entries with all their values and the directories below it.
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

// edits are at most maxEdits edits of a file.
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

// editReader is a file with edits.
type editReader struct {
	from  io.Reader
	edits []Edit
	at    int64
}

// NewEditReader returns a reader of a file with edits. Later edits win.
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
