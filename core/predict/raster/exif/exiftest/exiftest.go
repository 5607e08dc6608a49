// Package exiftest makes files with metadata for tests.
package exiftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// Tags are the values of EXIF data. An empty value is left out.
type Tags struct {
	Original, OriginalOffset   string // DateTimeOriginal, for example "2019:07:21 23:06:38", and OffsetTimeOriginal
	Digitized, DigitizedOffset string
	Changed, ChangedOffset     string    // DateTime
	Place                      []float64 // latitude and longitude
}

// Order is the byte order of EXIF data.
type Order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type entry struct {
	tag, kind uint16
	count     int
	value     []byte
}

// EXIF returns a TIFF structure with the tags.
func EXIF(order Order, t Tags) []byte {
	b := []byte("II*\x00")
	if order == Order(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	sub := texts(map[uint16]string{
		0x9003: t.Original, 0x9004: t.Digitized, 0x9010: t.ChangedOffset, 0x9011: t.OriginalOffset, 0x9012: t.DigitizedOffset,
	})
	var gps []entry
	if len(t.Place) == 2 {
		gps = append(gps, ref(1, t.Place[0], "NS"), angle(order, 2, t.Place[0]), ref(3, t.Place[1], "EW"), angle(order, 4, t.Place[1]))
	}
	first := texts(map[uint16]string{0x0132: t.Changed})
	link := func(tag uint16) { first = append(first, entry{tag, 4, 1, make([]byte, 4)}) }
	if len(sub) > 0 {
		link(0x8769)
	}
	if len(gps) > 0 {
		link(0x8825)
	}
	at := 8 + size(first)
	for i := range first {
		switch first[i].tag {
		case 0x8769:
			order.PutUint32(first[i].value, uint32(at))
			at += size(sub)
		case 0x8825:
			order.PutUint32(first[i].value, uint32(at))
		}
	}
	b = directory(b, order, first)
	if len(sub) > 0 {
		b = directory(b, order, sub)
	}
	if len(gps) > 0 {
		b = directory(b, order, gps)
	}
	return b
}

func texts(values map[uint16]string) (list []entry) {
	for tag, v := range values {
		if v != "" {
			list = append(list, entry{tag, 2, len(v) + 1, []byte(v + "\x00")})
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return int(a.tag) - int(b.tag) })
	return list
}

func ref(tag uint16, v float64, letters string) entry {
	if v >= 0 {
		letters = letters[:1]
	}
	return entry{tag, 2, 2, []byte{letters[len(letters)-1], 0}}
}

// angle returns degrees, minutes and seconds; the seconds in 10,000 parts.
func angle(order Order, tag uint16, v float64) entry {
	all := uint64(math.Round(math.Abs(v) * 3600 * 10000))
	var b []byte
	for _, n := range []uint64{all / 36_000_000, 1, all / 600_000 % 60, 1, all % 600_000, 10000} {
		b = order.AppendUint32(b, uint32(n))
	}
	return entry{tag, 5, 3, b}
}

func size(list []entry) int {
	n := 2 + 12*len(list) + 4
	for _, e := range list {
		if len(e.value) > 4 {
			n += len(e.value)
		}
	}
	return n
}

// directory appends a directory and, behind it, its values.
func directory(b []byte, order Order, list []entry) []byte {
	at := len(b) + 2 + 12*len(list) + 4
	var values []byte
	b = order.AppendUint16(b, uint16(len(list)))
	for _, e := range list {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, e.tag), e.kind), uint32(e.count))
		if len(e.value) <= 4 {
			b = append(append(b, e.value...), make([]byte, 4-len(e.value))...)
			continue
		}
		b = order.AppendUint32(b, uint32(at+len(values)))
		values = append(values, e.value...)
	}
	return append(append(b, 0, 0, 0, 0), values...)
}

// XMP returns a packet with properties, as attributes.
func XMP(properties ...string) []byte {
	b := []byte(`<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description`)
	for i := 0; i+1 < len(properties); i += 2 {
		b = fmt.Appendf(b, ` %s="%s"`, properties[i], properties[i+1])
	}
	return append(b, `/></rdf:RDF></x:xmpmeta>`...)
}

// JPEG returns a JPEG with EXIF data and XMP, each if it is not nil.
func JPEG(picture, exif, xmp []byte) []byte {
	segment := func(start string, body []byte) []byte {
		if body == nil {
			return nil
		}
		b := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(2+len(start)+len(body)))
		return append(append(b, start...), body...)
	}
	return slices.Concat(picture[:2], segment("Exif\x00\x00", exif), segment("http://ns.adobe.com/xap/1.0/\x00", xmp), picture[2:])
}

// Chunk returns a chunk of a PNG.
func Chunk(kind string, body []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind...)
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// PNG returns a PNG with further chunks behind its header.
func PNG(picture []byte, chunks ...[]byte) []byte {
	return slices.Concat(picture[:33], bytes.Join(chunks, nil), picture[33:])
}

// WebP returns a WebP file with EXIF data and XMP behind its picture, each if it is not nil. The picture has the simple form.
func WebP(picture, exif, xmp []byte) []byte {
	b := bytes.Clone(picture)
	for _, c := range []struct {
		kind string
		body []byte
	}{{"EXIF", exif}, {"XMP ", xmp}} {
		if c.body == nil {
			continue
		}
		b = append(binary.LittleEndian.AppendUint32(append(b, c.kind...), uint32(len(c.body))), c.body...)
		if len(c.body)%2 == 1 {
			b = append(b, 0)
		}
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// Box returns a box of ISO/IEC 14496-12, which JPEG XL uses, too.
func Box(kind string, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(all))), []byte(kind), all)
}

// HEIF returns the boxes of a HEIC with EXIF data and a main picture without content. Readers of metadata find the data; decoders reject
// the file.
func HEIF(exif []byte) []byte {
	be := binary.BigEndian
	ftyp := Box("ftyp", []byte("heic\x00\x00\x00\x00mif1heic"))
	item := func(id uint16, kind string) []byte {
		return Box("infe", []byte{2, 0, 0, 0}, be.AppendUint16(nil, id), []byte{0, 0}, []byte(kind), []byte{0})
	}
	meta := func(at uint32) []byte {
		place := be.AppendUint16([]byte{0, 0, 0, 0, 0x44, 0}, 1) // offsets and lengths of 4 bytes
		place = be.AppendUint16(be.AppendUint16(be.AppendUint16(place, 7), 0), 1)
		place = be.AppendUint32(be.AppendUint32(place, at), uint32(4+len(exif)))
		return Box("meta", make([]byte, 4),
			Box("pitm", make([]byte, 4), be.AppendUint16(nil, 1)),
			Box("iinf", make([]byte, 4), be.AppendUint16(nil, 2), item(1, "hvc1"), item(7, "Exif")),
			Box("iref", make([]byte, 4), Box("cdsc", be.AppendUint16(nil, 7), be.AppendUint16(nil, 1), be.AppendUint16(nil, 1))),
			Box("iloc", place))
	}
	head := len(ftyp) + len(meta(0)) + 8
	return slices.Concat(ftyp, meta(uint32(head)), Box("mdat", make([]byte, 4), exif))
}

// JXL returns the boxes of a JPEG XL file with EXIF data around a codestream.
func JXL(codestream, exif []byte) []byte {
	return slices.Concat([]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), Box("ftyp", []byte("jxl \x00\x00\x00\x00jxl ")),
		Box("Exif", make([]byte, 4), exif), Box("jxlc", codestream))
}
