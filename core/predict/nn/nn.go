// Package nn runs a network on one thread, in integers or in float32.
//
//	plan file ── Read ──▶ Network ── Compile ──▶ Plan (weights packed, strides fixed, arena mapped)
//	            ▲            │                     │
//	            └─ Marshal ──┘                     ▼ NewSession
//	                                            Session ── Run ──▶ outputs
//
// A [Network] is a list of steps: convolutions, sums, a mean over the pixels, products. Package models/compile makes a network from an
// ONNX file; a plan file stores one. A [Plan] is immutable and shared. A [Session] is one thread's arena; NewSession allocates it in one
// piece. [Session.Run] executes the steps and allocates nothing.
//
// Shapes are (N, C, H, W) in a network, as in ONNX. In memory, values of rank four are (N, H, W, C). If the next convolution pads, the
// value already has a border, so that no kernel handles padding. The picture that Run takes has the same order.
//
// Integers have the rounding that core/predict/nn/kernel defines, so a network in integers gives the same bytes on every machine.
// Float results agree between machines to rounding only: kernels sum in different orders and fuse multiply and add where the
// processor does. Expect differences of 1e-5 relative to the largest value. The bake measures ranges in floats; bundles contain integers.
// The host must be little-endian, as all our Go targets are.
package nn

import (
	"errors"
	"fmt"
)

// ErrFormat is returned by Read for bytes that are not a plan file, and by a Network for a node that does not fit its operands.
var ErrFormat = errors.New("malformed plan")

// ErrUnsupported is returned by Compile for a valid network that this package does not run, and by [Session.Cells] for a plan
// without a map. The message names the node.
var ErrUnsupported = errors.New("network not supported in this form")

// ErrMemory is returned by Compile when the plan would need more memory than Options allow.
var ErrMemory = errors.New("network needs more memory than allowed")

// ErrWork is returned by Compile when one run would take more multiply-adds than Options allow.
var ErrWork = errors.New("network needs more work than allowed")

// ErrInput is returned by Run for a tensor whose type or shape differs from the plan's.
var ErrInput = errors.New("input does not fit the network")

// Options limit a plan. The zero value selects the defaults.
type Options struct {
	// Memory bounds the bytes of packed weights and one session's arena together; 0 means 1 GiB. Compile checks it before it allocates.
	Memory int64

	// Work bounds the multiply-adds of one run; 0 means 2^36, two hundred times those of the default network. A node without weights
	// counts the elements that it reads. A run is never interrupted, so this bounds its time.
	Work int64

	tiling *tiling // nil: defaultTiling; tests make blocks of small networks
}

func (o Options) orDefault() Options {
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Work == 0 {
		o.Work = 1 << 36
	}
	return o
}

func (o Options) blocks() tiling {
	if o.tiling != nil {
		return *o.tiling
	}
	return defaultTiling
}

// Type is the type of a value's elements.
type Type uint8

// Types of values.
const (
	Float32 Type = 1 + iota
	Uint8
	Uint16 // sums of bytes over the pixels
	uint32s
	int64s
)

var sizes = [...]int{Float32: 4, Uint8: 1, Uint16: 2, uint32s: 4, int64s: 8}

// Size returns the bytes of one element.
func (t Type) Size() int { return sizes[t] }

func (t Type) String() string {
	switch t {
	case Float32:
		return "float32"
	case Uint8:
		return "uint8"
	case Uint16:
		return "uint16"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Tensor is a dense row-major array. Only the field of its Type is set.
type Tensor struct {
	Type  Type
	Shape []int
	F32   []float32
	U8    []uint8
	U16   []uint16
}

// Len returns the number of elements in an array of this Shape.
func (t *Tensor) Len() int { return volume(t.Shape) }

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
