package kernels

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// table caches a guest's table of chunks, translated to addresses of the host. Guests pass the same table in many calls. The fields after
// chunks are the input of the translation, to detect changes.
type table struct {
	chunks       []uintptr // not pointers, which would keep the old memory alive after it has moved
	guest        []byte
	stride, rows int
	memory       *byte
	size         int
}

// translate returns the addresses of the chunks in the guest's table at address at. The chunks have rows rows of stride bytes.
func (in *Instance) translate(t *table, at uint64, stride, rows int) []unsafe.Pointer {
	n := kernel.Chunks(rows)
	guest := in.bytes(at, times(n, 8))
	if t.memory != &in.mem[0] || t.size != len(in.mem) || t.stride != stride || t.rows != rows || !bytes.Equal(t.guest, guest) {
		t.memory = nil
		t.chunks = t.chunks[:0]
		for i := range n {
			chunk := in.bytes(uint64(binary.LittleEndian.Uint32(guest[8*i:])), times(stride, kernel.RowsOf(i, rows)))
			t.chunks = append(t.chunks, uintptr(unsafe.Pointer(unsafe.SliceData(chunk))))
		}
		t.guest = append(t.guest[:0], guest...)
		t.memory, t.size, t.stride, t.rows = &in.mem[0], len(in.mem), stride, rows
	}
	return unsafe.Slice((*unsafe.Pointer)(unsafe.Pointer(&t.chunks[0])), n)
}

// maxStride is the maximum stride in bytes, that of vectors with kernel.MaxDim dimensions.
const maxStride = kernel.MaxDim

// shape checks parameters of distances and dots. If they are invalid, it ends the instance.
func (in *Instance) shape(stride, n, total int) {
	if stride == 0 || stride%64 != 0 || stride > maxStride || total == 0 {
		panic(abi.ErrRange)
	}
	in.work(n, stride, 1)
}

// rowsAtOnce is the maximum number of rows in one call of a kernel.
const rowsAtOnce = 1 << 10

// eachRows calls f with copies of the n row numbers at an address, at most rowsAtOnce in a call. If a number is not below total, eachRows
// ends the instance. f gets copies because it may write results over the guest's row numbers, after eachRows has checked them.
func (in *Instance) eachRows(at uint64, n, total int, f func(from int, rows []uint32)) {
	rows := view[uint32](in, at, n)
	for from := 0; from < n; from += rowsAtOnce {
		some := in.rows[:copy(in.rows[:], rows[from:])]
		largest := uint32(0)
		for _, r := range some {
			largest = max(largest, r)
		}
		if int(largest) >= total {
			wild()
		}
		f(from, some)
	}
}

// distances(dst, codes, stride, offset, scale, rows, n, high, meta, total)
func (in *Instance) distances(s []uint64) {
	stride, n, total := count(s[2]), count(s[6]), count(s[9])
	if n == 0 {
		return
	}
	in.shape(stride, n, total)
	meta := view[int32](in, s[8], times(total, 2))
	in.vectors.Borrow(stride, total, in.translate(&in.high, s[7], stride, total), nil, unsafe.Pointer(&meta[0]))
	in.query.Borrow(view[int8](in, s[1], stride), nil, int32(s[3]), float(s[4]))
	dst := view[uint32](in, s[0], n)
	in.eachRows(s[5], n, total, func(from int, rows []uint32) {
		in.vectors.Distances(dst[from:from+len(rows)], &in.query, rows)
	})
	in.forget()
}

// dots(dst, full, stride, rows, n, high, low, total)
func (in *Instance) dots(s []uint64) {
	stride, n, total := count(s[2]), count(s[4]), count(s[7])
	if n == 0 {
		return
	}
	in.shape(stride, n, total)
	high, low := in.translate(&in.high, s[5], stride, total), in.translate(&in.low, s[6], stride, total)
	in.vectors.Borrow(stride, total, high, low, nil)
	in.query.Borrow(nil, view[int16](in, s[1], stride), 0, 0)
	dst := view[int64](in, s[0], n)
	in.eachRows(s[3], n, total, func(from int, rows []uint32) {
		in.vectors.Dots(dst[from:from+len(rows)], &in.query, rows)
	})
	in.forget()
}

// forget removes all references to the guest's memory, because it may move.
func (in *Instance) forget() { in.vectors, in.query = kernel.Vectors{}, kernel.Query{} }
