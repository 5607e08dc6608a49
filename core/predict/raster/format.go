package raster

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/raster/raw"
)

// format is a kind of picture file, recognised by its content.
type format uint8

const (
	formatUnknown format = iota
	formatJPEG
	formatPNG
	formatGIF
	formatWebP
	formatBMP
	formatTIFF
	formatHEIC
	formatAVIF
	formatJXL
	formatRaw
)

var formatNames = [...]string{"", "jpeg", "png", "gif", "webp", "bmp", "tiff", "heic", "avif", "jxl", "raw"}

func (f format) String() string { return formatNames[f] }

// FormatsVersion is the number of the newest set of picture formats and limits that this package reads. A change that reads further files
// raises it: applications then download the inputs once more that earlier versions could not read.
const FormatsVersion = 1

// A Kind is a use of a file. Kinds combine with |: an animation is a Picture and a Video.
type Kind uint8

// The kinds.
const (
	Picture Kind = 1 << iota
	Video
)

// FileType describes a file, recognised by its first bytes.
type FileType struct {
	Name      string // for a supported picture as in Info, of camera raw for example "Nikon raw (NEF)", for others for example "MP4"; "": unknown
	MediaType string // for example "video/mp4"; "": unknown
	Kind      Kind   // 0: neither
	Supported bool   // this package reads the picture, or the video decoder reads the video
}

// signature has the first bytes of a type's files. A ? in magic matches any byte.
type signature struct {
	magic string
	FileType
}

// Recognise tries the signatures in order. It has more code for ftyp, BMP, MPEG-TS and SVG.
var signatures = [...]signature{
	{"\xff\xd8\xff", FileType{"jpeg", "image/jpeg", Picture, true}},
	{"\x89PNG\r\n\x1a\n", FileType{"png", "image/png", Picture, true}},
	{"GIF87a", FileType{"gif", "image/gif", Picture | Video, true}},
	{"GIF89a", FileType{"gif", "image/gif", Picture | Video, true}},
	{"RIFF????WEBP", FileType{"webp", "image/webp", Picture, true}},
	{"BM", FileType{"bmp", "image/bmp", Picture, true}},
	{"II*\x00", FileType{"tiff", "image/tiff", Picture, true}},
	{"MM\x00*", FileType{"tiff", "image/tiff", Picture, true}},

	{"\x00???moov", quickTime}, // older files without ftyp
	{"\x00???mdat", quickTime},
	{"\x00???wide", quickTime},
	{"\x1a\x45\xdf\xa3", FileType{"Matroska", "video/x-matroska", Video, true}},
	{"RIFF????AVI ", FileType{"AVI", "video/x-msvideo", Video, true}},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c", FileType{"WMV", "video/x-ms-wmv", Video, true}},
	{"\x00\x00\x01\xba", FileType{"MPEG-PS", "video/mpeg", Video, false}},
	{"\x00\x00\x01\xb3", FileType{"MPEG", "video/mpeg", Video, false}},
	{"OggS", FileType{"Ogg", "video/ogg", Video, false}},
	{"FLV\x01", FileType{"FLV", "video/x-flv", Video, false}},

	{"\xff\x0a", FileType{"jxl", "image/jxl", Picture | Video, true}},
	{"????JXL \r\n\x87\n", FileType{"jxl", "image/jxl", Picture | Video, true}},
	{"????jP  \r\n\x87\n", FileType{"JPEG 2000", "image/jp2", Picture, false}},
	{"\xff\x4f\xff\x51", FileType{"JPEG 2000", "image/jp2", Picture, false}},
	{"8BPS", FileType{"Photoshop document", "image/vnd.adobe.photoshop", Picture, false}},
	{"%PDF-", FileType{"PDF", "application/pdf", 0, false}},
	{"II+\x00", FileType{"BigTIFF", "image/tiff", Picture, false}},
	{"MM\x00+", FileType{"BigTIFF", "image/tiff", Picture, false}},
	{"\x00\x00\x01\x00", FileType{"icon (ICO)", "image/vnd.microsoft.icon", Picture, false}},
}

var (
	quickTime = FileType{"QuickTime", "video/quicktime", Video, true}
	webM      = FileType{"WebM", "video/webm", Video, true}
	mpegTS    = FileType{"MPEG-TS", "video/mp2t", Video, false}
	svg       = FileType{"SVG (a drawing, not a picture)", "image/svg+xml", 0, false}
)

// Recognise returns the type of a file that begins with b. The first 4,096 bytes suffice, but camera raw with the signature of a TIFF may
// need the whole file: with fewer bytes it counts as a TIFF. A GIF and an animated WebP are both Picture and Video.
func Recognise(b []byte) FileType {
	if f, ok := raw.Recognise(b); ok {
		return FileType{f.Name, f.MediaType, Picture, true}
	}
	if has(b, 4, "ftyp") { // first: the length before it may look like another signature
		return brandType(b)
	}
	for i := range signatures {
		s := &signatures[i]
		if !begins(b, s.magic) {
			continue
		}
		switch {
		case s.Name == "bmp" && !isBMP(b):
			return FileType{}
		case s.Name == "webp" && has(b, 12, "VP8X") && len(b) > 20 && b[20]&webpAnimated != 0:
			t := s.FileType
			t.Kind |= Video
			return t
		case s.Name == "Matroska" && bytes.Contains(b[:min(len(b), 64)], []byte("webm")): // its DocType
			return webM
		}
		return s.FileType
	}
	switch {
	case isMPEGTS(b):
		return mpegTS
	case isSVG(b):
		return svg
	}
	return FileType{}
}

// InspectVideo returns the type of a file that begins with b, as a video. Still pictures count as videos of one frame. A sequence in HEIC or
// AVIF is no Picture here, because a video decoder reads its frames. The error wraps ErrUnsupported, or ErrCorrupt if b is empty.
func InspectVideo(b []byte) (FileType, error) {
	t := Recognise(b)
	switch {
	case len(b) == 0:
		return t, fmt.Errorf("no bytes: %w", ErrCorrupt)
	case t.Supported:
		if t.Kind&Video != 0 && (t.Name == formatHEIC.String() || t.Name == formatAVIF.String()) {
			t.Kind = Video
		}
		return t, nil
	case t.Name != "":
		return t, fmt.Errorf("%s: %w: convert it to MP4", t.Name, videoFormat{})
	}
	return t, fmt.Errorf("unknown file type: %w: send MP4, MOV, 3GP, WebM, MKV, AVI, WMV or GIF", videoFormat{})
}

// videoFormat is the ErrUnsupported of a video.
type videoFormat struct{}

// Error implements error.
func (videoFormat) Error() string { return "video format not supported" }

// Unwrap returns ErrUnsupported.
func (videoFormat) Unwrap() error { return ErrUnsupported }

// InspectPicture returns the type of a picture, whose headers it checks as [Inspect] does.
func InspectPicture(picture []byte) (FileType, error) {
	if _, err := Inspect(picture); err != nil {
		return FileType{}, err
	}
	return Recognise(picture), nil
}

// SizeLimit returns the maximum number of bytes of a picture that begins with start, by the default limits. A TIFF may turn out to be
// camera raw.
func SizeLimit(start []byte) int64 {
	l := Limits{}.WithDefaults()
	if f, err := sniff(start); err == nil && (f == formatRaw || f == formatTIFF) {
		return l.RawBytes
	}
	return l.Bytes
}

// sniff recognises the format of a picture. For other files the error has the name of their type, if it is known, and
// advice to the user.
func sniff(b []byte) (format, error) {
	const advice = "convert it to JPEG, PNG, GIF, WebP, BMP, TIFF, HEIC, AVIF or JPEG XL"
	t := Recognise(b)
	switch {
	case len(b) == 0:
		return formatUnknown, fmt.Errorf("no bytes: %w", ErrCorrupt)
	case t.Supported && t.Kind&Picture != 0:
		if i := slices.Index(formatNames[:], t.Name); i > 0 {
			return format(i), nil
		}
		return formatRaw, nil
	case t.Supported:
		return formatUnknown, fmt.Errorf("%s video: %w: send it as data.video", t.Name, ErrUnsupported)
	case t.Kind == Video:
		return formatUnknown, fmt.Errorf("%s video: %w: convert it to MP4 and send it as data.video", t.Name, ErrUnsupported)
	case t.Name != "":
		return formatUnknown, fmt.Errorf("%s: %w: %s", t.Name, ErrUnsupported, advice)
	}
	return formatUnknown, fmt.Errorf("unknown file type: %w: %s", ErrUnsupported, advice)
}

func has(b []byte, at int, magic string) bool {
	return len(b) >= at+len(magic) && string(b[at:at+len(magic)]) == magic
}

// begins reports whether b begins with magic, in which a ? matches any byte.
func begins(b []byte, magic string) bool {
	if len(b) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != b[i] && magic[i] != '?' {
			return false
		}
	}
	return true
}

// brandType returns the type of an ISO/IEC 14496-12 file, which may contain a picture or a video. It reads the brands of the
// first box.
func brandType(b []byte) FileType {
	size := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	box := b[8:min(len(b), max(8, size), 256)]
	t := FileType{"MP4", "video/mp4", Video, true}
	for i := 0; i+4 <= len(box); i += 4 {
		if i == 4 {
			continue // the minor version
		}
		switch brand := string(box[i : i+4]); brand {
		case "avif":
			return FileType{"avif", "image/avif", Picture, true}
		case "avis":
			return FileType{"avif", "image/avif", Picture | Video, true}
		case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1":
			if i == 0 && (brand[:3] == "hev" || brand == "msf1") {
				t = FileType{"heic", "image/heic", Picture | Video, true}
			} else if t.Name != "heic" {
				t = FileType{"heic", "image/heic", Picture, true}
			}
		default:
			switch {
			case i > 0: // only the first brand names the container
			case brand == "qt  ":
				t = quickTime
			case brand[:3] == "3gp":
				t = FileType{"3GPP", "video/3gpp", Video, true}
			case brand[:3] == "3g2":
				t = FileType{"3GPP2", "video/3gpp2", Video, true}
			}
		}
	}
	return t
}

// isBMP reports whether the size of a header follows BM, which also begins texts.
func isBMP(b []byte) bool {
	return len(b) == 2 || len(b) >= 18 && slices.Contains([]byte{12, 16, 40, 52, 56, 64, 108, 124}, b[14]) && string(b[15:18]) == "\x00\x00\x00"
}

// isMPEGTS reports whether b begins with three packets of an MPEG transport stream: of 188 bytes, or of 192 with a
// time of 4 bytes before each.
func isMPEGTS(b []byte) bool {
	const sync = "\x47"
	return has(b, 0, sync) && has(b, 188, sync) && has(b, 376, sync) ||
		has(b, 4, sync) && has(b, 4+192, sync) && has(b, 4+2*192, sync)
}

// isSVG reports whether b starts like an XML document with an svg element.
func isSVG(b []byte) bool {
	head := bytes.TrimPrefix(b[:min(len(b), 4096)], []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("<")) && bytes.Contains(bytes.ToLower(head), []byte("<svg"))
}
