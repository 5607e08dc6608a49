package raster

//go:generate go run ./asm/arm64 -out row_arm64.s -stubs stubs_arm64.go -pkg raster

// The inner loops of a resize. The plain Go code here, in resize.go and in colour.go defines the results. The assembly in row_amd64.s
// computes the same results, eight at a time. The assembly in row_arm64.s has only addRows. Every architecture has these functions:
//
//	addRows     the vertical pass: sums of rows
//	acrossFast  the horizontal pass, for the first pixels of a row; returns their number, or 0
//	ycbcrFast   the conversion of colours, likewise

// addRowsGeneric sets sums[i] += Σ w[k]·pix[k·stride+i] for every i < len(sums).
//
// The sums must fit 32 bits.
func addRowsGeneric(sums []uint32, pix []byte, stride int, w []uint32) {
	for k, f := range w {
		if f == 0 {
			continue
		}
		row := pix[k*stride:][:len(sums)]
		for i := range sums {
			sums[i] += f * uint32(row[i])
		}
	}
}

// acrossGeneric computes Σ s[first[i]+k]·w[i·taps+k] over k < taps and sets out[i] to this sum divided by the
// divisor to which half and m belong; see divider. The sum must fit 32 bits.
func acrossGeneric(out []byte, s []uint32, first []int32, w []uint32, taps int, half, m uint64) {
	first = first[:len(out)]
	switch taps {
	case 2:
		for i := range out {
			v, f := (*[2]uint32)(s[first[i]:]), (*[2]uint32)(w)
			out[i] = byte((uint64(f[0]*v[0]+f[1]*v[1]) + half) * m >> 56)
			w = w[2:]
		}
	case 3:
		for i := range out {
			v, f := (*[3]uint32)(s[first[i]:]), (*[3]uint32)(w)
			out[i] = byte((uint64(f[0]*v[0]+f[1]*v[1]+f[2]*v[2]) + half) * m >> 56)
			w = w[3:]
		}
	default:
		for i := range out {
			var sum uint32
			for k, v := range s[first[i]:][:taps] {
				sum += v * w[k]
			}
			out[i] = byte((uint64(sum) + half) * m >> 56)
			w = w[taps:]
		}
	}
}

// across3Generic does what acrossGeneric does, for each of three interleaved channels.
func across3Generic(out []byte, s []uint32, first []int32, w []uint32, taps int, half, m uint64) {
	if taps == 2 {
		for i, first := range first {
			v, f, o := (*[6]uint32)(s[3*first:]), (*[2]uint32)(w[2*i:]), (*[3]byte)(out[3*i:])
			o[0] = byte((uint64(f[0]*v[0]+f[1]*v[3]) + half) * m >> 56)
			o[1] = byte((uint64(f[0]*v[1]+f[1]*v[4]) + half) * m >> 56)
			o[2] = byte((uint64(f[0]*v[2]+f[1]*v[5]) + half) * m >> 56)
		}
		return
	}
	for i, first := range first {
		var r, g, b uint32
		s := s[3*first:][:3*taps]
		for k, f := range w[i*taps:][:taps] {
			v := (*[3]uint32)(s[3*k:])
			r, g, b = r+f*v[0], g+f*v[1], b+f*v[2]
		}
		o := (*[3]byte)(out[3*i:])
		o[0] = byte((uint64(r) + half) * m >> 56)
		o[1] = byte((uint64(g) + half) * m >> 56)
		o[2] = byte((uint64(b) + half) * m >> 56)
	}
}

// groupReach is the number of sums that the assembly reads for a group of eight pixels, starting at the group's first sum.
const groupReach = 24

// groups has the samples and weights of an axis for groups of eight pixels. It omits the pixels after the last
// full group. base is empty if a group needs more than groupReach samples.
type groups struct {
	base []int32  // (n/8) first sample of each group
	rel  []int32  // (n/8, 8) first sample of each pixel, counted from base
	w    []uint32 // (n/8, taps, 8) weights
}

// regroup fills a.groups from the samples and weights of a.
func (a *axis) regroup() {
	n := len(a.first) / 8
	g := &a.groups
	g.base = resize(g.base, n)
	g.rel, g.w = resize(g.rel, 8*n), resize(g.w, 8*n*a.taps)
	for i := range n {
		base := a.first[8*i]
		g.base[i] = base
		for j := range 8 {
			rel := a.first[8*i+j] - base
			if int(rel)+a.taps > groupReach {
				g.base = g.base[:0]
				return
			}
			g.rel[8*i+j] = rel
			for k := range a.taps {
				g.w[(i*a.taps+k)*8+j] = a.w[(8*i+j)*a.taps+k]
			}
		}
	}
}
