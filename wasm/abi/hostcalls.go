package abi

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
)

// OnceBufferBytes is the size in bytes of the buffer that the guest gives to imports that it must not call twice, token_issue and count.
// Their results always fit.
const OnceBufferBytes = 64 << 10

// claims are the claims of a token.
//
//field:fields put get
type claims struct {
	auth.Claims `wire:"+0"`
}

// MarshalClaims returns the encoded fields of a token's claims.
func MarshalClaims(c auth.Claims) []byte { return inner(&claims{c}, putClaims) }

// ParseClaims decodes the output of MarshalClaims.
func ParseClaims(data []byte) (auth.Claims, error) {
	c, err := fields("claims", data, getClaims)
	return c.Claims, err
}

// AppendToken appends the result of token_issue: i64 life in nanoseconds, then the token.
func AppendToken(buf []byte, token string, life time.Duration) []byte {
	return append(binary.LittleEndian.AppendUint64(buf, uint64(life)), token...)
}

// ParseToken reads the result of token_issue.
func ParseToken(data []byte) (token string, life time.Duration, err error) {
	if len(data) < 8 {
		return "", 0, fmt.Errorf("token of %d bytes: %w", len(data), field.ErrFormat)
	}
	return string(data[8:]), time.Duration(binary.LittleEndian.Uint64(data)), nil
}

// PictureNameBytes is the length of a picture's name, which picture_add writes before the hash.
const PictureNameBytes = 16

// AppendPicture appends the result of picture_lookup: 32 bytes of hash, i64 expiry as [Nanos] returns it (0: never), then the content type.
func AppendPicture(buf []byte, p *blob.Picture) []byte {
	buf = append(buf, p.Hash[:]...)
	return append(binary.LittleEndian.AppendUint64(buf, uint64(Nanos(p.Expires))), p.ContentType...)
}

// ParsePicture reads the result of picture_lookup.
func ParsePicture(data []byte) (p blob.Picture, err error) {
	if len(data) < len(p.Hash)+8 {
		return p, fmt.Errorf("picture of %d bytes: %w", len(data), field.ErrFormat)
	}
	n := copy(p.Hash[:], data)
	p.Expires = FromNanos(int64(binary.LittleEndian.Uint64(data[n:])))
	p.ContentType = string(data[n+8:])
	return p, nil
}

// Nanos returns t in nanoseconds since 1970, or 0 for the zero time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FromNanos is the inverse of Nanos. The time is in UTC.
func FromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// RecordHead is the size in bytes of the two lengths before a record.
const RecordHead = 8

// AppendRecord appends a record of a scan in the format of kv_next: u32 length of the key, u32 length of the value, key, value.
func AppendRecord(buf, key, value []byte) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(key)))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(value)))
	return append(append(buf, key...), value...)
}

// NextRecord returns the first record of data and the rest. They share data's memory. The error wraps field.ErrFormat.
func NextRecord(data []byte) (key, value, rest []byte, err error) {
	if len(data) < 8 {
		return nil, nil, nil, fmt.Errorf("record of a scan: %w", field.ErrFormat)
	}
	k, v := uint64(binary.LittleEndian.Uint32(data)), uint64(binary.LittleEndian.Uint32(data[4:]))
	if data = data[8:]; k+v > uint64(len(data)) {
		return nil, nil, nil, fmt.Errorf("record of a scan: %w", field.ErrFormat)
	}
	return data[:k:k], data[k : k+v : k+v], data[k+v:], nil
}
