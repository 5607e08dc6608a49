package raster

import (
	"bytes"
	"fmt"
)

// format is a kind of picture file, recognised by content.
type format uint8

const (
	formatUnknown format = iota
	formatJPEG
	formatPNG
	formatGIF
	formatWebP
	formatBMP
	formatTIFF
)

var formatNames = [...]string{"", "jpeg", "png", "gif", "webp", "bmp", "tiff"}

func (f format) String() string { return formatNames[f] }

// advice ends the message for pictures of formats that we do not read.
const advice = "convert it to JPEG, PNG, GIF, WebP, BMP or TIFF"

// sniff recognises the format of b. For others the error says what b is, where we know,
// and what to do.
func sniff(b []byte) (format, error) {
	switch {
	case has(b, 0, "\xff\xd8\xff"):
		return formatJPEG, nil
	case has(b, 0, "\x89PNG\r\n\x1a\n"):
		return formatPNG, nil
	case has(b, 0, "GIF87a"), has(b, 0, "GIF89a"):
		return formatGIF, nil
	case has(b, 0, "RIFF") && has(b, 8, "WEBP"):
		return formatWebP, nil
	case has(b, 0, "BM"):
		return formatBMP, nil
	case has(b, 0, "II*\x00"), has(b, 0, "MM\x00*"):
		return formatTIFF, nil
	case len(b) == 0:
		return formatUnknown, fmt.Errorf("no bytes: %w", ErrCorrupt)
	}
	if name := foreign(b); name != "" {
		return formatUnknown, fmt.Errorf("%s: %w: %s", name, ErrUnsupported, advice)
	}
	return formatUnknown, fmt.Errorf("unknown file type: %w: %s", ErrUnsupported, advice)
}

func has(b []byte, at int, magic string) bool {
	return len(b) >= at+len(magic) && string(b[at:at+len(magic)]) == magic
}

// foreign names formats that people send and that we do not read.
func foreign(b []byte) string {
	switch {
	case has(b, 4, "ftyp"):
		return mediaBrand(b)
	case has(b, 0, "\xff\x0a"), has(b, 4, "JXL \r\n\x87\n"):
		return "JPEG XL"
	case has(b, 4, "jP  \r\n\x87\n"), has(b, 0, "\xff\x4f\xff\x51"):
		return "JPEG 2000"
	case has(b, 0, "8BPS"):
		return "Photoshop document"
	case has(b, 0, "%PDF-"):
		return "PDF"
	case has(b, 0, "II+\x00"), has(b, 0, "MM\x00+"):
		return "BigTIFF"
	case has(b, 0, "\x00\x00\x01\x00"):
		return "icon (ICO)"
	case isSVG(b):
		return "SVG (a drawing, not a picture)"
	}
	return ""
}

// mediaBrand tells pictures from films among the files of ISO/IEC 14496-12, by the
// brands of their first box.
func mediaBrand(b []byte) string {
	size := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	box := b[8:min(len(b), max(8, size), 256)]
	name := "film or other media file (MP4)"
	for i := 0; i+4 <= len(box); i += 4 {
		if i == 4 {
			continue // the minor version
		}
		switch string(box[i : i+4]) {
		case "avif", "avis":
			return "AVIF"
		case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1":
			name = "HEIC"
		case "crx ":
			name = "Canon raw (CR3)"
		}
	}
	return name
}

// isSVG reports whether b starts like an XML document with an svg element.
func isSVG(b []byte) bool {
	head := bytes.TrimPrefix(b[:min(len(b), 4096)], []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("<")) && bytes.Contains(bytes.ToLower(head), []byte("<svg"))
}
