//go:build !purego

package jsonio

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm -out fast_amd64.s -stubs stubs_amd64.go -pkg jsonio

var hasAVX2 = cpu.Has(cpu.AVX2)

func plain(b []byte) int {
	i := 0
	if hasAVX2 && len(b) >= 64 {
		if i = plainAVX2(b); i < len(b)&^63 {
			return i
		}
	}
	return i + plainGeneric(b[i:])
}

func decodeGroups(dst, src []byte) (ate, written int) {
	if hasAVX2 {
		ate, written = decodeAVX2(dst, src)
	}
	moreAte, moreWritten := decodeGroupsGeneric(dst[written:], src[ate:])
	return ate + moreAte, written + moreWritten
}
