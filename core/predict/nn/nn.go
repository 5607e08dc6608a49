// Package nn compiles an ONNX graph into a plan and runs it on one thread, in float32 and,
// where the graph is in QDQ form, in integers.
//
//	onnx.Graph ─ load ─▶ nodes ─ quantise ─▶ integer nodes ─ fuse ─▶ conv+bias+act+residual
//	                                                                        │
//	            Session ◀─ arena ◀─ steps (weights packed, strides fixed) ◀─ lower
//
// A [Plan] is immutable and shared; a [Session] is one thread's arena, taken in one piece when
// it is made. [Session.Run] walks the steps and allocates nothing.
//
// Shapes are ONNX's, (N, C, H, W), everywhere in this package's interface. Inside, values of
// rank four lie as (N, H, W, C), with a halo already around them where the next convolution
// pads, so that no kernel knows of borders. Operators that move data (Transpose, Reshape,
// Concat, Slice) are one strided copy, or none where the bytes already lie right.
//
// Integers follow the QDQ form of ONNX: DequantizeLinear → operator → QuantizeLinear is one
// integer operator with the rounding that core/predict/nn/kernel defines, so that a network
// quantised throughout gives the same bytes on every machine. int8 activations are kept as
// uint8, shifted by 128. An operator with no integer form here runs in float32 between its
// DequantizeLinear and QuantizeLinear, which is what the graph says.
//
// Float results agree between machines to rounding only: kernels sum in different orders and
// fuse multiply and add where the processor does. Expect 1e-5 relative to the largest value.
//
// The host must be little-endian, as every target of Go that we build for is.
package nn

import (
	"errors"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// ErrUnsupported is returned by Compile for a graph that is valid but uses an operator in a way
// this package does not run. The message names node and operator.
var ErrUnsupported = errors.New("operator not supported in this form")

// ErrMemory is returned by Compile when the plan would need more memory than Options allow.
var ErrMemory = errors.New("network needs more memory than allowed")

// ErrWork is returned by Compile when one run would take more multiply-adds than Options allow.
var ErrWork = errors.New("network needs more work than allowed")

// ErrInput is returned by Run for a tensor whose type or shape is not what the plan takes.
var ErrInput = errors.New("input does not fit the network")

// Options say how to compile. The zero value is good.
type Options struct {
	// Shapes fixes the shape of graph inputs by name, where the graph leaves dimensions open.
	// An open first dimension without an entry is 1.
	Shapes map[string][]int

	// InputNHWC names a graph input of rank four that Run takes as (N, H, W, C) bytes or
	// floats, as a picture lies in memory. Inputs reports the shape in that order.
	InputNHWC string

	// Memory bounds the bytes of packed weights, constants and one session's arena together;
	// 0 means 1 GiB. It is checked before any of it is taken.
	Memory int64

	// Work bounds the multiply-adds of one run; 0 means 2^36, two hundred times the default
	// network's. A run is never interrupted, so this bounds its time.
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

// Tensor is a dense row-major array. Exactly the field of its Type is set.
type Tensor struct {
	Type  onnx.DType
	Shape []int
	F32   []float32
	U8    []uint8
	I8    []int8
	U16   []uint16
	I32   []int32
	I64   []int64
}

// Len returns the number of elements that Shape asks for.
func (t *Tensor) Len() int { return volume(t.Shape) }

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
