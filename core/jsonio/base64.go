package jsonio

import (
	"encoding/binary"
	"slices"
)

// sextets holds the 24-bit share of each character, in either alphabet, for each place in a group of four characters. For all other bytes
// the top byte is set.
var sextets = func() (t [4][256]uint32) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for place := range t {
		for c := range t[place] {
			t[place][c] = badSextet
		}
		shift := 18 - 6*place
		for v := range len(alphabet) {
			t[place][alphabet[v]] = uint32(v) << shift
		}
		t[place]['-'] = 62 << shift
		t[place]['_'] = 63 << shift
	}
	return t
}()

const badSextet = 0xff << 24

// appendBase64 decodes text and appends the bytes to dst. bad is the offset of the first invalid byte, or -1 if all are valid. If bad is
// not -1, dst has its old length.
func appendBase64(dst, text []byte) (out []byte, bad int) {
	base := len(dst)
	// The decoder stores eight bytes at a time, so the buffer is a little longer than needed.
	dst = slices.Grow(dst, len(text)/4*3+16)
	buf := dst[base:cap(dst)]
	at, n := 0, 0
	for at < len(text) {
		ate, written := decodeGroups(buf[n:], text[at:])
		at, n = at+ate, n+written
		if at == len(text) {
			break
		}
		var last bool
		if ate, written, last, bad = decodeSlow(buf[n:], text[at:]); bad >= 0 {
			return dst[:base], at + bad
		}
		at, n = at+ate, n+written
		if last {
			break
		}
	}
	return dst[:base+n], -1
}

// decodeGroupsGeneric decodes groups of eight characters into six bytes each, until fewer than eight are left or one is outside the
// alphabet. It returns the number of characters that it read and of bytes that it wrote. dst has at least len(src)/4*3 + 8 bytes.
func decodeGroupsGeneric(dst, src []byte) (ate, written int) {
	t := &sextets
	for len(src)-ate >= 8 && len(dst)-written >= 8 {
		v := binary.LittleEndian.Uint64(src[ate:])
		x := t[0][byte(v)] | t[1][byte(v>>8)] | t[2][byte(v>>16)] | t[3][byte(v>>24)]
		y := t[0][byte(v>>32)] | t[1][byte(v>>40)] | t[2][byte(v>>48)] | t[3][byte(v>>56)]
		if (x|y)&badSextet != 0 {
			break
		}
		binary.BigEndian.PutUint64(dst[written:], uint64(x)<<40|uint64(y)<<16)
		ate += 8
		written += 6
	}
	return ate, written
}

// decodeSlow decodes one group of up to four characters, with line ends between them. The last group may have padding.
func decodeSlow(dst, src []byte) (ate, written int, last bool, bad int) {
	var x uint32
	got := 0
	for ate < len(src) && got < 4 {
		c := src[ate]
		if c == '\n' || c == '\r' {
			ate++
			continue
		}
		if c == '=' {
			break
		}
		s := sextets[got][c]
		if s&badSextet != 0 {
			return 0, 0, false, ate
		}
		x |= s
		got++
		ate++
	}
	if got < 4 {
		if bad = padding(src[ate:], got); bad >= 0 {
			return 0, 0, true, ate + bad
		}
		ate, last = len(src), true
		got = max(got-1, 0)
	} else {
		got = 3
	}
	for i := range got {
		dst[i] = byte(x >> (16 - 8*i))
	}
	return ate, got, last, -1
}

// padding checks the text after the got characters of the last group. It allows nothing, or as many '=' as fill the group to four. It
// returns the offset of the first invalid byte, -1 if there is none.
func padding(rest []byte, got int) int {
	if got == 1 {
		return 0
	}
	pads := 0
	for i, c := range rest {
		switch {
		case c == '\n' || c == '\r':
		case c == '=' && got > 0 && got+pads < 4:
			pads++
		default:
			return i
		}
	}
	if pads > 0 && got+pads < 4 {
		return len(rest)
	}
	return -1
}
