package kernels

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// table is a guest's table of chunks, translated to addresses of ours, and what it was made from:
// a guest asks again and again with the same one.
type table struct {
	chunks       []uintptr // no pointers: memory that has moved since must not stay alive for them
	guest        []byte
	stride, rows int
	memory       *byte
	size         int
}

// translate returns the chunks of rows rows of stride bytes at address at.
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

// maxStride is the stride of vectors with the most dimensions.
const maxStride = kernel.MaxDim

// shape checks the parameters that distances and dots share.
func (in *Instance) shape(stride, n, total int) {
	if stride == 0 || stride%64 != 0 || stride > maxStride || total == 0 {
		panic(abi.ErrWild)
	}
	in.work(n, stride, 1)
}

// rowsAtOnce is the number of rows that one call of a kernel measures.
const rowsAtOnce = 1 << 10

// eachRows calls f with copies of n rows at an address, all of them below total: results may be
// written over the rows that the guest named, after they have been checked.
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

// forget lets go of the guest's memory, which may move.
func (in *Instance) forget() { in.vectors, in.query = kernel.Vectors{}, kernel.Query{} }
