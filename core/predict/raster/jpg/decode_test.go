package jpg

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

var kinds = []byte{markerSOF0, markerSOF1, markerSOF2}

// each generates n pictures of every sampling and kind and calls f with each of them.
func each(t *testing.T, n, maxSide int, f func(t *testing.T, r *rand.Rand, p *picture, data []byte)) {
	for _, s := range samplings {
		for _, marker := range kinds {
			t.Run(fmt.Sprintf("%s SOF%d", s.name, marker-markerSOF0), func(t *testing.T) {
				for seed := range uint64(n) {
					r := rand.New(rand.NewPCG(seed, uint64(marker)))
					p := generate(r, s, marker, maxSide)
					t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, r, p, p.encode(r)) })
				}
			})
		}
	}
}

// TestDecodeEqualsImageJPEG compares every sample of every kind of file with image/jpeg's.
func TestDecodeEqualsImageJPEG(t *testing.T) {
	var d Decoder
	each(t, 12, 90, func(t *testing.T, _ *rand.Rand, p *picture, data []byte) {
		if !against(t, &d, data) {
			t.Fatalf("refused %v", p)
		}
	})
}

// TestDecodeDamaged cuts and alters files. Decode must refuse the files that image/jpeg refuses, and return the same samples for the
// others.
func TestDecodeDamaged(t *testing.T) {
	var d Decoder
	cut, accepted, files := 0, 0, 3
	if testing.Short() {
		files = 1
	}
	each(t, files, 40, func(t *testing.T, r *rand.Rand, _ *picture, data []byte) {
		for range 30 {
			against(t, &d, data[:r.IntN(len(data))])
			cut++
		}
		for range 60 {
			damaged := slices.Clone(data)
			for range 1 + r.IntN(2) {
				// Half of the damage goes into the last part, where there are no tables.
				at := r.IntN(len(damaged))
				if r.IntN(2) == 0 {
					at = len(damaged) - 1 - r.IntN(min(300, len(damaged)))
				}
				switch r.IntN(4) {
				case 0:
					damaged[at] ^= 1 << r.IntN(8)
				case 1:
					damaged[at] = byte(r.Int())
				case 2:
					damaged = slices.Delete(damaged, at, min(len(damaged), at+1+r.IntN(4)))
				default:
					damaged = slices.Insert(damaged, at, 0xff, byte(r.IntN(256)))
				}
				if len(damaged) == 0 {
					return
				}
			}
			// Damage must not turn the frame into one that takes minutes.
			if c, err := ReadConfig(damaged); err == nil && c.Width*c.Height > 1<<20 {
				continue
			}
			if against(t, &d, damaged) {
				accepted++
			}
		}
	})
	t.Logf("%d cut, %d damaged and taken by both", cut, accepted)
	if accepted < 35*files {
		t.Errorf("only %d damaged files were taken by both", accepted)
	}
}

// TestDecodeEveryCut cuts one file of each coding at every byte.
func TestDecodeEveryCut(t *testing.T) {
	var d Decoder
	for _, marker := range kinds {
		r := rand.New(rand.NewPCG(5, uint64(marker)))
		data := generate(r, samplings[5], marker, 30).encode(r)
		step := 1
		if testing.Short() {
			step = 5
		}
		for i := 0; i < len(data); i += step {
			if against(t, &d, data[:i]) {
				t.Fatalf("SOF%d: %d of %d bytes were taken", marker-markerSOF0, i, len(data))
			}
		}
	}
}

// TestDecodeOddScripts runs lists of scans that no encoder would write: repeated bands, refinements of bands that never came, and scans
// in the wrong order.
func TestDecodeOddScripts(t *testing.T) {
	var d Decoder
	accepted := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := generate(r, samplings[r.IntN(len(samplings))], markerSOF2, 50)
		if r.IntN(2) == 0 {
			p.scans = p.scans[:1]
		}
		for range 1 + r.IntN(5) {
			s := testScan{comps: []int{r.IntN(len(p.comps))}, low: r.IntN(14)}
			if s.low > 3 {
				s.low = r.IntN(3)
			}
			if r.IntN(4) > 0 {
				s.from = 1 + r.IntN(63)
				s.to = s.from + r.IntN(64-s.from)
			}
			if r.IntN(2) == 0 {
				s.high = s.low + 1
			}
			p.scans = append(p.scans, s)
		}
		if against(t, &d, p.encode(r)) {
			accepted++
		}
	}
	if accepted < 100 {
		t.Errorf("only %d of 400 were taken by both", accepted)
	}
}

// TestDecodeLeniency checks that we accept the same malformed files as image/jpeg and refuse the same.
func TestDecodeLeniency(t *testing.T) {
	_, good := photo(markerSOF0, 40)
	scan := bytes.Index(good, []byte{0xff, markerSOS})
	at := func(i int, insert ...byte) []byte { return slices.Insert(slices.Clone(good), i, insert...) }
	tests := []struct {
		name string
		data []byte
		want bool
	}{
		{"stray bytes before a marker", at(2, 1, 2, 3), true},
		{"stuffing before a marker", at(2, 0xff, 0), true},
		{"fill bytes", at(2, 0xff, 0xff, 0xff), true},
		{"stray restart marker", at(scan, 0xff, 0xd3), true},
		{"first byte of a quantisation table", at(2, 0xff, markerDQT, 0, 3, 0), true},
		{"fifth quantisation table", at(2, 0xff, markerDQT, 0, 3, 4), false},
		{"stray bytes behind the scan", at(len(good)-2, 7, 7), true},
		{"bytes behind the end", append(slices.Clone(good), 1, 2, 3), true},
		{"marker in the scan", at(len(good)-30, 0xff, 0xd0), false},
		{"reserved marker", at(2, 0xff, 0x02, 0, 2), false},
		{"unknown segment", at(2, 0xff, 0xf0, 0, 2), false},
		{"short segment", at(2, 0xff, markerCOM, 0, 1), false},
	}
	var d Decoder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := against(t, &d, tt.data); got != tt.want {
				t.Errorf("taken: %v, want %v", got, tt.want)
			}
		})
	}
}
