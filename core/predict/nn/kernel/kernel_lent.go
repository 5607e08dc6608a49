//go:build wasip1 && lent

package kernel

import (
	"runtime"
	"structs"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// wasm/README.md describes the imports. While an import runs, the host reads and writes this module's memory,
// and no code of this module runs.

//go:wasmimport kernel conv_u8
//go:noescape
func convU8(handle int32, dst *uint8, ldd int32, src *uint8, stepX, srcStride, m int32, q *requantArgs, add *addArgs)

//go:wasmimport kernel conv_rows_u8
//go:noescape
func convRowsU8(handle int32, dst *uint8, ldd int32, src *uint8, stepX, srcStride, m int32, q *requantArgs, rows, dstStep, srcStep int32)

//go:wasmimport kernel gemv_u16
//go:noescape
func hostGemv(handle int32, dst *int64, a *uint16, bias *int32)

//go:wasmimport kernel depthwise_u8
//go:noescape
func hostDepthwiseU8(handle int32, dst, src *uint8, d *depthwiseArgs, q *requantArgs)

//go:wasmimport kernel add_u8
//go:noescape
func hostAdd(dst, y, r *uint8, n int32, add *addArgs)

//go:wasmimport kernel sum_rows_u8
//go:noescape
func hostSumRows(dst *uint32, src *uint8, lds, rows, n int32)

// requantArgs is the memory layout of a Requant that the host reads.
type requantArgs struct {
	_            structs.HostLayout
	bias, scale  uint32
	zero, lo, hi int32
}

// addArgs is the memory layout of an Add that the host reads.
type addArgs struct {
	_                             structs.HostLayout
	scaleY, scaleR                float32
	zeroY, zeroR, zero, low, high int32
	r                             uint32
	ldr                           int32
}

// depthwiseArgs is the memory layout of a Depthwise that the host reads.
type depthwiseArgs struct {
	_                                                            structs.HostLayout
	rows, width, dstStep, srcStep, srcStride, strideX, dilationX int32
}

// escaped holds the last address that was stored in a structure. The assignment makes the compiler allocate the memory on the heap, where
// its address is fixed. On the stack it could move before the host reads it.
var escaped unsafe.Pointer

func address(p unsafe.Pointer) uint32 {
	escaped = p
	return uint32(uintptr(p))
}

func (q *Requant) args() requantArgs {
	return requantArgs{
		bias: address(unsafe.Pointer(&q.Bias[0])), scale: address(unsafe.Pointer(&q.Scale[0])),
		zero: q.Zero, lo: int32(q.Lo), hi: int32(q.Hi),
	}
}

func (p *Add) args() addArgs {
	return addArgs{
		scaleY: p.ScaleY, scaleR: p.ScaleR,
		zeroY: p.ZeroY, zeroR: p.ZeroR, zero: p.Zero, low: int32(p.Lo), high: int32(p.Hi),
	}
}

// with reports whether the host computes with these weights.
func (l *lease) with() bool {
	if l.handle == 0 || Levels.Current() == cpu.Lent {
		return l.handle != 0
	}
	if !packBoth {
		panic("kernel: only the host has packed these weights")
	}
	return false
}

func gemmF32(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	gemmF32Generic(dst, ldd, a, lda, segStride, m, w, res, ldr, lo, hi)
}

func gemmU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	if !w.lease.with() {
		gemmU8Generic(dst, ldd, a, lda, segStride, m, w, q)
		return
	}
	args := q.args()
	convU8(w.handle, &dst[0], int32(ldd), &a[0], int32(lda), int32(segStride), int32(m), &args, nil)
	runtime.KeepAlive(q)
}

func gemmRowsU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	if !w.lease.with() {
		gemmRowsGeneric(dst, ldd, a, lda, segStride, m, r, w, q)
		return
	}
	args := q.args()
	convRowsU8(w.handle, &dst[0], int32(ldd), &a[0], int32(lda), int32(segStride), int32(m), &args, int32(r.Rows), int32(r.DstStep), int32(r.SrcStep))
	runtime.KeepAlive(q)
}

func gemmAddU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	if !w.lease.with() {
		gemmAddGeneric(dst, ldd, a, lda, segStride, m, w, q, add)
		return
	}
	args, sum := q.args(), add.args()
	sum.r, sum.ldr = address(unsafe.Pointer(&add.R[0])), int32(add.LDR)
	convU8(w.handle, &dst[0], int32(ldd), &a[0], int32(lda), int32(segStride), int32(m), &args, &sum)
	runtime.KeepAlive(q)
	runtime.KeepAlive(add)
}

func gemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	if !w.lease.with() {
		gemvU16Generic(dst, a, w, bias)
		return
	}
	hostGemv(w.handle, &dst[0], &a[0], unsafe.SliceData(bias))
}

func depthwiseF32(dst, src []float32, d *Depthwise, w *DepthwiseF32, lo, hi float32) {
	depthwiseF32Generic(dst, src, d, w, 0, lo, hi)
}

func depthwiseU8(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant) {
	if !w.lease.with() {
		depthwiseU8Generic(dst, src, d, w, 0, q)
		return
	}
	args, requant := depthwiseArgs{
		rows: int32(d.Rows), width: int32(d.Width), dstStep: int32(d.DstStep), srcStep: int32(d.SrcStep),
		srcStride: int32(d.SrcStride), strideX: int32(d.StrideX), dilationX: int32(d.DilationX),
	}, q.args()
	hostDepthwiseU8(w.handle, &dst[0], &src[0], &args, &requant)
	runtime.KeepAlive(q)
}

// minHostCall is the number of bytes from which a call to the host is worth its crossing, which takes
// as long as some tens of them here.
const minHostCall = 64

func addU8(dst, y, r []uint8, p *Add) {
	if len(dst) < minHostCall || Levels.Current() != cpu.Lent {
		addU8Generic(dst, y, r, p)
		return
	}
	args := p.args()
	hostAdd(&dst[0], &y[0], &r[0], int32(len(dst)), &args)
}

func addF32(dst, a, b []float32) { addF32Generic(dst, a, b) }

func sumRowsU8(dst []uint32, src []uint8, lds, rows int) {
	if len(dst)*rows < minHostCall || Levels.Current() != cpu.Lent {
		sumRowsU8Generic(dst, src, lds, rows)
		return
	}
	hostSumRows(&dst[0], &src[0], int32(lds), int32(rows), int32(len(dst)))
}

func sumRowsF32(dst, src []float32, lds, rows int) { sumRowsF32Generic(dst, src, lds, rows) }
