package nn

import "fmt"

// maxWindow is the maximum of strides, dilations and kernel sides; padding is below it. Larger
// values are useless for pictures and would overflow the arithmetic on offsets.
const maxWindow = 1 << 12

// window is the geometry of a convolution over (H, W).
type window struct {
	kh, kw         int // height and width of the kernel
	sh, sw         int // stride down and across
	dh, dw         int // dilation down and across
	pt, pl, pb, pr int // padding at the top, left, bottom and right
	group          int // number of groups
}

// window returns the geometry of Conv n. It returns an error for values out of range.
func (n *Node) window() (window, error) {
	w := window{
		n.Shape[2], n.Shape[3], n.Stride[0], n.Stride[1], n.Dilation[0], n.Dilation[1],
		n.Pad[0], n.Pad[1], n.Pad[2], n.Pad[3], n.Group,
	}
	for _, x := range []int{w.kh, w.kw, w.sh, w.sw, w.dh, w.dw, w.pt + 1, w.pl + 1, w.pb + 1, w.pr + 1} {
		if x < 1 || x > maxWindow {
			return window{}, fmt.Errorf("weights %v, stride %v, dilation %v, padding %v", n.Shape, n.Stride, n.Dilation, n.Pad)
		}
	}
	if w.group < 1 {
		return window{}, fmt.Errorf("%d groups", w.group)
	}
	return w, nil
}

// pointwise reports whether the convolution is 1×1 with stride 1, without padding or groups: a matrix product over pixels.
func (w window) pointwise() bool {
	return w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.pt+w.pl+w.pb+w.pr == 0 && w.group == 1
}

// adjacent reports whether the convolution is 3×3 with stride and dilation 1, without groups.
func (w window) adjacent() bool {
	return w.kh == 3 && w.kw == 3 && w.sh == 1 && w.sw == 1 && w.dh == 1 && w.dw == 1 && w.group == 1
}
