package kernels

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/sightline-dev/sightline/wasm/abi"
)

// wild ends the instance.
func wild() { panic(abi.ErrRange) }

// count returns a parameter. If it is negative, it ends the instance.
func count(v uint64) int {
	n := int32(v)
	if n < 0 {
		wild()
	}
	return int(n)
}

func float(v uint64) float32 { return math.Float32frombits(uint32(v)) }

// times returns a·b. Both must not be negative. If the product exceeds 2^48, far beyond any memory, times ends the instance.
func times(a, b int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > 1<<48 {
		wild()
	}
	return int(lo)
}

// work ends the instance if the work of a call, a·b·c, exceeds [Options.Work].
func (in *Instance) work(a, b, c int) {
	if int64(times(times(a, b), c)) > in.native.o.Work {
		wild()
	}
}

// extent returns the number of elements from the start of the first to the end of the last of n rows. Each row has width elements, and
// starts step elements after the previous one.
func extent(n, step, width int) int { return times(n-1, step) + width }

// bytes returns the n bytes at an address of the guest's memory. If they are not within the memory, it ends the instance.
func (in *Instance) bytes(at uint64, n int) []byte {
	from := uint64(uint32(at))
	if uint64(n) > uint64(len(in.mem)) || from > uint64(len(in.mem))-uint64(n) {
		wild()
	}
	return in.mem[from : from+uint64(n) : from+uint64(n)]
}

// element is a type of numbers that kernels read and write. Addresses of elements have their natural alignment.
type element interface {
	uint8 | int8 | uint16 | int16 | int32 | uint32 | int64 | float32 | float64
}

// view returns the n elements at an address, nil for n = 0. If they are not within the memory or not aligned, it ends the instance.
func view[T element](in *Instance, at uint64, n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	b := in.bytes(at, times(n, size))
	if int(uint32(at))%size != 0 {
		wild()
	}
	return cast[T](b)
}

// onward returns the elements from an address to the end of memory, at least n. It is for kernels that read whole vectors beyond the n
// elements; the values there do not matter.
func onward[T element](in *Instance, at uint64, n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	in.bytes(at, times(n, size))
	if int(uint32(at))%size != 0 {
		wild()
	}
	b := in.mem[uint32(at):]
	return cast[T](b[:len(b)/size*size])
}

// cast returns b as elements. b must be aligned, and its length must be a multiple of the element's size.
func cast[T element](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(*new(T))))
}

// optional returns view, or nil if the address is 0.
func optional[T element](in *Instance, at uint64, n int) []T {
	if uint32(at) == 0 {
		return nil
	}
	return view[T](in, at, n)
}

// zeroPoint returns a zero point. If it is not a uint8, it ends the instance.
func zeroPoint(v int32) int32 {
	if v < 0 || v > 255 {
		wild()
	}
	return v
}

// clamp returns the bounds of a quantised result. If they are not uint8 or lo exceeds hi, it ends the instance.
func clamp(lo, hi int32) (uint8, uint8) {
	if zeroPoint(lo) > zeroPoint(hi) {
		wild()
	}
	return uint8(lo), uint8(hi)
}

// overlap reports whether the n bytes at address a and the m bytes at address b have a byte in common.
func overlap(a uint64, n int, b uint64, m int) bool {
	return uint64(uint32(a)) < uint64(uint32(b))+uint64(m) && uint64(uint32(b)) < uint64(uint32(a))+uint64(n)
}
