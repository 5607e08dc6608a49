package jpg

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
)

// photo returns a square picture of one kind and sampling, without restart markers, and its file.
func photo(marker byte, side int) (*picture, []byte) {
	r := rand.New(rand.NewPCG(7, uint64(side)))
	p := generate(r, samplings[5], marker, 2)
	p.w, p.h, p.interval = side, side, 0
	mx, my := p.mcus()
	for i := range p.comps {
		c := &p.comps[i]
		c.across, c.down = mx*int(c.h), my*int(c.v)
		c.blocks = make([][64]int32, c.across*c.down)
		fillBlocks(r, c.blocks)
	}
	return p, p.encode(r)
}

func TestReadConfig(t *testing.T) {
	each(t, 2, 60, func(t *testing.T, _ *rand.Rand, p *picture, data []byte) {
		c, err := ReadConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		if c.Width != p.w || c.Height != p.h || c.Components != len(p.comps) || c.Scans != len(p.scans) ||
			c.Progressive != (p.marker == markerSOF2) {
			t.Errorf("ReadConfig = %+v of %v", c, p)
		}
		for i := range p.comps {
			if c.HSamp[i] != int(p.comps[i].h) || c.VSamp[i] != int(p.comps[i].v) {
				t.Errorf("component %d sampled %dx%d of %v", i, c.HSamp[i], c.VSamp[i], p)
			}
		}
		var d Decoder
		if _, err := d.Decode(data, Options{}); err != nil || d.adobe-1 != p.adobe || d.jfif != p.jfif {
			t.Errorf("Adobe transform %d and JFIF %v of %v, %v", d.adobe-1, d.jfif, p, err)
		}
	})
}

func TestDecodeErrors(t *testing.T) {
	_, good := photo(markerSOF0, 40)
	frame := bytes.Index(good, []byte{0xff, markerSOF0})
	altered := func(at int, b byte) []byte {
		data := bytes.Clone(good)
		data[at] = b
		return data
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, ErrCorrupt},
		{"text", []byte("no picture"), ErrCorrupt},
		{"only a start", good[:2], ErrCorrupt},
		{"no scan", []byte{0xff, markerSOI, 0xff, markerEOI}, ErrCorrupt},
		{"cut", good[:len(good)/2], ErrCorrupt},
		{"lossless", altered(frame+1, 0xc3), ErrUnsupported},
		{"arithmetic", altered(frame+1, 0xc9), ErrUnsupported},
		{"12 bit", altered(frame+4, 12), ErrUnsupported},
		{"three to one", altered(frame+11, 0x31), ErrUnsupported},
	}
	var d Decoder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := d.Decode(tt.data, Options{}); !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

// manyScans returns a progressive picture of side × side pixels with this number of scans. A scan is empty: it takes some bits for 32,767
// blocks.
func manyScans(side, scans int) []byte {
	p := &picture{marker: markerSOF2, w: side, h: side, adobe: -1, comps: []comp{{id: 1, h: 1, v: 1}}}
	c := &p.comps[0]
	c.across, c.down = p.mcus()
	c.blocks = make([][64]int32, c.across*c.down)
	for i := range scans {
		s := testScan{comps: []int{0}, from: 1, to: 63, high: 1}
		if i == 0 {
			s.high = 0
		}
		p.scans = append(p.scans, s)
	}
	for i := range p.quant {
		p.quant[i] = [64]int32{0: 1}
	}
	return p.encode(rand.New(rand.NewPCG(1, 1)))
}

func TestDecodeCountsScans(t *testing.T) {
	var d Decoder
	for _, scans := range []int{1, 63, 64, 65, 2000} {
		data := manyScans(16, scans)
		if _, err := d.Decode(data, Options{}); errors.Is(err, ErrTooManyScans) != (scans > 64) {
			t.Errorf("%d scans: %v", scans, err)
		}
		if _, err := d.Decode(data, Options{MaxScans: scans - 1}); scans > 1 && !errors.Is(err, ErrTooManyScans) {
			t.Errorf("%d scans of %d: %v", scans, scans-1, err)
		}
		if c, err := ReadConfig(data); err != nil || c.Scans != scans {
			t.Errorf("ReadConfig counts %d scans, want %d, %v", c.Scans, scans, err)
		}
	}
}

// TestDecodeExpires stops each kind of file at the first check of Expired, in the middle and near the end.
func TestDecodeExpires(t *testing.T) {
	_, baseline := photo(markerSOF0, 600)
	_, progressive := photo(markerSOF2, 400)
	for name, data := range map[string][]byte{"baseline": baseline, "progressive": progressive, "hostile": manyScans(800, 64)} {
		var d Decoder
		calls := 0
		if _, err := d.Decode(data, Options{Expired: func() bool { calls++; return false }}); err != nil {
			t.Fatal(name, err)
		}
		if calls < 2 || name == "hostile" && calls < 64*100*100/(2*4096) {
			t.Errorf("%s: Expired was asked %d times", name, calls)
		}
		for _, last := range []int{1, calls / 2, calls} {
			left := last
			_, err := d.Decode(data, Options{Expired: func() bool { left--; return left <= 0 }})
			if !errors.Is(err, ErrExpired) || left != 0 {
				t.Errorf("%s: at time %d of %d Decode = %v, asked %d more", name, last, calls, err, left)
			}
		}
	}
}

func TestDecodeBoundsMemory(t *testing.T) {
	header := []byte{0xff, markerSOI, 0xff, markerSOF2, 0, 11, 8, 0xff, 0xff, 0xff, 0xff, 1, 1, 0x11, 0}
	scan := []byte{0xff, markerSOS, 0, 8, 1, 1, 0, 0, 0, 0, 0xff, markerEOI}
	var d Decoder
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := d.Decode(append(header, scan...), Options{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("Decode = %v, want ErrTooLarge", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
	_, data := photo(markerSOF2, 64)
	if _, err := d.Decode(data, Options{MaxBytes: 64*64*3/2 + 4*64*64*3/2 + 8*64*3/2 - 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Decode = %v, want ErrTooLarge", err)
	}
	if _, err := d.Decode(data, Options{MaxBytes: 64*64*3/2 + 4*64*64*3/2 + 8*64*3/2}); err != nil {
		t.Error(err)
	}
}

func TestDecodeAllocatesNothingAgain(t *testing.T) {
	var d Decoder
	for _, marker := range kinds {
		_, data := photo(marker, 300)
		for _, scale := range []int{1, 2, 4, 8} {
			decode := func() {
				if _, err := d.Decode(data, Options{Scale: scale}); err != nil {
					t.Fatal(err)
				}
			}
			if n := testing.AllocsPerRun(3, decode); n > 0 {
				t.Errorf("SOF%d Scale %d: %v allocations", marker-markerSOF0, scale, n)
			}
		}
	}
}
