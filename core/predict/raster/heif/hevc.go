package heif

import "fmt"

var errSets = fmt.Errorf("%w: its parameter sets", ErrCorrupt)

// hvcC has the parameter sets of HEVC: 22 bytes, then arrays of NAL units.
const configHead = 22

// eachUnit calls visit for each NAL unit of a configuration. It reports whether the configuration is well formed.
func eachUnit(config []byte, visit func(unit []byte)) bool {
	if len(config) <= configHead {
		return false
	}
	f := &fields{b: config[configHead:]}
	for range f.uint(1) {
		f.uint(1)
		for range f.uint(2) {
			n := int(f.uint(2))
			if len(f.b) < n {
				return false
			}
			visit(f.b[:n])
			f.b = f.b[n:]
		}
	}
	return !f.short
}

// readHEVC reads the first sequence parameter set of a configuration.
func readHEVC(config []byte) (s Samples, err error) {
	err = errSets
	whole := eachUnit(config, func(unit []byte) {
		const spsType = 33
		if err != nil && len(unit) > 2 && unit[0]>>1&0x3f == spsType {
			s, err = readSPS(unit[2:])
		}
	})
	if !whole {
		return s, errSets
	}
	return s, err
}

// appendTile appends a picture's NAL units, which are stored with their lengths, with start codes. The first tile brings the parameter sets.
func appendTile(out, config, b []byte, first bool) ([]byte, error) {
	start := []byte{0, 0, 0, 1}
	if first {
		eachUnit(config, func(unit []byte) { out = append(append(out, start...), unit...) })
	}
	size := int(config[configHead-1]&3) + 1
	f := &fields{b: b}
	for len(f.b) > 0 {
		n := f.uint(size)
		if f.short || n > uint64(len(f.b)) {
			return nil, fmt.Errorf("%w: it ends early", ErrCorrupt)
		}
		out = append(append(out, start...), f.b[:n]...)
		f.b = f.b[n:]
	}
	return out, nil
}

// bits reads bits, the highest of each byte first. After the end it returns 0 and sets short.
type bits struct {
	b     []byte
	at    int // in bits
	short bool
}

func (r *bits) read(n int) (v uint32) {
	for range n {
		if r.at>>3 >= len(r.b) {
			r.short = true
			return 0
		}
		v = v<<1 | uint32(r.b[r.at>>3]>>(7-r.at&7)&1)
		r.at++
	}
	return v
}

func (r *bits) flag() bool { return r.read(1) == 1 }

// skip skips n bits.
func (r *bits) skip(n int) {
	r.at += n
	r.short = r.short || r.at > 8*len(r.b)
}

// golomb reads a number in the code ue(v) of H.265, section 9.2.
func (r *bits) golomb() int {
	zeros := 0
	for !r.flag() {
		if zeros++; zeros > 31 || r.short {
			r.short = true
			return 0
		}
	}
	return 1<<zeros - 1 + int(r.read(zeros))
}

// unescape removes the bytes that keep start codes out of a NAL unit.
func unescape(unit []byte) []byte {
	out := make([]byte, 0, len(unit))
	zeros := 0
	for _, c := range unit {
		if zeros >= 2 && c == 3 {
			zeros = 0
			continue
		}
		zeros++
		if c != 0 {
			zeros = 0
		}
		out = append(out, c)
	}
	return out
}

// readSPS reads a sequence parameter set, H.265 section 7.3.2.2, up to the colour in its VUI.
func readSPS(unit []byte) (Samples, error) {
	r := &bits{b: unescape(unit)}
	r.skip(4)
	layers := int(r.read(3))
	r.skip(1)
	skipProfile(r, layers)
	r.golomb() // number of the set
	var s Samples
	chroma, separate := r.golomb(), false
	if chroma == 3 {
		separate = r.flag()
	}
	if chroma > 3 || separate {
		return s, fmt.Errorf("%w: format of chroma", ErrUnsupported)
	}
	s.SubX, s.SubY = [...]int{NoChroma, 1, 1, 0}[chroma], [...]int{NoChroma, 1, 0, 0}[chroma]
	s.Width, s.Height = r.golomb(), r.golomb()
	if r.flag() { // the conformance window
		unitX, unitY := 1, 1
		if chroma > 0 {
			unitX, unitY = 1<<s.SubX, 1<<s.SubY
		}
		s.Width -= unitX * (r.golomb() + r.golomb())
		s.Height -= unitY * (r.golomb() + r.golomb())
	}
	s.Depth = 8 + r.golomb()
	if chromaDepth := 8 + r.golomb(); chroma > 0 && chromaDepth != s.Depth {
		return s, fmt.Errorf("%w: luma and chroma of different depths", ErrUnsupported)
	}
	if r.short || s.Width < 1 || s.Height < 1 {
		return s, errSets
	}
	skipTools(r, layers)
	readVUI(r, &s)
	return s, nil
}

// skipProfile skips profile_tier_level, section 7.3.3.
func skipProfile(r *bits, layers int) {
	r.skip(96)
	if layers == 0 {
		return
	}
	var size int
	for i := range 8 {
		profile, level := r.flag(), r.flag()
		if i < layers && profile {
			size += 88
		}
		if i < layers && level {
			size += 8
		}
	}
	r.skip(size)
}

// skipTools skips the fields between the depths and the VUI.
func skipTools(r *bits, layers int) {
	pocBits := r.golomb() + 4
	from := layers
	if r.flag() {
		from = 0
	}
	for range layers - from + 1 {
		r.golomb()
		r.golomb()
		r.golomb()
	}
	for range 6 {
		r.golomb()
	}
	if lists := r.flag(); lists && r.flag() {
		skipScaling(r)
	}
	r.skip(2)
	if r.flag() { // PCM
		r.skip(8)
		r.golomb()
		r.golomb()
		r.skip(1)
	}
	sets := r.golomb()
	if sets > 64 {
		r.short = true
		return
	}
	counts := make([]int, sets)
	for i := range counts {
		counts[i] = skipReferences(r, counts[:i])
	}
	if r.flag() { // long-term pictures
		for range min(r.golomb(), 32) {
			r.skip(pocBits + 1)
		}
	}
	r.skip(2)
}

// skipScaling skips scaling_list_data, section 7.3.4.
func skipScaling(r *bits) {
	for size := range 4 {
		step := 1
		if size == 3 {
			step = 3
		}
		for m := 0; m < 6; m += step {
			if !r.flag() {
				r.golomb()
				continue
			}
			if size > 1 {
				r.golomb()
			}
			for range min(64, 1<<(4+2*size)) {
				r.golomb()
			}
		}
	}
}

// skipReferences skips st_ref_pic_set, section 7.3.7, and returns its number of pictures. before has the numbers of the earlier sets.
func skipReferences(r *bits, before []int) (count int) {
	if len(before) > 0 && r.flag() {
		r.skip(1)
		r.golomb()
		for range before[len(before)-1] + 1 {
			used := r.flag()
			if used || r.flag() {
				count++
			}
		}
		return min(count, 16)
	}
	count = min(r.golomb()+r.golomb(), 32)
	for range count {
		r.golomb()
		r.skip(1)
	}
	return count
}

// readVUI reads the colour of the video usability information, section E.2.1. Without it s keeps none.
func readVUI(r *bits, s *Samples) {
	if !r.flag() {
		return
	}
	const extended = 255
	if r.flag() && r.read(8) == extended {
		r.skip(32)
	}
	if r.flag() {
		r.skip(1)
	}
	if !r.flag() {
		return
	}
	r.skip(3)
	full := r.flag()
	primaries, matrix := 2, 2
	if r.flag() {
		primaries = int(r.read(8))
		r.skip(8)
		matrix = int(r.read(8))
	}
	if !r.short {
		s.coloured, s.Full, s.Primaries, s.Matrix = true, full, primaries, matrix
	}
}
