//go:build wasip1 && lent

package jsonio

// wasm/README.md specifies these imports.

//go:wasmimport kernel quote
//go:noescape
func hostQuote(src *byte, n int32) int32

//go:wasmimport kernel base64
//go:noescape
func hostBase64(dst *byte, room int32, src *byte, n int32) int64

// minHostCall is the number of bytes from which a call to the host is worth its cost. Most strings are shorter.
const minHostCall = 256

func plain(b []byte) int {
	if len(b) < 2*minHostCall {
		return plainGeneric(b)
	}
	if n := plainGeneric(b[:minHostCall]); n < minHostCall {
		return n
	}
	b = b[minHostCall:]
	return minHostCall + int(hostQuote(&b[0], int32(len(b))))
}

func decodeGroups(dst, src []byte) (ate, written int) {
	if len(src) >= minHostCall {
		n := hostBase64(&dst[0], int32(len(dst)), &src[0], int32(len(src)))
		ate, written = int(uint64(n)>>32), int(uint32(n))
	}
	moreAte, moreWritten := decodeGroupsGeneric(dst[written:], src[ate:])
	return ate + moreAte, written + moreWritten
}
