package raster

import (
	"image/color"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// resizeOne returns the whole result, made by one lane.
func resizeOne(t rapid.TB, src *source, win *window) []byte {
	t.Helper()
	var l lane
	if !l.start(src, win) {
		t.Fatalf("start(%+v, %+v) = false", *src, *win)
	}
	var got []byte
	for j := range win.th {
		got = append(got, l.row(j)...)
	}
	return got
}

// obviousWeights returns the share of each sample in each pixel of the result. It computes the definition in rational numbers.
func obviousWeights(s span, samples int) [][]*big.Rat {
	out := make([][]*big.Rat, s.n)
	lo, size := big.NewRat(int64(s.lo), unit), big.NewRat(int64(s.hi-s.lo), unit)
	place := func(i int64, of int) *big.Rat { // the point at i/of of the way from lo to hi
		p := big.NewRat(i, int64(of))
		return p.Add(p.Mul(p, size), lo)
	}
	for i := range out {
		row := make([]*big.Rat, samples)
		for j := range row {
			row[j] = new(big.Rat)
		}
		from, to := place(int64(i), s.n), place(int64(i+1), s.n)
		switch {
		case size.Cmp(big.NewRat(int64(s.n), 1)) < 0:
			// at is the pixel's centre in units of samples: sample j is at j.
			at := place(int64(2*i+1), 2*s.n)
			at.Sub(at, big.NewRat(int64(s.origin), 1))
			at.Quo(at, big.NewRat(int64(s.pitch), 1))
			at.Sub(at, big.NewRat(1, 2))
			first := int64((s.lo - unit*s.origin) / (unit * s.pitch))
			last := int64((s.hi - unit*s.origin - 1) / (unit * s.pitch))
			at = greater(lesser(at, big.NewRat(last, 1)), big.NewRat(first, 1))
			for j := range row {
				d := new(big.Rat).Sub(at, big.NewRat(int64(j), 1))
				d.Abs(d)
				if near := new(big.Rat).Sub(big.NewRat(1, 1), d); near.Sign() > 0 {
					row[j] = near
				}
			}
		case s.box:
			var in []int // the samples of the full-size pixels whose centres lie inside
			for x := range samples * s.pitch {
				centre := big.NewRat(int64(2*(s.origin+x)+1), 2)
				afterFrom, beforeTo := centre.Cmp(from), to.Cmp(centre)
				if afterFrom > 0 && beforeTo > 0 || afterFrom == 0 && 2*i+1 >= s.n || beforeTo == 0 && 2*i+1 <= s.n {
					in = append(in, x/s.pitch)
				}
			}
			for _, j := range in {
				row[j].Add(row[j], big.NewRat(1, int64(len(in))))
			}
		default:
			length := new(big.Rat).Sub(to, from)
			for j := range row {
				lo := big.NewRat(int64(s.origin+j*s.pitch), 1)
				hi := big.NewRat(int64(s.origin+(j+1)*s.pitch), 1)
				overlap := new(big.Rat).Sub(lesser(to, hi), greater(from, lo))
				if overlap.Sign() > 0 {
					row[j].Quo(overlap, length)
				}
			}
		}
		out[i] = row
	}
	return out
}

func lesser(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greater(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// obviousResize resizes by definition: the weighted mean, rounded half up.
func obviousResize(src *source, win *window) []byte {
	xs := obviousWeights(span{win.x0, win.x1, win.tw, src.originX, src.pitchX, win.box}, src.width)
	ys := obviousWeights(span{win.y0, win.y1, win.th, src.originY, src.pitchY, win.box}, src.height)
	half := big.NewRat(1, 2)
	var out []byte
	for _, wy := range ys {
		for _, wx := range xs {
			for c := range src.channels {
				sum := new(big.Rat).Set(half)
				for y, v := range wy {
					if v.Sign() == 0 {
						continue
					}
					for x, h := range wx {
						if h.Sign() != 0 {
							p := big.NewRat(int64(src.pix[y*src.stride+x*src.channels+c]), 1)
							sum.Add(sum, p.Mul(p, v).Mul(p, h))
						}
					}
				}
				q := new(big.Int).Quo(sum.Num(), sum.Denom())
				out = append(out, byte(q.Int64()))
			}
		}
	}
	return out
}

// anySource draws a plane and a part of it that its samples cover.
func anySource(t *rapid.T) (*source, *window) {
	pitches := []int{1, 2, 4, 8, 16, 32}
	s := &source{
		channels: rapid.SampledFrom([]int{1, 3}).Draw(t, "channels"),
		pitchX:   rapid.SampledFrom(pitches).Draw(t, "pitchX"),
		pitchY:   rapid.SampledFrom(pitches).Draw(t, "pitchY"),
		width:    rapid.IntRange(1, 12).Draw(t, "width"),
		height:   rapid.IntRange(1, 12).Draw(t, "height"),
	}
	s.originX = s.pitchX * rapid.IntRange(0, 3).Draw(t, "originX")
	s.originY = s.pitchY * rapid.IntRange(0, 3).Draw(t, "originY")
	s.stride = s.width*s.channels + rapid.IntRange(0, 3).Draw(t, "padding")
	// Few values, mostly extreme ones, reveal faults of rounding and clamping.
	s.pix = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 255, 255, 1, 254, 127, 128, 77}),
		s.stride*s.height, s.stride*s.height).Draw(t, "pix")
	win := &window{
		tw:  rapid.IntRange(1, 14).Draw(t, "tw"),
		th:  rapid.IntRange(1, 14).Draw(t, "th"),
		box: rapid.Bool().Draw(t, "box"),
	}
	// Bounds are multiples of a pixel, of half a pixel, for which centres lie between two pixels, or of a unit.
	grain := rapid.SampledFrom([]int{unit, unit / 2, 1}).Draw(t, "grain")
	interval := func(name string, origin, size int) (lo, hi int) {
		origin, size = origin*unit/grain, size*unit/grain
		lo = origin + rapid.IntRange(0, size-1).Draw(t, name+"0")
		hi = rapid.IntRange(lo+1, origin+size).Draw(t, name+"1")
		return lo * grain, hi * grain
	}
	win.x0, win.x1 = interval("x", s.originX, s.width*s.pitchX)
	win.y0, win.y1 = interval("y", s.originY, s.height*s.pitchY)
	return s, win
}

func TestResizeEqualsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, win := anySource(t)
		if got, want := resizeOne(t, src, win), obviousResize(src, win); !slices.Equal(got, want) {
			t.Fatalf("resize = %v, want %v", got, want)
		}
	})
}

// TestBox compares every interval of half pixels with the definition. It includes centres on the ends of intervals and between pixels of
// the result.
func TestBox(t *testing.T) {
	const pixels = 7
	for _, pitch := range []int{1, 3} {
		for n := 1; n <= pixels; n++ {
			for lo := range 2 * pixels {
				for hi := lo + 2*n; hi <= 2*pixels; hi++ {
					s := span{lo: lo * unit / 2, hi: hi * unit / 2, n: n, pitch: pitch, box: true}
					var a axis
					a.build(s)
					for i, row := range obviousWeights(s, (pixels+pitch-1)/pitch) {
						for j, want := range row {
							got := new(big.Rat)
							if k := j - a.lo - int(a.first[i]); k >= 0 && k < a.taps {
								got.SetFrac64(int64(a.w[i*a.taps+k]), int64(a.sum))
							}
							if got.Cmp(want) != 0 {
								t.Errorf("%+v: pixel %d takes %v of sample %d, want %v", s, i, got, j, want)
							}
						}
					}
				}
			}
		}
	}
}

// TestResizeMirrored checks that a mirrored picture gives a mirrored result, to the bit. Orientation relies on it.
func TestResizeMirrored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, win := anySource(t)
		src.channels = 1
		plain := resizeOne(t, src, win)

		mirrored := *src
		mirrored.pix = slices.Clone(src.pix)
		for y := range src.height {
			slices.Reverse(mirrored.pix[y*src.stride:][:src.width])
		}
		other := *win
		end := unit * (2*src.originX + src.width*src.pitchX)
		other.x0, other.x1 = end-win.x1, end-win.x0
		got := resizeOne(t, &mirrored, &other)
		for y := range win.th {
			slices.Reverse(got[y*win.tw:][:win.tw])
		}
		if !slices.Equal(got, plain) {
			t.Fatalf("mirrored = %v, want %v", got, plain)
		}
	})
}

// TestResizeOfOneColour checks that weights add up to exactly one, also at sizes whose sums need 64 bits.
func TestResizeOfOneColour(t *testing.T) {
	for _, size := range [][4]int{{1, 1, 224, 224}, {4000, 3, 224, 224}, {30000, 700, 3, 3}, {9000, 8437, 24, 3}, {9001, 901, 24, 5}, {3, 2, 8192, 1}} {
		w, h := size[0], size[1]
		for _, v := range []byte{255, 0, 1} {
			if testing.Short() && v != 255 {
				break
			}
			row := make([]byte, w)
			for i := range row {
				row[i] = v
			}
			src := &source{pix: row, stride: 0, channels: 1, pitchX: 1, pitchY: 1, width: w, height: h}
			for _, win := range []window{
				{x1: unit * w, y1: unit * h},
				{x1: unit * w, y1: unit * h, box: true},
				{x0: 1, y0: 3, x1: unit*w - 1, y1: unit*h - 2},
				{x0: 1, y0: 3, x1: unit*w - 1, y1: unit*h - 2, box: true},
			} {
				win.tw, win.th = size[2], size[3]
				for i, p := range resizeOne(t, src, &win) {
					if p != v {
						t.Fatalf("%v, %+v: pixel %d = %d, want %d", size, win, i, p, v)
					}
				}
			}
		}
	}
}

// TestResizeWideSums compares the 64-bit path with direct sums of pixels.
func TestResizeWideSums(t *testing.T) {
	const w, h = 9001, 1999 // coprime to the result's size: no common factor
	pix := make([]byte, w*h)
	state := uint32(1)
	for i := range pix {
		state = state*1664525 + 1013904223
		pix[i] = byte(state >> 24)
	}
	src := &source{pix: pix, stride: w, channels: 1, pitchX: 1, pitchY: 1, width: w, height: h}
	got := resizeOne(t, src, &window{x1: unit * w, y1: unit * h, tw: 2, th: 2})
	for j := range 2 {
		for i := range 2 {
			// In half pixels: columns i·w … (i+1)·w of 2·w, rows likewise.
			var sum int64
			for y := j * h; y < (j+1)*h; y++ {
				for x := i * w; x < (i+1)*w; x++ {
					sum += int64(pix[y/2*w+x/2])
				}
			}
			if want := byte((2*sum + w*h) / (2 * w * h)); got[2*j+i] != want {
				t.Errorf("pixel (%d, %d) = %d, want %d", i, j, got[2*j+i], want)
			}
		}
	}
}

// maxSumBits is the maximum number of bits of an axis's sum of weights.
const maxSumBits = 21

func TestDivider(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, d, s uint64) {
		v := newDivider(d)
		want := byte((2*s + d) / (2 * d))
		if d < narrowSum {
			var got [1]byte
			if acrossGeneric(got[:], []uint32{uint32(s)}, []int32{0}, []uint32{1}, 1, v.half, v.m); got[0] != want {
				t.Fatalf("narrow(%d / %d) = %d, want %d", s, d, got[0], want)
			}
		} else if got := v.wide(s); got != want {
			t.Fatalf("wide(%d / %d) = %d, want %d", s, d, got, want)
		}
	}
	t.Run("around every step", func(t *testing.T) {
		for _, d := range []uint64{1, 2, 3, 5, 255, 256, 50176, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1<<32 - 1, 1<<36 - 1, 1 << 36, 1<<(2*maxSumBits) - 1} {
			for q := range uint64(255) {
				edge := (2*q + 1) * d / 2 // where q becomes q+1
				for s := max(edge, 2) - 2; s <= min(edge+2, 255*d); s++ {
					check(t, d, s)
				}
			}
			check(t, d, 255*d)
		}
	})
	t.Run("anywhere", rapid.MakeCheck(func(t *rapid.T) {
		d := rapid.Uint64Range(1, 1<<(2*maxSumBits)).Draw(t, "d")
		check(t, d, rapid.Uint64Range(0, 255*d).Draw(t, "s"))
	}))
}

// TestRows compares the fast inner loops with the definition for all lengths and odd alignments.
func TestRows(t *testing.T) {
	pix := make([]byte, 1000)
	state := uint32(7)
	for i := range pix {
		state = state*1664525 + 1013904223
		pix[i] = byte(state >> 24)
	}
	for n := 0; n <= 257; n++ {
		for _, w := range [][]uint32{{1}, {0, 3}, {255, 0, 7}, {30000, 29999, 1, 2}, {1<<24 - 1}} {
			at, stride := n%17, 161-n%7
			got, want := make([]uint32, n+1), make([]uint32, n+1)
			for i := range got {
				got[i], want[i] = uint32(i), uint32(i)
			}
			addRows(got[:n], pix[at:], stride, w)
			addRowsGeneric(want[:n], pix[at:], stride, w)
			if !slices.Equal(got, want) {
				t.Fatalf("addRows(n=%d, w=%d) = %v, want %v", n, w, got, want)
			}
		}
	}
}

// TestAcross compares the fast horizontal pass with the definition, for all lengths and every number of samples that it accepts.
func TestAcross(t *testing.T) {
	for n := 1; n <= 257; n++ {
		for _, size := range []int{n, n + 1, 3 * n / 2, 2*n - 1, 2 * n, 5 * n / 2, 3 * n, 4 * n, n/2 + 1} {
			var l lane
			l.src = &source{channels: 1}
			l.x.build(span{lo: 0, hi: unit * size, n: n, pitch: 1, box: n%2 == 1})
			l.div = newDivider(uint64(l.x.sum) * 1000)
			l.x.group()
			l.sums = make([]uint32, l.x.hi+groupReach)[:l.x.hi]
			state := uint32(n * size)
			for i := range l.sums {
				state = state*1664525 + 1013904223
				l.sums[i] = min(state>>14, 255_000)
			}
			l.out = make([]byte, n)
			l.across(l.acrossFast())
			got := slices.Clone(l.out)
			clear(l.out)
			l.across(0)
			if !slices.Equal(got, l.out) {
				t.Fatalf("across(%d to %d) = %v, want %v", size, n, got, l.out)
			}
		}
	}
}

// TestYCbCr compares the conversion with image/color's: every pair of chroma values with some luma, in rows of all lengths.
func TestYCbCr(t *testing.T) {
	var y, cb, cr []byte
	for b := range 256 {
		for r := range 256 {
			y, cb, cr = append(y, byte(b*7+r*13)), append(cb, byte(b)), append(cr, byte(r))
		}
	}
	for _, v := range []byte{0, 1, 16, 128, 235, 254, 255} {
		y, cb, cr = append(y, v, v, v), append(cb, 0, 255, 128), append(cr, 255, 0, 128)
	}
	for n, at := 0, 0; at+n <= len(y); at, n = at+n, (n+1)%258 {
		rows := [4][]byte{y[at:], cb[at:], cr[at:]}
		for _, step := range []int{3, 6} {
			got := make([]byte, step*n+1)
			got[step*n] = 42
			rowYCbCr(got, 0, step, &rows, n)
			for i := range n {
				r, g, b := color.YCbCrToRGB(y[at+i], cb[at+i], cr[at+i])
				if p := [3]byte(got[step*i:]); p != [3]byte{r, g, b} {
					t.Fatalf("pixel %d of %d = %v, want %v", i, n, p, [3]byte{r, g, b})
				}
			}
			if got[step*n] != 42 {
				t.Fatalf("%d pixels wrote beyond their end", n)
			}
		}
	}
}
