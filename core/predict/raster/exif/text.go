package exif

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"time"
)

// Limits of texts, in bytes.
const (
	maxText   = 128     // of a date
	maxPacket = 1 << 20 // of XMP, and of a text of PNG after decompression
)

// maxPackets is the maximum number of packets of XMP that count.
const maxPackets = 16

// noon is the hour of a date without a time.
const noon = 12

// parse reads a date such as "2019:07:21 23:06:38", also with other separators, and with an offset behind it. A date without a time is at
// noon. It returns the zero Time for an invalid date.
func parse(text string) Time {
	s := strings.Trim(text, " \t\r\n\x00")
	var n [6]int
	year, s, ok := digits(s, 4, 4)
	if n[0] = year; !ok {
		return Time{}
	}
	for i := 1; i < 3; i++ {
		if s == "" || !strings.ContainsRune(":-/.", rune(s[0])) {
			return Time{}
		}
		if n[i], s, ok = digits(s[1:], 1, 2); !ok {
			return Time{}
		}
	}
	rest := strings.TrimLeft(s, " T")
	if rest == "" {
		return of(n[0], n[1], n[2], noon, 0, 0)
	}
	if rest == s { // neither a time nor the end
		return Time{}
	}
	if n[3], rest, ok = digits(rest, 1, 2); !ok {
		return Time{}
	}
	for i := 4; i < 6 && (i == 4 || strings.HasPrefix(rest, ":")); i++ {
		if rest == "" || rest[0] != ':' {
			return Time{}
		}
		if n[i], rest, ok = digits(rest[1:], 1, 2); !ok {
			return Time{}
		}
	}
	t := of(n[0], n[1], n[2], n[3], n[4], n[5])
	if strings.HasPrefix(rest, ".") {
		rest = strings.TrimLeft(rest[1:], "0123456789")
	}
	if offset, ok := parseOffset(rest); ok && t.Known {
		t.Offset, t.HasOffset = offset, true
	}
	return t
}

// of returns the time of a date. It returns the zero Time if the calendar has no such date.
func of(year, month, day, hour, minute, second int) Time {
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	y, m, d := t.Date()
	if year < 1 || y != year || int(m) != month || d != day || hour > 23 || minute > 59 || second > 59 {
		return Time{}
	}
	return Time{Wall: t.Unix(), Known: true}
}

// format is the inverse of parse for a time since 1970.
func format(wall int64) string { return time.Unix(wall, 0).UTC().Format("2006:01:02 15:04:05") }

// digits reads a number of least to most digits at the beginning of s.
func digits(s string, least, most int) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < most && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, _ = strconv.Atoi(s[:i])
	return n, s[i:], i >= least
}

// maxOffset is the maximum of an offset in minutes, on both sides. Zones have at most 14 hours, and had at most 16.
const maxOffset = 16 * 60

// parseOffset reads an offset from UTC such as "+02:00", "-0930" or "Z", in minutes.
func parseOffset(text string) (minutes int64, ok bool) {
	s := strings.Trim(text, " \x00")
	if s == "Z" || s == "z" {
		return 0, true
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, rest, ok := digits(s[1:], 1, 2)
	minute := 0
	if rest = strings.TrimPrefix(rest, ":"); ok && rest != "" {
		minute, rest, ok = digits(rest, 2, 2)
	}
	if minutes = int64(60*hour + minute); !ok || rest != "" || minute > 59 || minutes > maxOffset {
		return 0, false
	}
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// png reads the chunks of a PNG, also those after the pixels: eXIf, texts with a date, with XMP, and with EXIF as ImageMagick writes it.
func (s *sources) png(b []byte) {
	var packets [][]byte
	created := ""
	for at := uint64(8); at+12 <= uint64(len(b)); {
		end := at + 8 + uint64(binary.BigEndian.Uint32(b[at:]))
		if end+4 > uint64(len(b)) {
			break
		}
		body := b[at+8 : end]
		switch kind := string(b[at+4 : at+8]); kind {
		case "eXIf":
			s.tiff(trimStart(body), false)
		case "tEXt", "zTXt", "iTXt":
			switch key, text := pngText(kind, body); key {
			case "Creation Time":
				created = string(text[:min(len(text), maxText)])
			case "XML:com.adobe.xmp":
				packets = append(packets, text)
			case "Raw profile type exif", "Raw profile type APP1":
				s.tiff(trimStart(profile(text)), false)
			}
		}
		at = end + 4
	}
	if created != "" {
		s.addCreated(created)
	}
	for _, p := range packets {
		s.xmp(p)
	}
}

// addCreated adds the creation time of a PNG, for which its specification suggests the form of RFC 1123.
func (s *sources) addCreated(text string) {
	words := strings.Fields(text)
	if len(words) > 0 && strings.HasSuffix(words[0], ",") {
		words = words[1:] // the day of the week
	}
	if len(words) >= 4 && len(words[1]) >= 3 {
		if i := strings.Index(months, words[1][:3]); i >= 0 && i%3 == 0 {
			text = words[2] + "-" + strconv.Itoa(i/3+1) + "-" + words[0] + "T" + words[3]
			switch zone := strings.Join(words[4:], ""); zone {
			case "GMT", "UT", "UTC":
				text += "Z"
			default: // parse ignores the letters of other zones, which are ambiguous
				text += zone
			}
		}
	}
	s.add(other, text)
}

// months has the names of the months in the form of RFC 1123.
const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// pngText returns the keyword and the text of a chunk of text.
func pngText(kind string, body []byte) (key string, text []byte) {
	word, rest, ok := bytes.Cut(body, []byte{0})
	if !ok || len(word) > 79 {
		return "", nil
	}
	compressed := kind == "zTXt"
	switch {
	case compressed && len(rest) > 0:
		rest = rest[1:] // the method
	case kind == "iTXt" && len(rest) >= 2:
		compressed = rest[0] == 1
		rest = rest[2:]
		for range 2 { // language, and the keyword in that language
			if _, rest, ok = bytes.Cut(rest, []byte{0}); !ok {
				return "", nil
			}
		}
	}
	if compressed {
		rest = inflate(rest)
	}
	return string(word), rest
}

// inflate decompresses at most maxPacket bytes of a text.
func inflate(b []byte) []byte {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(r, maxPacket)) // as far as it is valid
	return text
}

// profile returns the bytes of a profile that ImageMagick stored as text: a name, a length, and hexadecimal digits in lines.
func profile(text []byte) []byte {
	lines := strings.Fields(string(text))
	if len(lines) < 3 {
		return nil
	}
	out, err := hex.DecodeString(strings.Join(lines[2:], ""))
	if err != nil {
		return nil
	}
	return out
}

// packets reads the packets of XMP in any file.
func (s *sources) packets(b []byte) {
	for range maxPackets {
		i := bytes.Index(b, []byte("<rdf:RDF"))
		if i < 0 {
			return
		}
		b = b[i:]
		end := bytes.Index(b[:min(len(b), maxPacket)], []byte("</rdf:RDF"))
		if end < 0 {
			end = min(len(b), maxPacket)
		}
		s.xmp(b[:end])
		b = b[end:]
	}
}

// xmp reads a packet of XMP. The prefixes of its names are those that the standard recommends, which programs use.
func (s *sources) xmp(b []byte) {
	for _, name := range [...]string{"exif:DateTimeOriginal", "photoshop:DateCreated", "exif:DateTimeDigitized", "xmp:CreateDate"} {
		s.add(other, property(b, name))
	}
	latitude, south, ok := coordinate(property(b, "exif:GPSLatitude"), 'N', 'S')
	longitude, west, both := coordinate(property(b, "exif:GPSLongitude"), 'E', 'W')
	if ok && both {
		s.at(latitude, longitude, south, west)
	}
}

// property returns the value of a simple property of XMP, which is an attribute or an element, or "".
func property(b []byte, name string) string {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(name))
		if i < 0 {
			return ""
		}
		before := byte(' ')
		if at+i > 0 {
			before = b[at+i-1]
		}
		at += i + len(name)
		rest := bytes.TrimLeft(b[at:min(len(b), at+2*maxText)], " \t\r\n")
		until := ""
		switch {
		case before == '<' && begins(rest, ">"):
			until = "<"
		case before != '<' && before != '/' && begins(rest, "="):
			if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
				until = string(rest[:1])
			}
		}
		if until == "" {
			continue
		}
		if value, _, ok := bytes.Cut(rest[1:], []byte(until)); ok && len(value) <= maxText {
			return strings.TrimSpace(string(value))
		}
	}
}

// coordinate reads an angle of XMP, such as "47,30.5N" or "47,30,15N". negative reports whether it ends in the second letter.
func coordinate(text string, positive, other byte) (degrees float64, negative, ok bool) {
	if text == "" {
		return 0, false, false
	}
	last := text[len(text)-1] &^ 0x20
	if last != positive && last != other {
		return 0, false, false
	}
	unit := 1.0
	for i, part := range strings.Split(text[:len(text)-1], ",") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || i > 2 || v < 0 {
			return 0, false, false
		}
		degrees += float64(v / unit)
		unit *= 60
	}
	return degrees, last == other, true
}
