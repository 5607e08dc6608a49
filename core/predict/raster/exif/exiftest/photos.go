package exiftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// Photo is a picture and the date that its camera showed.
type Photo struct {
	Name   string
	File   []byte
	Local  string // for example "2019-07-21T23:06:38"; empty: none
	Offset int    // minutes; NoOffset: none
}

// NoOffset is the Offset of a photo whose file has none.
const NoOffset = 1 << 20

// moments are dates and times at which clocks, zones and counters change, and ordinary ones.
var moments = []string{
	"2019-07-21T23:06:38", "1970-01-01T00:00:00", "1969-12-31T23:59:59", "1970-01-01T00:00:01", "2038-01-19T03:14:07", "2038-01-19T03:14:08",
	"2106-02-07T06:28:15", "2106-02-07T06:28:16", "1935-05-04T12:00:00", "1901-12-13T20:45:51", "1826-06-01T08:00:00", "0001-01-01T00:00:00",
	"9999-12-31T23:59:59", "2000-02-29T10:00:00", "2024-02-29T23:59:59", "1900-02-28T12:30:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00",
	"2024-03-10T02:30:00", "2011-12-30T12:00:00", "2016-12-31T23:59:59", "1999-12-31T23:59:59", "2000-01-01T00:00:00", "2024-06-23T00:00:00", "2024-06-23T23:59:59",
}

// offsets are offsets from UTC in minutes.
var offsets = []int{NoOffset, 0, 60, -540, 345, 840, -720, 570, -210, 765}

// breaks make a date invalid.
var breaks = []func(date string) string{
	func(string) string { return "0000:00:00 00:00:00" },
	func(string) string { return "    :  :     :  :  " },
	func(d string) string { return d[:5] + "13" + d[7:] },
	func(d string) string { return d[:5] + "02:30" + d[10:] },
	func(d string) string { return d[:11] + "24" + d[13:] },
	func(d string) string { return d[:len(d)-2] + "60" },
	func(d string) string { return d[:7] },
	func(string) string { return "yesterday" },
}

// Photos returns 300 small photos with dates of every kind: with and without offsets, in EXIF, XMP and texts, at moments when clocks
// change, and broken.
func Photos() []Photo {
	var all []Photo
	for i := range 300 {
		moment, offset := moments[i%len(moments)], offsets[i*7%len(offsets)]
		p := Photo{Name: fmt.Sprintf("%03d", i), Local: moment, Offset: offset}
		date := bytes.ReplaceAll([]byte(moment), []byte("-"), []byte(":"))
		date[10] = ' '
		d, zone := string(date), zoneText(offset)
		if i < 220 {
			p.File = container(i, Tags{Original: d, OriginalOffset: zone, Changed: "2022:02:02 02:02:02"}, "", d)
			switch i % 11 {
			case 7:
				p.File = container(i, Tags{Digitized: d, DigitizedOffset: zone, OriginalOffset: "+01:11"}, "", d)
			case 8:
				p.File = container(i, Tags{Changed: d, ChangedOffset: zone}, "", d)
			case 9, 10:
				p.File = container(i, Tags{}, moment+zone, "")
			}
		} else {
			broken := breaks[i%len(breaks)](d)
			p.Local, p.Offset = "", NoOffset
			tags := Tags{Original: broken, OriginalOffset: zone}
			if i%2 == 1 { // a further date is valid
				tags.Digitized, p.Local = d, moment
			}
			p.File = container(i, tags, "", broken)
		}
		all = append(all, p)
	}
	return all
}

// zoneText returns an offset as EXIF writes it.
func zoneText(offset int) string {
	switch {
	case offset == NoOffset:
		return ""
	case offset < 0:
		return fmt.Sprintf("-%02d:%02d", -offset/60, -offset%60)
	}
	return fmt.Sprintf("+%02d:%02d", offset/60, offset%60)
}

// container returns a picture with EXIF data, or with a date in XMP.
func container(i int, t Tags, xmp, note string) []byte {
	order := []Order{binary.LittleEndian, binary.BigEndian}[i%2]
	img := image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.RGBA{uint8(i), uint8(i >> 3), 128, 255}, color.White})
	var packet, block []byte
	if xmp != "" {
		packet = XMP([]string{"exif:DateTimeOriginal", "photoshop:DateCreated", "xmp:CreateDate"}[i%3], xmp)
	} else {
		block = EXIF(order, t)
	}
	var b bytes.Buffer
	var err error
	switch {
	case i%4 == 0 && packet != nil:
		if err = gif.Encode(&b, img, nil); err == nil {
			head := b.Bytes()[:b.Len()-1]
			return append(append(append(bytes.Clone(head), "\x21\xff\x0bXMP DataXMP"...), gifBlocks(packet)...), 0x3b)
		}
	case i%4 < 2:
		if err = png.Encode(&b, img); err == nil {
			if packet != nil {
				return PNG(b.Bytes(), Chunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), packet...)))
			}
			return PNG(b.Bytes(), Chunk("eXIf", block), Chunk("tEXt", []byte("Comment\x00"+note)))
		}
	default:
		if err = jpeg.Encode(&b, img, nil); err == nil {
			return JPEG(b.Bytes(), block, packet)
		}
	}
	panic(err) // into memory
}

// gifBlocks returns data as XMP is in a GIF: as such, with bytes behind it that end it for readers of blocks.
func gifBlocks(data []byte) []byte {
	out := append(bytes.Clone(data), 1)
	for i := 255; i >= 0; i-- {
		out = append(out, byte(i))
	}
	return append(out, 0)
}
