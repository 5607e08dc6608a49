package nn

// maxWindow bounds strides, dilations, padding and kernel sides: larger ones serve no picture
// and would overflow the arithmetic on offsets.
const maxWindow = 1 << 12

// window is how a convolution or pool slides over (H, W).
type window struct {
	kh, kw         int // kernel
	sh, sw         int // stride
	dh, dw         int // dilation
	pt, pl, pb, pr int // padding
	group          int
}

// window reads the sliding attributes of n for in and out of shape (N, C, H, W).
// The kernel comes from the weights where n has any.
func (n *node) window(in, out []int) (window, error) {
	if len(in) != 4 || len(out) != 4 {
		return window{}, n.errorf("input of rank %d, want 4", len(in))
	}
	kernel := n.attrInts("kernel_shape")
	if w := n.input(1); n.op == "Conv" && w != nil && len(w.shape) == 4 {
		kernel = []int64{int64(w.shape[2]), int64(w.shape[3])}
	} else if n.op == "Conv" && n.q != nil && len(n.q.shape) == 4 {
		kernel = []int64{int64(n.q.shape[2]), int64(n.q.shape[3])}
	}
	strides, dilations, pads := n.attrInts("strides"), n.attrInts("dilations"), n.attrInts("pads")
	if strides == nil {
		strides = []int64{1, 1}
	}
	if dilations == nil {
		dilations = []int64{1, 1}
	}
	if pads == nil {
		pads = []int64{0, 0, 0, 0}
	}
	if len(kernel) != 2 || len(strides) != 2 || len(dilations) != 2 || len(pads) != 4 {
		return window{}, n.errorf("kernel %v, strides %v, dilations %v, pads %v", kernel, strides, dilations, pads)
	}
	w := window{
		int(kernel[0]), int(kernel[1]), int(strides[0]), int(strides[1]),
		int(dilations[0]), int(dilations[1]),
		int(pads[0]), int(pads[1]), int(pads[2]), int(pads[3]), n.attrInt("group", 1),
	}
	switch n.attrText("auto_pad", "NOTSET") {
	case "VALID":
		w.pt, w.pl, w.pb, w.pr = 0, 0, 0, 0
	case "SAME_UPPER":
		w.pt, w.pb = same(in[2], out[2], w.kh, w.sh, w.dh)
		w.pl, w.pr = same(in[3], out[3], w.kw, w.sw, w.dw)
	case "SAME_LOWER":
		w.pb, w.pt = same(in[2], out[2], w.kh, w.sh, w.dh)
		w.pr, w.pl = same(in[3], out[3], w.kw, w.sw, w.dw)
	}
	for _, x := range []int{w.kh, w.kw, w.sh, w.sw, w.dh, w.dw, w.pt + 1, w.pl + 1, w.pb + 1, w.pr + 1} {
		if x < 1 || x > maxWindow {
			return window{}, n.errorf("kernel %v, strides %v, dilations %v, pads %v", kernel, strides, dilations, pads)
		}
	}
	return w, nil
}

// same splits the padding of auto_pad SAME along one dimension; second is the larger half.
func same(in, out, k, stride, dilation int) (first, second int) {
	total := max(0, (out-1)*stride+(k-1)*dilation+1-in)
	return total / 2, total - total/2
}

// pointwise reports a 1×1 convolution without stride or padding: a matrix product over pixels.
func (w window) pointwise() bool {
	return w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.pt+w.pl+w.pb+w.pr == 0 && w.group == 1
}
