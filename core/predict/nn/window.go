package nn

import "fmt"

// maxWindow bounds strides, dilations, padding and kernel sides: larger ones serve no picture
// and would overflow the arithmetic on offsets.
const maxWindow = 1 << 12

// window is how a convolution slides over (H, W).
type window struct {
	kh, kw         int // kernel
	sh, sw         int // stride
	dh, dw         int // dilation
	pt, pl, pb, pr int // padding
	group          int
}

// window returns how Conv n slides.
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

// pointwise reports a 1×1 convolution without stride or padding: a matrix product over pixels.
func (w window) pointwise() bool {
	return w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.pt+w.pl+w.pb+w.pr == 0 && w.group == 1
}

// adjacent reports a 3×3 convolution without stride, dilation or groups.
func (w window) adjacent() bool {
	return w.kh == 3 && w.kw == 3 && w.sh == 1 && w.sw == 1 && w.dh == 1 && w.dw == 1 && w.group == 1
}
