// Package raw recognises camera raw files and finds the picture in them that the camera made: the largest embedded JPEG.
//
//	file ──▶ signature, or TIFF directories of sensor data ──▶ format
//	  │                                                          │
//	  ├──▶ directory of the format ──▶ orientation               │
//	  └──▶ start markers of JPEG ──▶ strict headers ──▶ largest ─┴─▶ File
//
// It develops no sensor data. It reads no maker's notes: the previews that they name are found by their start markers. An embedded JPEG
// that contains sensor data, as lossless JPEG or as a strip or tile of a directory of sensor data, is not a preview.
//
// Files may be hostile. The work is in proportion to the size of the file, and Read allocates nothing but a copy of a preview whose
// first byte is wrong.
//
// Sources: TIFF/EP (ISO 12234-2), DNG 1.7, CIFF 1.0, and the descriptions of the other formats by the authors of ExifTool, LibRaw and
// canon_cr3.
package raw

import "iter"

// Format is a kind of camera raw.
type Format struct {
	Name      string // for example "Nikon raw (NEF)"
	MediaType string // for example "image/x-nikon-nef"
}

// The formats. Other makers' files with the directories of TIFF/EP are generic.
var (
	cr2     = Format{"Canon raw (CR2)", "image/x-canon-cr2"}
	cr3     = Format{"Canon raw (CR3)", "image/x-canon-cr3"}
	crw     = Format{"Canon raw (CRW)", "image/x-canon-crw"}
	nef     = Format{"Nikon raw (NEF)", "image/x-nikon-nef"}
	arw     = Format{"Sony raw (ARW)", "image/x-sony-arw"}
	dng     = Format{"Adobe raw (DNG)", "image/x-adobe-dng"}
	orf     = Format{"Olympus raw (ORF)", "image/x-olympus-orf"}
	rw2     = Format{"Panasonic raw (RW2)", "image/x-panasonic-rw2"}
	raf     = Format{"Fujifilm raw (RAF)", "image/x-fuji-raf"}
	pef     = Format{"Pentax raw (PEF)", "image/x-pentax-pef"}
	srw     = Format{"Samsung raw (SRW)", "image/x-samsung-srw"}
	mrw     = Format{"Minolta raw (MRW)", "image/x-minolta-mrw"}
	x3f     = Format{"Sigma raw (X3F)", "image/x-sigma-x3f"}
	generic = Format{"camera raw", "image/x-dcraw"}
)

// signatures has the first bytes of formats that are not TIFF.
var signatures = [...]struct {
	magic string
	Format
}{
	{"FUJIFILMCCD-RAW ", raf},
	{mrwMagic, mrw},
	{"FOVb", x3f},
	{crwMagic, crw},
}

const (
	mrwMagic = "\x00MRM"
	crwMagic = "II\x1a\x00\x00\x00HEAPCCDR"
)

// File is a camera raw file.
type File struct {
	Format
	Preview     []byte // the largest embedded JPEG; nil: none
	Width       int    // of Preview, before Orientation
	Height      int    // of Preview, before Orientation
	Orientation int    // of Preview, 1 to 8 as in EXIF; 0: the file has none outside of Preview
}

// Recognise returns the format of a file that begins with b. If b is not the whole file, the directories that show that a TIFF is raw may
// be missing; ok is then false.
func Recognise(b []byte) (f Format, ok bool) {
	for i := range signatures {
		if s := &signatures[i]; begins(b, 0, s.magic) {
			return s.Format, true
		}
	}
	if isCR3(b) {
		return cr3, true
	}
	t, ok := openTIFF(b, 0)
	if !ok {
		return Format{}, false
	}
	switch t.magic {
	case magicORF, magicORS:
		return orf, true
	case magicRW2:
		return rw2, true
	case magicTIFF:
		return t.format()
	}
	return Format{}, false
}

// Read reads the file b. Preview is a part of b, unless its first byte in b is wrong. ok is false if b is not camera raw.
func Read(b []byte) (f File, ok bool) {
	if f.Format, ok = Recognise(b); !ok {
		return File{}, false
	}
	switch f.Format {
	case cr3:
		f.Orientation = cr3Orientation(b)
	case mrw:
		f.Orientation = mrwOrientation(b)
	case crw:
		f.Orientation = crwOrientation(b)
	case raf:
	case x3f:
		f.Orientation = x3fOrientation(b)
	default:
		f.Orientation = tiffOrientation(b, 0)
	}
	s := newScan(b, f.Format)
	p := s.largest()
	if p.width > 0 {
		f.Preview, f.Width, f.Height = b[p.from:endOfJPEG(b, p.scan)], p.width, p.height
		if f.Preview[0] != 0xff { // Minolta's cameras write another byte
			f.Preview = append([]byte{0xff}, f.Preview[1:]...)
		}
	}
	return f, true
}

// JPEGs yields the offsets at which the embedded JPEGs of a raw file begin and end, in order. A JPEG in the metadata of another one is a part
// of that one.
func JPEGs(b []byte) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		f, _ := Recognise(b)
		s := newScan(b, f)
		for p, ok := s.next(0); ok; {
			end := endOfJPEG(b, p.scan)
			if !yield(p.from, end) {
				return
			}
			p, ok = s.next(end)
		}
	}
}

func begins(b []byte, at int, magic string) bool {
	return len(b) >= at+len(magic) && string(b[at:at+len(magic)]) == magic
}
