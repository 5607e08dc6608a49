package kernels

import (
	"crypto/sha256"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// base64(dst, dstcap, src, len) → i64
func (in *Instance) base64(s []uint64) {
	ate, written := jsonio.DecodeGroups(in.bytes(s[0], count(s[1])), in.bytes(s[2], count(s[3])))
	s[0] = uint64(ate)<<32 | uint64(written)
}

// quote(src, len) → i32
func (in *Instance) quote(s []uint64) { s[0] = uint64(jsonio.PlainPrefix(in.bytes(s[0], count(s[1])))) }

// sha256(src, len, dst)
func (in *Instance) sha256(s []uint64) {
	sum := sha256.Sum256(in.bytes(s[0], count(s[1])))
	copy(in.bytes(s[2], len(sum)), sum[:])
}
