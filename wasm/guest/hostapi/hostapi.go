// Package hostapi implements the core's ports with the services of the guest's host: the imports of module sightline.
//
//	core.Options      this package             wasm/README.md
//	Store      ◀────  Store         ◀────────  kv_*
//	Hosted     ◀────  Pictures      ◀────────  picture_*
//	Tokens     ◀────  Tokens        ◀────────  token_*
//	Calls      ◀────  Calls         ◀────────  count
//	Models     ◀────  Files (fs.FS) ◀────────  bundle, older
//	Clock      ◀────  Clock         ◀────────  now
//	Rand       ◀────  Random        ◀────────  random
//	replica    ◀────  AppRecords    ◀────────  register_*, picture_*
//
// The imports are an interface, so that tests can run the code that uses them natively.
package hostapi

import (
	"io"
	"time"

	"github.com/sightline-dev/sightline/wasm/abi"
)

// Imports are the functions of module sightline in wasm/README.md, with slices instead of addresses and lengths. A function may use its
// arguments only until it returns. A function that fills dst and returns an int64 returns the length of the data. If dst is too small, it
// writes nothing. An int64 below 0 is a negated [abi.Errno], and an int32 that is not a boolean is an [abi.Errno], 0 for success.
type Imports interface {
	Now() int64
	Random(dst []byte)
	Log(level int32, line string)
	Bundle(name string, dst []byte) int64
	Older(base *[32]byte, name string, dst []byte) int64 // an empty name returns all names, one per line

	KVGet(snapshot uint32, key, dst []byte) int64
	KVScan(snapshot uint32, lo, hi []byte, back bool) int64 // a nil hi means no upper bound
	KVNext(scan uint32, dst []byte) int64
	KVEnd(scan uint32)
	KVSnapshot() uint32
	KVRelease(snapshot uint32)
	KVApply(batch []byte) int32
	KVCommit(batch []byte) int32
	KVRoom() int32
	KVCompact(lo, hi []byte) int32

	FileSize(file uint32) int64
	FileRead(file uint32, offset int64, dst []byte) int32
	FileWrite(file uint32, offset int64, src []byte) int32
	FileTruncate(file uint32, size int64) int32
	FileSync(file uint32) int32

	PictureAdd(data []byte, contentType string, expires int64, dst *[abi.PictureNameBytes + 32]byte) int32
	PictureRelease(hash *[32]byte) int32
	PictureDrop(hash *[32]byte) int32
	PictureLookup(name *[abi.PictureNameBytes]byte, dst []byte) int64

	PictureHas(hash *[32]byte) int32
	PictureGet(hash *[32]byte, dst []byte) int64
	PicturePut(hash *[32]byte, data []byte) int32

	AppRecordSeq() int64
	RegisterTake(seq int64, data []byte) int32

	TokenIssue(claims, dst []byte) int64
	TokenRead(token string, dst []byte) int64
	Count(dst []byte) int64
}

// fill calls an import that fills a buffer, and returns the filled part. If buf is too small, fill calls the import again with new memory
// of the required size.
func fill(buf []byte, call func(dst []byte) int64) ([]byte, error) {
	for {
		n := call(buf)
		switch {
		case n < 0:
			return nil, abi.Errno(-n).Err()
		case n <= int64(len(buf)):
			return buf[:n], nil
		}
		buf = make([]byte, n)
	}
}

// did converts the result of an import that returns an [abi.Errno] and no length.
func did(n int32) error { return abi.Errno(n).Err() }

// Clock returns a function that reads the host's clock, in UTC.
func Clock(from Imports) func() time.Time {
	return func() time.Time { return time.Unix(0, from.Now()).UTC() }
}

// Random reads from the host's source of random bytes.
type Random struct{ From Imports }

var _ io.Reader = Random{}

// Read implements [io.Reader].
func (r Random) Read(p []byte) (int, error) {
	if len(p) > 0 {
		r.From.Random(p)
	}
	return len(p), nil
}
