package collection

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// golden has the rules of an import for names and first bytes, with examples. The tests of the pages compare the import of the web app with it.
type golden struct {
	Table leftOut     `json:"table"`
	Paths [][2]string `json:"paths"` // a path, and the reason
	Files []start     `json:"files"`
	Names []zipName   `json:"names"`
}

type start struct {
	Name string `json:"name"`
	Hex  string `json:"hex"`
	Kind string `json:"kind"` // picture, video, or ""
}

// zipName is an entry of an archive and its name after reading. Names are in hexadecimal where they may not be UTF-8.
type zipName struct {
	Hex     string `json:"hex"`
	Flags   uint16 `json:"flags"`
	Unicode string `json:"unicode"`
	Wrong   bool   `json:"wrong"`
	MadeBy  byte   `json:"made_by"`
	Mode    uint32 `json:"mode"` // of Unix
	Want    string `json:"want"` // "": the entry is not a file
	Error   string `json:"error"`
}

// starts are the first bytes of files of each kind.
func starts() (all []start) {
	texts := map[string]string{
		"jpeg": "\xff\xd8\xff\xe0", "png": "\x89PNG\r\n\x1a\n", "gif 87": "GIF87a", "gif 89": "GIF89a", "webp": "RIFF\x04\x00\x00\x00WEBP",
		"bmp": "BM\x36\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "bmp of OS/2": "BM\x36\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x0c\x00\x00\x00",
		"text like a bmp": "BMW 320d, oil in March", "short text like a bmp": "BMW 320d\n",
		"tiff": "II*\x00\x08\x00\x00\x00", "tiff, big-endian": "MM\x00*\x00\x00\x00\x08", "bigtiff": "II+\x00\x08\x00\x00\x00", "bigtiff, big-endian": "MM\x00+\x00\x08\x00\x00",
		"quicktime moov": "\x00\x00\x10\x00moov", "quicktime mdat": "\x00\x01\x10\x00mdat", "quicktime wide": "\x00\x00\x00\x08wide",
		"matroska": "\x1a\x45\xdf\xa3", "avi": "RIFF\x04\x00\x00\x00AVI ", "wmv": "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c",
		"mpeg-ps": "\x00\x00\x01\xba", "mpeg": "\x00\x00\x01\xb3", "ogg": "OggS", "flv": "FLV\x01",
		"mpeg-ts":   "\x47" + strings.Repeat("\x00", 187) + "\x47" + strings.Repeat("\x00", 187) + "\x47",
		"mts":       "abcd\x47" + strings.Repeat("\x00", 191) + "\x47" + strings.Repeat("\x00", 191) + "\x47",
		"text of G": "\x47" + strings.Repeat("\x00", 187) + "\x47" + strings.Repeat("\x00", 187) + "\x46",
		"jxl":       "\xff\x0a", "jxl in boxes": "\x00\x00\x00\x0cJXL \r\n\x87\n", "jp2": "\x00\x00\x00\x0cjP  \r\n\x87\n", "jpeg 2000": "\xff\x4f\xff\x51",
		"photoshop": "8BPS", "icon": "\x00\x00\x01\x00", "pdf": "%PDF-1.7", "svg": "<svg", "text": "hello", "empty": "", "zip": "PK\x03\x04", "half a jpeg": "\xff\xd8",
	}
	for _, brand := range []string{"avif", "avis", "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "isom", "mp42", "qt  ", "3gp5", "3g2a", "M4V ", "crx "} {
		texts["brand "+brand] = "\x00\x00\x00\x18ftyp" + brand + "\x00\x00\x00\x00" + brand + "miaf"
	}
	texts["brand after another"] = "\x00\x00\x00\x1cftypmp42\x00\x00\x00\x00isomavif"
	texts["brand outside the box"] = "\x00\x00\x00\x10ftypmp42\x00\x00\x00\x00avif"
	texts["brand as a version"] = "\x00\x00\x00\x18ftypmp42avifisommp41"
	texts["box without a size"] = "\x00\x00\x00\x00ftypavif"
	for name, b := range rawtest.Files([]byte("\xff\xd8\xff"), 1) {
		texts["raw "+name] = string(b[:min(len(b), 64)])
	}
	for name, text := range texts {
		f := raster.Recognise([]byte(text))
		kind := ""
		switch {
		case f.Kind&raster.Picture != 0:
			kind = "picture"
		case f.Kind != 0:
			kind = "video"
		}
		all = append(all, start{name, hex.EncodeToString([]byte(text)), kind})
	}
	slices.SortFunc(all, func(a, b start) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// TestPagesSkipTheSameFiles keeps the golden file, with which the tests of the pages compare their import. -update rewrites it.
func TestPagesSkipTheSameFiles(t *testing.T) {
	want := golden{Table: table, Files: starts()}
	o := Options{}
	for _, name := range []string{
		"a.jpg", "a/b/c.JPEG", ".a.jpg", "a/.b/c.jpg", "@eaDir/a.jpg/SYNOPHOTO_THUMB_XL.jpg", "a/.@__thumb/b.jpg", "#recycle/a.jpg", "@Recycle/a.jpg", "a/#snapshot/b.jpg",
		"._a.jpg", "a/.DS_Store", "Thumbs.db", "a/THUMBS.DB", "desktop.ini", "__MACOSX/a.jpg", "$RECYCLE.BIN/a.jpg", ".Trash-1000/files/a.jpg", "Icon\r",
		"a.xmp", "a.jpg.XMP", "IMG_1.AAE", "a.jpg.json", "a.jpg.supplemental-metadata.json", ".a.xmp", "a.b/c", "json", "a.json/b.jpg", "a.jpg.pp3", "notes.txt", "@eaDir", "eaDir/a.jpg",
	} {
		want.Paths = append(want.Paths, [2]string{name, string(o.reasonFor(name))})
	}
	for _, c := range zipCases {
		name := zipName{Hex: hex.EncodeToString([]byte(c.entry.name)), Unicode: hex.EncodeToString([]byte(c.entry.unicode)), Wrong: c.entry.wrong, MadeBy: c.entry.madeBy}
		if c.entry.utf8 {
			name.Flags |= flagUTF8
		}
		if c.entry.secret {
			name.Flags |= 1
		}
		if c.entry.mode&fs.ModeSymlink != 0 {
			name.Mode = 0o120777
		}
		name.Want, name.Error, _ = strings.Cut(c.want, ": ")
		want.Names = append(want.Names, name)
	}
	at := filepath.Join("testdata", "leftout.json")
	if *update {
		text, err := json.MarshalIndent(want, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var got golden
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s is not of today (-want +got); -update rewrites it:\n%s", at, d)
	}
}
