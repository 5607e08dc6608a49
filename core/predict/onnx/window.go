package onnx

import (
	"fmt"
	"math"
)

// Window is the resolved geometry of a convolution or pool. All lists have one element per
// spatial dimension, Pad has two: all begins, then all ends, as in the schema.
type Window struct {
	Kernel, Stride, Dilation []int
	Pad                      []int
	Out                      []int // spatial dimensions of the result
}

// Window resolves kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of a Conv, MaxPool
// or AveragePool node for an input of shape in (N, C, spatial...). kernel is the spatial shape of the
// weights, nil for a pool.
//
//	out = ⌊(in + begin + end - ((kernel-1)·dilation + 1)) / stride⌋ + 1
//
// With ceil_mode the quotient is rounded up, but a window that would start in the padding at the end
// is left out. The error wraps ErrShape or ErrOperator.
func (n *Node) Window(in, kernel []int) (Window, error) {
	dims := len(in) - 2
	if dims < 1 {
		return Window{}, fmt.Errorf("%w: a window on %v", ErrShape, in)
	}
	w := Window{Out: make([]int, dims)}
	var err error
	if w.Kernel, err = n.perDim("kernel_shape", dims, 1, kernel); err != nil {
		return w, err
	}
	for i := range kernel {
		if w.Kernel[i] != kernel[i] {
			return w, fmt.Errorf("%w: kernel_shape %v for weights %v", ErrShape, w.Kernel, kernel)
		}
	}
	ones := make([]int, dims)
	for i := range ones {
		ones[i] = 1
	}
	if w.Stride, err = n.perDim("strides", dims, 1, ones); err != nil {
		return w, err
	}
	if w.Dilation, err = n.perDim("dilations", dims, 1, ones); err != nil {
		return w, err
	}
	if w.Pad, err = n.perDim("pads", 2*dims, 0, make([]int, 2*dims)); err != nil {
		return w, err
	}
	mode := n.Text("auto_pad", "NOTSET")
	for i := range dims {
		if err := w.resolve(i, in[2+i], mode, n.Int("ceil_mode", 0) != 0); err != nil {
			return w, err
		}
	}
	return w, nil
}

// perDim returns an integer list attribute of the given length, each element at least least.
func (n *Node) perDim(name string, length int, least int64, absent []int) ([]int, error) {
	v := n.Ints(name, nil)
	if v == nil {
		if absent == nil {
			return nil, fmt.Errorf("%w: %s is missing", ErrFormat, name)
		}
		return append([]int{}, absent...), nil
	}
	if len(v) != length {
		return nil, fmt.Errorf("%w: %s has %d elements, want %d", ErrShape, name, len(v), length)
	}
	out := make([]int, length)
	for i, x := range v {
		if x < least || x > math.MaxInt32 {
			return nil, fmt.Errorf("%w: %d in %s", ErrShape, x, name)
		}
		out[i] = int(x)
	}
	return out, nil
}

// resolve fills Pad and Out of spatial dimension i. Every number is at most 2^31, so 64 bits hold the sums and products.
func (w *Window) resolve(i, in int, mode string, ceil bool) error {
	size, stride := int64(in), int64(w.Stride[i])
	if w.Kernel[i] < 1 {
		return fmt.Errorf("%w: a window of %d", ErrShape, w.Kernel[i])
	}
	span := int64(w.Kernel[i]-1)*int64(w.Dilation[i]) + 1
	begin, end := &w.Pad[i], &w.Pad[len(w.Out)+i]
	switch mode {
	case "NOTSET", "":
	case "VALID":
		*begin, *end = 0, 0
	case "SAME_UPPER", "SAME_LOWER":
		out := (size + stride - 1) / stride
		total := max(0, (out-1)*stride+span-size)
		if total > math.MaxInt32 {
			return fmt.Errorf("%w: padding of %d", ErrShape, total)
		}
		*begin, *end = int(total/2), int(total-total/2)
		if mode == "SAME_LOWER" {
			*begin, *end = *end, *begin
		}
	default:
		return fmt.Errorf("%w: auto_pad %q", ErrOperator, mode)
	}
	room := size + int64(*begin) + int64(*end) - span
	if size == 0 || room < 0 {
		return fmt.Errorf("%w: a window of %d on %d", ErrShape, span, in)
	}
	out := room/stride + 1
	if ceil && room%stride != 0 && out*stride < size+int64(*begin) {
		out++
	}
	d, err := dimension(out)
	w.Out[i] = d
	return err
}
