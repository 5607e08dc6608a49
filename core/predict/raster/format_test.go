package raster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// ftyp returns a first box with these brands.
func ftyp(brands ...string) string {
	first, rest := brands[0], strings.Join(brands[1:], "")
	return string([]byte{0, 0, 0, byte(16 + len(rest))}) + "ftyp" + first + "\x00\x00\x02\x00" + rest
}

func TestRecognise(t *testing.T) {
	packets := strings.Repeat("\x47"+strings.Repeat("\xff", 187), 3)
	timed := strings.Repeat("\x00\x00\x00\x00\x47"+strings.Repeat("\xff", 187), 3)
	tests := []struct {
		name  string
		bytes string
		want  FileType
	}{
		{"jpeg", "\xff\xd8\xff\xe0", FileType{"jpeg", "image/jpeg", Picture, true}},
		{"png", "\x89PNG\r\n\x1a\n", FileType{"png", "image/png", Picture, true}},
		{"gif", "GIF89a", FileType{"gif", "image/gif", Picture | Video, true}},
		{"still webp", "RIFF\x04\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10", FileType{"webp", "image/webp", Picture, true}},
		{"simple webp", "RIFF\x04\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x02", FileType{"webp", "image/webp", Picture, true}},
		{"animated webp", "RIFF\x04\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x12", FileType{"webp", "image/webp", Picture | Video, true}},
		{"mp4", ftyp("isom", "iso2", "avc1", "mp41"), FileType{"MP4", "video/mp4", Video, true}},
		{"mp4 with a first box of 256 bytes", "\x00\x00\x01\x00ftypisom\x00\x00\x02\x00", FileType{"MP4", "video/mp4", Video, true}},
		{"mov", ftyp("qt  ", "qt  "), FileType{"QuickTime", "video/quicktime", Video, true}},
		{"mov from before ftyp", "\x00\x00\x00\x08wide\x00\x00\x00\x00mdat", FileType{"QuickTime", "video/quicktime", Video, true}},
		{"3gp", ftyp("3gp4", "isom"), FileType{"3GPP", "video/3gpp", Video, true}},
		{"3g2", ftyp("3g2a"), FileType{"3GPP2", "video/3gpp2", Video, true}},
		{"mp4 that is a 3gp too", ftyp("isom", "3gp4", "qt  "), FileType{"MP4", "video/mp4", Video, true}},
		{"heic", ftyp("heic", "mif1"), FileType{"heic", "image/heic", Picture, true}},
		{"avif", ftyp("mif1", "avif"), FileType{"avif", "image/avif", Picture, true}},
		{"avif with frames", ftyp("avis", "avif"), FileType{"avif", "image/avif", Picture | Video, true}},
		{"cr3", ftyp("crx ", "isom"), FileType{"Canon raw (CR3)", "image/x-canon-cr3", Picture, true}},
		{"webm", "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm", FileType{"WebM", "video/webm", Video, true}},
		{"mkv", "\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\x82\x88matroska", FileType{"Matroska", "video/x-matroska", Video, true}},
		{"avi", "RIFF\x04\x00\x00\x00AVI LIST", FileType{"AVI", "video/x-msvideo", Video, true}},
		{"wav", "RIFF\x04\x00\x00\x00WAVEfmt ", FileType{}},
		{"mpeg-ts", packets, FileType{"MPEG-TS", "video/mp2t", Video, false}},
		{"mpeg-ts with times", timed, FileType{"MPEG-TS", "video/mp2t", Video, false}},
		{"the letter G", "G" + packets[1:376], FileType{}},
		{"ogg", "OggS\x00", FileType{"Ogg", "video/ogg", Video, false}},
		{"flv", "FLV\x01\x05", FileType{"FLV", "video/x-flv", Video, false}},
		{"pdf", "%PDF-1.7", FileType{"PDF", "application/pdf", 0, false}},
		{"svg", "<svg/>", FileType{"SVG (a drawing, not a picture)", "image/svg+xml", 0, false}},
		{"text", "hello", FileType{}},
		{"nothing", "", FileType{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Recognise([]byte(tt.bytes)); got != tt.want {
				t.Errorf("Recognise = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestRecogniseVideos recognises every test film by its first bytes.
func TestRecogniseVideos(t *testing.T) {
	dir := testkit.DataPath(t, "video")
	want := map[string]string{
		".mp4": "MP4", ".mov": "QuickTime", ".3gp": "3GPP", ".webm": "WebM", ".avi": "AVI", ".wmv": "WMV", ".gif": "gif", ".ts": "MPEG-TS",
	}
	files, err := os.ReadDir(dir)
	check(t, err)
	n := 0
	for _, f := range files {
		name, known := want[filepath.Ext(f.Name())]
		if !known {
			continue
		}
		n++
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		check(t, err)
		got := Recognise(b[:min(len(b), 4096)])
		if got.Name != name || got.Kind&Video == 0 || got.Supported != (name != "MPEG-TS") {
			t.Errorf("%s: %+v, want %s", f.Name(), got, name)
		}
	}
	if n < 24 {
		t.Errorf("%d films, want at least 24", n)
	}
}

// TestErrorNumbers checks that the errors have the numbers of wasm/README.md.
func TestErrorNumbers(t *testing.T) {
	for err, want := range map[error]int{ErrUnsupported: 1, ErrTooLarge: 2, ErrCorrupt: 3, ErrExpired: 4, io.EOF: 5} {
		if got := ErrorNumber(fmt.Errorf("picture: %w", err)); got != want {
			t.Errorf("ErrorNumber(%v) = %d, want %d", err, got, want)
		}
	}
}

// TestInspectVideo checks which files a video decoder reads, and which this package or a module of pictures.
func TestInspectVideo(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want Kind
		err  error
	}{
		"a film":                {ftyp("isom"), Video, nil},
		"a sequence in AVIF":    {ftyp("avis", "avif"), Video, nil},
		"a sequence in HEIC":    {ftyp("hevc", "mif1"), Video, nil},
		"a picture in AVIF":     {ftyp("avif", "mif1"), Picture, nil},
		"a GIF":                 {"GIF89a", Picture | Video, nil},
		"an MPEG program":       {"\x00\x00\x01\xba", 0, ErrUnsupported},
		"an unknown file":       {"something", 0, ErrUnsupported},
		"a file without a byte": {"", 0, ErrCorrupt},
	} {
		got, err := InspectVideo([]byte(tt.file))
		if !errors.Is(err, tt.err) || err == nil && got.Kind != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
