package location

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// hostileSize is the size of most hostile files in bytes.
const hostileSize = 19 << 20

// fill returns a file that begins with start and repeats part up to a size.
func fill(start, part string, size int) []byte {
	return []byte(start + strings.Repeat(part, (size-len(start))/len(part)))
}

// rawTIFF returns a little-endian TIFF with a directory of raw entries of four numbers: tag, type, count and value.
func rawTIFF(rest []byte, entries ...[4]uint32) []byte {
	order := binary.LittleEndian
	b := order.AppendUint16(tiffHeader(order, 8), uint16(len(entries)))
	for _, e := range entries {
		b = order.AppendUint16(order.AppendUint16(b, uint16(e[0])), uint16(e[1]))
		b = order.AppendUint32(order.AppendUint32(b, e[2]), e[3])
	}
	return append(append(b, 0, 0, 0, 0), rest...)
}

// hostile lists files that would take much work or memory if a part were read twice, or if a number in it were believed.
var hostile = map[string]func(size int) []byte{
	"jpeg of FF bytes":          func(size int) []byte { return fill("\xff\xd8", "\xff", size) },
	"jpeg of stuffing":          func(size int) []byte { return fill("\xff\xd8\xff\xda\x00\x02", "\xff\x00", size) },
	"jpeg of fill and stuffing": func(size int) []byte { return fill("\xff\xd8\xff\xda\x00\x02", "\xff\xff\x00\xff\xd0", size) },
	"jpeg of stray bytes":       func(size int) []byte { return fill("\xff\xd8", "\xff\x00a", size) },
	"jpeg of empty segments":    func(size int) []byte { return fill("\xff\xd8", "\xff\xfe\x00\x02", size) },
	"jpeg of empty Exif":        func(size int) []byte { return fill("\xff\xd8", "\xff\xe1\x00\x08Exif\x00\x00", size) },
	"jpeg of empty scans":       func(size int) []byte { return fill("\xff\xd8", "\xff\xda\x00\x02", size) },
	"jpeg of nested thumbnails": func(size int) []byte { return fill("\xff\xd8", "\xff\xe0\xff\xffJFXX\x00\x10\xff\xd8", size) },
	"png of empty chunks":       func(size int) []byte { return fill("\x89PNG\r\n\x1a\n", string(pngChunk("tEXt", "")), size) },
	"png of empty data":         func(size int) []byte { return fill("\x89PNG\r\n\x1a\n", string(pngChunk("IDAT", "")), size) },
	"png of skipped chunks":     func(size int) []byte { return fill("\x89PNG\r\n\x1a\n", string(pngChunk(unread, "")), size) },
	"png of one chunk":          func(size int) []byte { return fill("\x89PNG\r\n\x1a\n\x7f\xff\xff\xfftEXt", "a", size) },
	"gif of comments":           func(size int) []byte { return fill("GIF89a\x01\x00\x01\x00\x00\x00\x00", "\x21\xfe\x01a\x00", size) },
	"gif of empty comments":     func(size int) []byte { return fill("GIF89a\x01\x00\x01\x00\x00\x00\x00", "\x21\xfe\x00", size) },
	"gif of small blocks":       func(size int) []byte { return fill("GIF89a\x01\x00\x01\x00\x00\x00\x00\x21\xfe", "\x01a", size) },
	"gif of zeros":              func(size int) []byte { return fill("GIF89a\x01\x00\x01\x00\x00\x00\x00", "\x00", size) },
	"webp of empty chunks": func(size int) []byte {
		return fill("RIFF"+string(binary.LittleEndian.AppendUint32(nil, uint32(size)))+"WEBP", "JUNK\x00\x00\x00\x00", size)
	},
	"webp of nested frames": func(size int) []byte {
		return fill("RIFF"+string(binary.LittleEndian.AppendUint32(nil, uint32(size)))+"WEBP", "ANMF\xff\xff\xff\x0012345678901234567", size)
	},
	"tiff of equal entries": func(size int) []byte {
		const entries = 12000
		list := make([]byte, 4*250_000)
		for i := range 250_000 {
			binary.LittleEndian.PutUint32(list[4*i:], uint32(8+i))
		}
		return rawTIFF(append(list, make([]byte, size-len(list)-12*entries)...), slices.Repeat([][4]uint32{{tagSubIFDs, 4, 250_000, 14 + 12*entries}}, entries)...)
	},
	"tiff of lists in each directory": func(int) []byte {
		order := binary.LittleEndian
		b := tiffHeader(order, 8)
		for i := range 1000 {
			b = tiffDir(b, order, []entry{{tag: tagSubIFDs, kind: 4, value: make([]byte, 4*1000)}, {tag: tagStripOffsets, kind: 4, value: make([]byte, 4)}}, uint32(8+(i+1)*(30+4000)))
		}
		return b
	},
	"tiff of overlapping directories": func(size int) []byte {
		list := []byte{}
		for i := range 63 {
			list = binary.LittleEndian.AppendUint32(list, uint32(1000+12*i))
		}
		b := append(rawTIFF(list, [4]uint32{tagSubIFDs, 4, 63, 26}), make([]byte, size)...)
		for i := range 63 {
			binary.LittleEndian.PutUint16(b[1000+12*i:], 900)
		}
		return b
	},
	"tiff of a chain of directories": func(size int) []byte {
		order := binary.LittleEndian
		b := tiffHeader(order, 8)
		for len(b) < size {
			b = tiffDir(b, order, nil, uint32(len(b)+6))
		}
		return b
	},
	"tiff of strips":                    func(size int) []byte { return stripsTIFF(size/8, size) },
	"tiff of as many strips as allowed": func(size int) []byte { return stripsTIFF(min(size/8, maxSpans-100), size) },
	"tiff of one list for all directories": func(size int) []byte {
		order := binary.LittleEndian
		b := append(tiffHeader(order, uint32(size)), make([]byte, size-8)...)
		for range 1000 {
			b = tiffDir(b, order, []entry{{tag: tagStripOffsets, kind: 4, value: make([]byte, 4)}, {tag: tagStripCounts, kind: 4, value: make([]byte, 4)}}, uint32(len(b)+30))
			for _, at := range []int{len(b) - 28, len(b) - 16} {
				order.PutUint32(b[at+4:], uint32(size/4-8))
				order.PutUint32(b[at+8:], 32)
			}
		}
		return b
	},
	"tiff of JPEGs": func(size int) []byte { // each JPEG reaches to the end of the file
		n := min(size/16, maxJPEGs-1)
		list := make([]byte, 8*n)
		for i := range n {
			binary.LittleEndian.PutUint32(list[4*i:], uint32(50+8*n+8*i))
			binary.LittleEndian.PutUint32(list[4*(n+i):], uint32(size))
		}
		list = append(list, strings.Repeat("\xff\xd8\xff\xda\x00\x02ab", n)...)
		return rawTIFF(list, [4]uint32{tagCompression, 3, 1, 7}, [4]uint32{tagStripOffsets, 4, uint32(n), 50}, [4]uint32{tagStripCounts, 4, uint32(n), uint32(50 + 4*n)})
	},
	"tiff of 70 pages": func(int) []byte { return newMaker(&testing.T{}, 7).tiff(70) },
	"film of empty boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "isom")), string(atom("free")), size)
	},
	"film of empty needed boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "isom")), string(atom("mfra")), size)
	},
	"film of tracks": func(size int) []byte {
		return fill(string(atom("ftyp", "isom"))+"\x00\x00\x00\x00moov", string(atom("trak")), size)
	},
	"film of nested boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "isom")), "\x00\x00\x00\x00moov\x00\x00\x00\x00trak", size)
	},
	"film of fragments": func(size int) []byte {
		return fill(string(atom("ftyp", "isom")), string(atom("moof", atom("traf", atom("tfhd")))), size)
	},
	"film of small needed boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "isom")), string(atom("mfra", atom("mfro"))), size)
	},
	"film of a large track": func(size int) []byte {
		return fill(string(atom("ftyp", "isom"))+"\x00\x00\x00\x00moov\x00\x00\x00\x00trak", string(atom("tref")), size)
	},
	"film of a large table": func(size int) []byte {
		table := atom("stbl", strings.Repeat(string(atom("sbgp")), size/8))
		return slices.Concat(atom("ftyp", "isom"), atom("moov", track(1, "vide", table)))
	},
	"film of small runs": func(size int) []byte {
		run := string(atom("trun", uint32(1), uint32(1), uint32(0)))
		movie := atom("moov", atom("mvex", atom("trex", uint32(0), uint32(1), [4]uint32{1, 0, 1, 0})))
		return slices.Concat(atom("ftyp", "isom"), movie, atom("moof", atom("traf", atom("tfhd", uint32(0), uint32(1)), strings.Repeat(run, size/20))))
	},
	"film of runs that move": func(size int) []byte { return movedFilm(5, size) },
	"film of runs that stay": func(size int) []byte { return movedFilm(0, size) },
	"film of defaults for tracks": func(size int) []byte {
		var b []byte
		for i := range uint32(size / 16) {
			b = append(b, atom("trex", uint32(0), i)...)
		}
		return slices.Concat(atom("ftyp", "isom"), atom("moov", atom("mvex", b)))
	},
	"film of huge counts": func(int) []byte {
		table := atom("stbl", atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1<<32 - 1, 1}), atom("stsz", uint32(0), uint32(1<<32-1), uint32(1<<32-1)),
			atom("stco", uint32(0), uint32(1<<32-1), [4]uint32{1, 2, 3, 4}))
		fragment := atom("moof", atom("traf", atom("tfhd", uint32(0), uint32(1)), atom("trun", uint32(0), uint32(1<<32-1))))
		return slices.Concat(atom("ftyp", "isom"), atom("moov", track(1, "soun", table)), fragment, atom("mdat", marker))
	},
	"film of runs": func(size int) []byte {
		runs := make([]uint32, size/4)
		table := atom("stbl", atom("stsc", uint32(0), uint32(len(runs)/3), runs), atom("stsz", uint32(0), uint32(1), uint32(1<<30)), atom("stco", uint32(0), uint32(3), [3]uint32{}))
		return slices.Concat(atom("ftyp", "isom"), atom("moov", track(1, "vide", table)))
	},
	"film of chunks":             func(size int) []byte { return chunkFilm(size/4, size) },
	"film of as many as allowed": func(size int) []byte { return chunkFilm(maxSpans, size) },
	"heic of items": func(size int) []byte {
		places := atom("iloc", uint32(0), uint16(0x4400), uint16(0xffff), strings.Repeat("\x00\x01\x00\x00\xff\xff", size/6))
		return slices.Concat(atom("ftyp", "heic"), atom("meta", uint32(0), atom("hdlr", uint64(0), "pict", [3]uint32{}), places))
	},
	"heic of empty parts": func(size int) []byte {
		places := atom("iloc", uint32(0), uint16(0), uint16(0xffff), strings.Repeat("\x00\x01\x00\x00\xff\xff", size/6))
		return slices.Concat(atom("ftyp", "heic"), atom("meta", uint32(0), atom("hdlr", uint64(0), "pict", [3]uint32{}), places))
	},
	"heic of nested properties": func(size int) []byte {
		start := string(atom("ftyp", "heic")) + "\x00\x00\x00\x00meta\x00\x00\x00\x00" + string(atom("hdlr", uint64(0), "pict", [3]uint32{}))
		return fill(start+"\x00\x00\x00\x00iprp", "\x00\x00\x00\x00ipco", size)
	},
	"heic of many boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "heic")), string(atom("meta", uint32(0), atom("hdlr", uint64(0), "pict", [3]uint32{}))), size)
	},
	"jxl of empty boxes": func(size int) []byte { return fill("\x00\x00\x00\x0cJXL \r\n\x87\n", string(atom("brob")), size) },
	"raw of start markers": func(size int) []byte {
		return fill("FUJIFILMCCD-RAW ", "\xff\xd8\xff\xdb\x00\x02\xff\xc0\x00\x0b\x08\x00\x09\x00\x09\x01\x01\x11\x00\xff\xda\x00\x02ab", size)
	},
	"raw of JPEGs": func(size int) []byte {
		return fill("FUJIFILMCCD-RAW ", "\xff\xd8\xff\xdb\x00\x02\xff\xc0\x00\x0b\x08\x00\x09\x00\x09\x01\x01\x11\x00\xff\xda\x00\x02ab\xff\xd9", size)
	},
	"raw of directories": func(size int) []byte {
		b := fill("IIRO\x08\x00\x00\x00", strings.Repeat("\x4a\x01", 32), size)
		return b
	},
	"raw of nested boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "crx ")), "\x00\x00\x00\x00uuid1234567890123456", size)
	},
	"raw of boxes": func(size int) []byte {
		return fill(string(atom("ftyp", "crx ")), string(atom("uuid", "1234567890123456", atom("CMT4", "II*\x00\x08\x00\x00\x00"))), size)
	},
	"film of descriptions": func(size int) []byte {
		describe := atom("stsd", uint64(0), strings.Repeat(string(atom("twos", [4]uint64{})), size/2/40))
		table := atom("stbl", describe, atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1, 1}), atom("stsz", uint32(0), uint32(1), uint32(1<<30)),
			atom("stco", uint32(0), uint32(size/8), make([]byte, size/2)))
		return slices.Concat(atom("ftyp", "isom"), atom("moov", track(1, "soun", table)))
	},
}

// stripsTIFF returns a file with n strips of one byte in random order.
func stripsTIFF(n, size int) []byte {
	list := make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint32(list[4*i:], uint32(i*2654435761)%uint32(size))
		binary.LittleEndian.PutUint32(list[4*(n+i):], 1)
	}
	list = append(list, make([]byte, max(0, size-len(list)))...)
	return rawTIFF(list, [4]uint32{tagCompression, 3, 1, 5}, [4]uint32{tagStripOffsets, 4, uint32(n), 50}, [4]uint32{tagStripCounts, 4, uint32(n), uint32(50 + 4*n)})
}

// chunkFilm returns a film with n chunks in random order, whose samples overlap.
func chunkFilm(n, size int) []byte {
	offsets := make([]uint32, n)
	for i := range offsets {
		offsets[i] = uint32(i*2654435761) % uint32(size)
	}
	describe := atom("stsd", uint64(0), atom("twos", [8]byte{}, uint64(0), uint16(2), uint16(16), uint64(0)))
	table := atom("stbl", describe, atom("stsc", uint32(0), uint32(1), [3]uint32{1, 3, 1}), atom("stsz", uint32(0), uint32(1), uint32(1<<30)), atom("stco", uint32(0), uint32(n), offsets))
	return slices.Concat(atom("ftyp", "isom"), atom("moov", track(1, "soun", table)), atom("mdat", make([]byte, max(0, size-4*n))))
}

// movedFilm returns a film with many runs after a removed track, whose samples of a number of bytes show where they begin.
func movedFilm(bytes uint32, size int) []byte {
	movie := atom("moov", track(1, "meta", atom("stbl")), track(2, "vide", atom("stbl")))
	runs := strings.Repeat(string(atom("trun", uint32(1), uint32(1), uint32(0))), min(size/20, maxSpans)-100)
	removed := atom("traf", atom("tfhd", uint32(16), uint32(1), bytes), atom("trun", uint32(1), uint32(1), uint32(0)))
	return slices.Concat(atom("ftyp", "isom"), movie, atom("moof", removed, atom("traf", atom("tfhd", uint32(0), uint32(2)), runs)))
}

// TestHostileFiles checks that hostile files cost no more work and memory than their size allows.
func TestHostileFiles(t *testing.T) {
	size := hostileSize
	if testing.Short() {
		size = 4 << 20
	}
	for name, file := range hostile {
		data := file(size)
		p := newPlan(t.Context(), data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		p.read()
		edits, err := p.result()
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-38s %4.1f MB: %3d ms, %5.1f MB allocated, %5.1f MB of work, %4d edits, zeroed %v", name, float64(len(data))/(1<<20), took.Milliseconds(),
			float64(allocated)/(1<<20), float64(p.work)/(1<<20), len(edits), p.over)
		if err != nil || p.work > 12*int64(len(data))+1<<20 || allocated > 80<<20 {
			t.Errorf("%s: %d bytes of work, %d allocated for %d bytes: %v", name, p.work, allocated, len(data), err)
		}
		reduced := bytes.Clone(data)
		Apply(edits, reduced, 0)
		if len(edits) > maxEdits || Bytes(edits) > maxBytes {
			t.Errorf("%s has %d edits", name, len(edits))
		}
	}
}

// FuzzEdits removes the place from arbitrary bytes.
func FuzzEdits(f *testing.F) {
	m := newMaker(f, 1)
	film, _ := m.film("isom", false)
	fragments, _ := m.film("qt  ", true)
	raws := rawtest.Files(photoWithPlace(f), 6)
	for _, s := range [][]byte{m.jpeg(), m.png(), m.webp(), m.gif(), m.tiff(1), m.tiff(3), film, fragments, bmpFile(), pictureFile(1), raws["cr3"], raws["nef"], raws["mrw"]} {
		f.Add(s)
		for range 20 {
			cut := bytes.Clone(s[:m.IntN(len(s)+1)])
			for range 3 {
				if len(cut) > 12 {
					cut[12+m.IntN(len(cut)-12)] = byte(m.IntN(256))
				}
			}
			f.Add(cut)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		p := newPlan(t.Context(), file)
		p.read()
		if limit := 100*int64(len(file)) + 1<<20; p.work > limit {
			t.Errorf("work of %d bytes for a file of %d", p.work, len(file))
		}
		remove(t, file)
	})
}
