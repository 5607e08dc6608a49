package exif

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/sightline-dev/sightline/core/predict/raster/heif"
	"github.com/sightline-dev/sightline/core/predict/raster/raw"
)

// Version is the number of the newest set of dates that [Read] finds. A change that finds further dates raises it, so that hosts read the
// files of stored pictures again.
const Version = 1

// Data is the metadata of a picture's file that this program uses. The zero Data has neither a date nor a place.
type Data struct {
	Taken Time
	Place Place
}

// Time is the time that a camera showed. The zero Time is unknown.
type Time struct {
	Wall      int64 `wire:"1"` // seconds since 1970 as if the camera's clock showed UTC
	Offset    int64 `wire:"2"` // minutes east of UTC, if HasOffset
	HasOffset bool  `wire:"3"`
	Known     bool  `wire:"4"`
}

// Place is the place where a picture was taken, in degrees, rounded to 1e-7. The zero Place is unknown.
type Place struct {
	Longitude float64 `wire:"1"`
	Latitude  float64 `wire:"2"`
}

// sources are the dates of a file. Earlier ones count.
type sources struct {
	dates   [4]string // DateTimeOriginal, DateTimeDigitized, DateTime, others
	offsets [4]string
	place   Place
}

// The indices of sources.
const (
	original = iota
	digitized
	changed
	other
)

// Read returns the metadata of a picture's file. It reads EXIF first, then texts of PNG and XMP. It never returns an error, because
// damaged metadata must not make a picture invalid. The result depends on the bytes only, so it is the same at every host.
func Read(file []byte) Data {
	var s sources
	switch {
	case begins(file, "\xff\xd8"):
		s.jpeg(file)
	case begins(file, "\x89PNG"):
		s.png(file)
	case begins(file, "RIFF"):
		s.webp(file)
	default:
		s.other(file)
	}
	return s.data()
}

// ReadXMP returns the date and the place in XMP, such as a sidecar file.
func ReadXMP(b []byte) Data {
	var s sources
	s.xmp(b)
	return s.data()
}

// data returns the first valid date, and the place.
func (s *sources) data() (d Data) {
	d.Place = s.place
	for i, text := range s.dates {
		if t := parse(text); t.Known {
			if offset, ok := parseOffset(s.offsets[i]); ok {
				t.Offset, t.HasOffset = offset, true
			}
			d.Taken = t
			break
		}
	}
	return d
}

// isComplete reports whether no other part of the file matters.
func (s *sources) isComplete() bool {
	return s.place != Place{} && s.data().Taken.Known
}

// add fills a date that no earlier part of the file has.
func (s *sources) add(i int, text string) {
	if !parse(s.dates[i]).Known {
		s.dates[i] = text
	}
}

// jpeg reads the segments before the first scan.
func (s *sources) jpeg(b []byte) {
	var packets [][]byte
	segments(b, func(marker byte, body []byte) bool {
		const xmp = "http://ns.adobe.com/xap/1.0/\x00"
		switch {
		case marker == 0xe1 && begins(body, start):
			s.tiff(body[len(start):], false)
		case marker == 0xe1 && begins(body, xmp):
			packets = append(packets, body[len(xmp):])
		}
		return true
	})
	for _, p := range packets {
		s.xmp(p)
	}
}

// webp reads the chunks of a WebP. A chunk is its kind, its length, its body, and a byte if the length is odd.
func (s *sources) webp(b []byte) {
	var packet []byte
	for at := uint64(12); at+8 <= uint64(len(b)); {
		size := uint64(binary.LittleEndian.Uint32(b[at+4:]))
		body := b[at+8 : min(at+8+size, uint64(len(b)))]
		switch string(b[at : at+4]) {
		case "EXIF":
			s.tiff(trimStart(body), false)
		case "XMP ":
			packet = body
		}
		at += 8 + size + size&1
	}
	s.xmp(packet)
}

// other reads the files of all other formats. Their XMP is found by its text, wherever it is.
func (s *sources) other(b []byte) {
	switch {
	case begins(b, "\x00\x00\x00\x0cJXL "):
		s.jxl(b)
	case len(b) >= 8 && string(b[4:8]) == "ftyp":
		for _, part := range raw.Structures(b) {
			s.tiff(part.Bytes, part.IsGPS)
		}
		for _, item := range heif.Exif(b) {
			s.tiff(trimStart(item), false)
		}
	default:
		for _, part := range raw.Structures(b) {
			s.tiff(part.Bytes, part.IsGPS)
		}
		if !s.data().Taken.Known {
			if f, ok := raw.Read(b); ok && f.Preview != nil {
				s.jpeg(f.Preview)
			}
		}
		if t := raw.CRWTime(b); t != 0 {
			s.add(other, format(t))
		}
	}
	if !s.isComplete() {
		s.packets(b)
	}
}

// jxl reads the boxes of a JPEG XL file. Boxes that Brotli compresses are left out.
func (s *sources) jxl(b []byte) {
	for at := uint64(0); at+8 <= uint64(len(b)); {
		size, head := uint64(binary.BigEndian.Uint32(b[at:])), uint64(8)
		switch {
		case size == 0:
			size = uint64(len(b)) - at
		case size == 1 && at+16 <= uint64(len(b)):
			size, head = binary.BigEndian.Uint64(b[at+8:]), 16
		}
		if size < head || size > uint64(len(b))-at {
			return
		}
		if body := b[at+head : at+size]; string(b[at+4:at+8]) == "Exif" && len(body) > 4 {
			if from := uint64(binary.BigEndian.Uint32(body)) + 4; from < uint64(len(body)) {
				s.tiff(trimStart(body[from:]), false)
			}
		}
		at += size
	}
}

// Tags of EXIF that this file reads.
const (
	tagDateTime       = 0x0132
	tagExif           = 0x8769
	tagGPS            = 0x8825
	tagOriginal       = 0x9003
	tagDigitized      = 0x9004
	tagOffset         = 0x9010 // of tagDateTime
	tagOffsetOriginal = 0x9011
	tagOffsetDigit    = 0x9012

	tagLatitudeRef  = 1
	tagLatitude     = 2
	tagLongitudeRef = 3
	tagLongitude    = 4
)

// tiff reads the directories of EXIF data b, a TIFF structure. places reports whether its first directory is that of GPS, as in a CR3.
func (s *sources) tiff(b []byte, places bool) {
	t := structure{b: b}
	var at uint32
	if t.order, at = header(b); t.order == nil {
		return
	}
	if places {
		s.gps(&t, at)
		return
	}
	sub, gps := s.directory(&t, at)
	if sub > 0 {
		if _, more := s.directory(&t, sub); gps == 0 {
			gps = more
		}
	}
	s.gps(&t, gps)
}

// directory reads the dates in the directory at an offset. It returns the offsets of the directories of EXIF and GPS, or 0.
func (s *sources) directory(t *structure, at uint32) (sub, gps uint32) {
	for e := t.entries(at); len(e) >= entryBytes; e = e[entryBytes:] {
		switch t.order.Uint16(e) {
		case tagDateTime:
			s.add(changed, t.text(e))
		case tagOriginal:
			s.add(original, t.text(e))
		case tagDigitized:
			s.add(digitized, t.text(e))
		case tagOffset:
			s.offset(changed, t.text(e))
		case tagOffsetOriginal:
			s.offset(original, t.text(e))
		case tagOffsetDigit:
			s.offset(digitized, t.text(e))
		case tagExif:
			sub = t.order.Uint32(e[8:])
		case tagGPS:
			gps = t.order.Uint32(e[8:])
		}
	}
	return sub, gps
}

func (s *sources) offset(i int, text string) {
	if s.offsets[i] == "" {
		s.offsets[i] = text
	}
}

// gps reads the directory of GPS at an offset.
func (s *sources) gps(t *structure, at uint32) {
	latitude, longitude := math.NaN(), math.NaN() // missing
	var south, west bool
	for e := t.entries(at); len(e) >= entryBytes; e = e[entryBytes:] {
		switch t.order.Uint16(e) {
		case tagLatitudeRef:
			south = strings.HasPrefix(strings.ToUpper(t.text(e)), "S")
		case tagLongitudeRef:
			west = strings.HasPrefix(strings.ToUpper(t.text(e)), "W")
		case tagLatitude:
			latitude = t.degrees(e)
		case tagLongitude:
			longitude = t.degrees(e)
		}
	}
	s.at(latitude, longitude, south, west)
}

// at sets the place, if none is known and this one is valid. NaN is a coordinate that is missing.
func (s *sources) at(latitude, longitude float64, south, west bool) {
	if south {
		latitude = -latitude
	}
	if west {
		longitude = -longitude
	}
	if s.place == (Place{}) && math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180 {
		s.place = Place{Longitude: rounded(longitude), Latitude: rounded(latitude)}
	}
}

// rounded returns v rounded to 1e-7, without a negative zero.
func rounded(v float64) float64 { return math.Round(v*1e7)/1e7 + 0 }

func begins(b []byte, magic string) bool {
	return len(b) >= len(magic) && string(b[:len(magic)]) == magic
}
