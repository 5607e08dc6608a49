//go:build wasip1

package main

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

// imports are the functions of module sightline.
type imports struct{}

var _ hostapi.Imports = imports{}

// at returns the address of a slice's bytes, and size their number.
func at(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }
func size(p []byte) uint32       { return uint32(len(p)) }

// toEnd is the length that means that there is no upper bound.
const toEnd = math.MaxUint32

func bound(hi []byte) uint32 {
	if hi == nil {
		return toEnd
	}
	return size(hi)
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

//go:wasmimport sightline now
func hostNow() int64

//go:wasmimport sightline random
func hostRandom(dst unsafe.Pointer, n uint32)

//go:wasmimport sightline log
func hostLog(level int32, line string)

//go:wasmimport sightline bundle
func hostBundle(name string, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline older
func hostOlder(base unsafe.Pointer, name string, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline kv_get
func kvGet(snapshot uint32, key unsafe.Pointer, n uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline kv_scan
func kvScan(snapshot uint32, lo unsafe.Pointer, nlo uint32, hi unsafe.Pointer, nhi, back uint32) int64

//go:wasmimport sightline kv_next
func kvNext(scan uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline kv_end
func kvEnd(scan uint32)

//go:wasmimport sightline kv_snapshot
func kvSnapshot() uint32

//go:wasmimport sightline kv_release
func kvRelease(snapshot uint32)

//go:wasmimport sightline kv_apply
func kvApply(batch unsafe.Pointer, n uint32) int32

//go:wasmimport sightline kv_commit
func kvCommit(batch unsafe.Pointer, n uint32) int32

//go:wasmimport sightline kv_room
func kvRoom() int32

//go:wasmimport sightline kv_compact
func kvCompact(lo unsafe.Pointer, nlo uint32, hi unsafe.Pointer, nhi uint32) int32

//go:wasmimport sightline file_size
func fileSize(file uint32) int64

//go:wasmimport sightline file_read
func fileRead(file uint32, offset int64, dst unsafe.Pointer, n uint32) int32

//go:wasmimport sightline file_write
func fileWrite(file uint32, offset int64, src unsafe.Pointer, n uint32) int32

//go:wasmimport sightline file_truncate
func fileTruncate(file uint32, size int64) int32

//go:wasmimport sightline file_sync
func fileSync(file uint32) int32

//go:wasmimport sightline picture_add
func pictureAdd(data unsafe.Pointer, n uint32, contentType string, expires int64, dst unsafe.Pointer) int32

//go:wasmimport sightline picture_release
func pictureRelease(hash unsafe.Pointer) int32

//go:wasmimport sightline picture_drop
func pictureDrop(hash unsafe.Pointer) int32

//go:wasmimport sightline picture_lookup
func pictureLookup(name, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline picture_has
func pictureHas(hash unsafe.Pointer) int32

//go:wasmimport sightline picture_get
func pictureGet(hash, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline picture_put
func picturePut(hash, data unsafe.Pointer, n uint32) int32

//go:wasmimport sightline register_seq
func registerSeq() int64

//go:wasmimport sightline register_take
func registerTake(seq int64, data unsafe.Pointer, n uint32) int32

//go:wasmimport sightline token_issue
func tokenIssue(claims unsafe.Pointer, n uint32, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline token_read
func tokenRead(token string, dst unsafe.Pointer, room uint32) int64

//go:wasmimport sightline count
func hostCount(dst unsafe.Pointer, room uint32) int64

func (imports) Now() int64                   { return hostNow() }
func (imports) Random(dst []byte)            { hostRandom(at(dst), size(dst)) }
func (imports) Log(level int32, line string) { hostLog(level, line) }

func (imports) Bundle(name string, dst []byte) int64 { return hostBundle(name, at(dst), size(dst)) }

func (imports) Older(base *[32]byte, name string, dst []byte) int64 {
	return hostOlder(unsafe.Pointer(base), name, at(dst), size(dst))
}

func (imports) KVGet(snapshot uint32, key, dst []byte) int64 {
	return kvGet(snapshot, at(key), size(key), at(dst), size(dst))
}

func (imports) KVScan(snapshot uint32, lo, hi []byte, back bool) int64 {
	return kvScan(snapshot, at(lo), size(lo), at(hi), bound(hi), flag(back))
}

func (imports) KVNext(scan uint32, dst []byte) int64 { return kvNext(scan, at(dst), size(dst)) }
func (imports) KVEnd(scan uint32)                    { kvEnd(scan) }
func (imports) KVSnapshot() uint32                   { return kvSnapshot() }
func (imports) KVRelease(snapshot uint32)            { kvRelease(snapshot) }
func (imports) KVApply(batch []byte) int32           { return kvApply(at(batch), size(batch)) }
func (imports) KVCommit(batch []byte) int32          { return kvCommit(at(batch), size(batch)) }
func (imports) KVRoom() int32                        { return kvRoom() }

func (imports) KVCompact(lo, hi []byte) int32 { return kvCompact(at(lo), size(lo), at(hi), bound(hi)) }

func (imports) FileSize(file uint32) int64 { return fileSize(file) }

func (imports) FileRead(file uint32, offset int64, dst []byte) int32 {
	return fileRead(file, offset, at(dst), size(dst))
}

func (imports) FileWrite(file uint32, offset int64, src []byte) int32 {
	return fileWrite(file, offset, at(src), size(src))
}

func (imports) FileTruncate(file uint32, size int64) int32 { return fileTruncate(file, size) }
func (imports) FileSync(file uint32) int32                 { return fileSync(file) }

func (imports) PictureAdd(data []byte, contentType string, expires int64, dst *[abi.PictureNameBytes + 32]byte) int32 {
	return pictureAdd(at(data), size(data), contentType, expires, unsafe.Pointer(dst))
}

func (imports) PictureRelease(hash *[32]byte) int32 { return pictureRelease(unsafe.Pointer(hash)) }
func (imports) PictureDrop(hash *[32]byte) int32    { return pictureDrop(unsafe.Pointer(hash)) }

func (imports) PictureLookup(name *[abi.PictureNameBytes]byte, dst []byte) int64 {
	return pictureLookup(unsafe.Pointer(name), at(dst), size(dst))
}

func (imports) PictureHas(hash *[32]byte) int32 { return pictureHas(unsafe.Pointer(hash)) }

func (imports) PictureGet(hash *[32]byte, dst []byte) int64 {
	return pictureGet(unsafe.Pointer(hash), at(dst), size(dst))
}

func (imports) PicturePut(hash *[32]byte, data []byte) int32 {
	return picturePut(unsafe.Pointer(hash), at(data), size(data))
}

func (imports) AppRecordSeq() int64 { return registerSeq() }

func (imports) RegisterTake(seq int64, data []byte) int32 {
	return registerTake(seq, at(data), size(data))
}

func (imports) TokenIssue(claims, dst []byte) int64 {
	return tokenIssue(at(claims), size(claims), at(dst), size(dst))
}

func (imports) TokenRead(token string, dst []byte) int64 {
	return tokenRead(token, at(dst), size(dst))
}

func (imports) Count(dst []byte) int64 { return hostCount(at(dst), size(dst)) }
