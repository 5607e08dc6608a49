package nn

import "slices"

// tiling holds the limits that decide which convolutions run as one block and how large a block's tiles are. The L2 cache of a core has 1
// to 2 MB on the machines that we measure, and at least 256 KB.
type tiling struct {
	depthwise bounds // of blocks with a depthwise convolution, which keep rows for the next tile
	full      bounds // of other blocks
}

// bounds are sizes in bytes.
type bounds struct {
	worthwhile int // minimum size of a block's inner value; a smaller value stays in L2 anyway
	tile       int // target size of one tile's inner rows, summed over the convolutions
}

var defaultTiling = tiling{depthwise: bounds{64 << 10, 384 << 10}, full: bounds{256 << 10, 64 << 10}}

// bounds returns the bounds of a block in which n is the convolution that reads the wide value.
func (t tiling) bounds(n *node) bounds {
	if n.depthwise() {
		return t.depthwise
	}
	return t.full
}

// block finds the inverted residuals of MobileNetV2 and of MobileNetEdgeTPU and makes each one node. Such a node computes a
// few output rows at a time, so that the wide values between its convolutions never leave the cache:
//
//	x ─ rows ─▶ expand ─▶ [wide rows, kept for the next tile] ─▶ depthwise ─▶ [wide rows] ─▶ project ─▶ + residual
//	x ─ rows ─▶ expand k×k ─▶ [wide rows] ─▶ project ─▶ + residual
//
// Before a depthwise convolution, the first convolution may be absent or any convolution without groups.
func (g *graph) block(t tiling) {
	readers, by := g.readers(), make(map[*value]*node)
	for i, n := range g.nodes {
		by[n.out] = n
		if n.Kind != Conv || !n.matches(pointwisePart) {
			continue
		}
		parts := []*node{n}
		for _, kind := range []part{depthwisePart, expandPart} {
			v := parts[0].in
			if p := by[v]; p != nil && p.Kind == Conv && readers[v] == 1 && p.matches(kind) {
				parts = slices.Insert(parts, 0, p)
			}
		}
		first := parts[0]
		if first == n || first.matches(pointwisePart) && parts[1] == n {
			continue // two pointwise convolutions do not form a block; the second may begin one
		}
		wide, next := first.out, parts[1]
		if first.depthwise() {
			next = first
		}
		if volume(wide.shape[1:])*wide.typ.Size() < t.bounds(next).worthwhile {
			continue
		}
		blockNode := &node{Node: Node{Kind: tiled}, in: first.in, add: n.add, out: n.out, parts: parts}
		g.nodes[i], by[n.out] = blockNode, blockNode
	}
	g.sweep()
}

// part is the role of a convolution in a block.
type part int

const (
	expandPart part = iota
	depthwisePart
	pointwisePart
)

// matches reports whether convolution n can play a role in a block.
func (n *node) matches(role part) bool {
	w := n.slide
	switch role {
	case pointwisePart:
		return w.pointwise()
	case depthwisePart:
		return n.depthwise() && w.dh == 1
	default:
		return w.group == 1 && w.dw == 1 && n.add == nil
	}
}

// tile computes a block, a few output rows at a time. It stores the wide rows in the order of the picture, and the next convolution reads
// windows of them.
type tile struct {
	x, out, res *value // res may be nil
	wide, mid   *value // expanded rows, nil without an expanding part; depthwise rows, nil without a depthwise part

	from, w       window // windows of the expanding convolution and of the next one
	height        int    // rows of the expanded value
	row           int    // elements of a wide row, its halo included
	rows          int    // output rows per tile
	zero          byte   // value of the bytes in the halo of the wide rows
	dense         bool   // out and res have no halo
	expand, point *product
	depthwise     func(s *Session, o, i, rows int) // nil without a depthwise part
}

// blockStep emits the step of block n.
func (c *compiler) blockStep(n *node) {
	t := &tile{x: n.in, out: n.out, res: n.add}
	in := []*value{t.x}
	if t.res != nil {
		in = append(in, t.res)
	}
	var temps []*value
	parts, rows := n.parts, t.x
	if !parts[0].depthwise() {
		parts = parts[1:]
	}
	next := parts[0]
	ch, row := next.in.shape[1], t.x.row()
	c.sizeTile(t, next)
	if first := n.parts[0]; first != next {
		t.from = first.slide
		t.wide = scratch(t.x.typ, ((t.rows-1)*t.w.sh+t.w.kh)*t.row)
		t.expand = c.product(first, t.x, t.wide, 0, 1, t.from.kh, t.from.kw*t.x.shape[1])
		t.expand.stepX, t.expand.stepRow = t.from.sw*t.x.shape[1], t.from.dh*t.x.row()
		temps, rows, row = append(append(temps, t.wide), t.expand.temps()...), t.wide, t.row
	}
	if next.depthwise() {
		t.mid = scratch(t.x.typ, t.rows*t.out.shape[3]*ch)
		t.depthwise = c.depthwiseRows(next, t.w, t.mid, rows, t.w.depthwise(t.out.shape[3], t.out.shape[3]*ch, row))
		temps, rows = append(temps, t.mid), t.mid
	}
	t.point = c.product(n.parts[len(n.parts)-1], rows, t.out, 0, 1, 1, ch)
	t.point.stepX = ch
	t.dense = t.out.halo == [4]int{} && (t.res == nil || t.res.halo == [4]int{})
	c.emit(step{name: n.String(), out: []*value{n.out}, in: in, temp: temps, run: t.run})
}

// sizeTile sets the geometry of t. n is the convolution that reads the wide value.
func (c *compiler) sizeTile(t *tile, n *node) {
	wide, out, w := n.in, t.out, n.slide
	ch, size := wide.shape[1], wide.typ.Size()
	t.w, t.height, t.zero = w, wide.shape[2], wide.fill()
	t.row = (w.pl + wide.shape[3] + w.pr) * ch
	perRow := w.sh * t.row * size
	if n.depthwise() {
		perRow += out.shape[3] * ch * size
	}
	maxRows := max(1, (c.options.blocks().bounds(n).tile-(w.kh-w.sh)*t.row*size)/perRow)
	tiles := (out.shape[2] + maxRows - 1) / maxRows
	t.rows = (out.shape[2] + tiles - 1) / tiles
	if !n.depthwise() {
		t.rows = min((t.rows+3)&^3, out.shape[2]) // kernels compute four rows at a time if they can
	}
}

// run computes all output rows of the block.
func (t *tile) run(s *Session) {
	height := t.out.shape[2]
	for b := range t.out.shape[0] {
		for y := 0; y < height; y += t.rows {
			now := min(t.rows, height-y)
			from := 0
			if t.expand != nil {
				t.fill(s, b, y, now)
			} else {
				from = t.x.under(b, y, t.w)
			}
			if t.depthwise != nil {
				t.depthwise(s, 0, from, now)
			}
			t.point.lines(s, t.out, t.res, b, y, now, t.dense, 0)
		}
	}
}

// fill sets t.wide to the wide rows that output rows y…y+now-1 of picture b read. It keeps the rows that the tile above has already
// computed.
func (t *tile) fill(s *Session, b, y, now int) {
	first := y*t.w.sh - t.w.pt
	end := (y+now-1)*t.w.sh - t.w.pt + t.w.kh
	overlap := 0
	if y > 0 {
		before := t.rows*t.w.sh - t.w.sh + t.w.kh // number of rows in t.wide from the tile above
		overlap = max(0, t.w.kh-t.w.sh)
		t.keep(s, before-overlap, overlap)
	}
	size := t.wide.typ.Size()
	bytes := s.mem[t.wide.id]
	ch := t.expand.ldd
	left, right := t.w.pl*ch*size, t.w.pr*ch*size
	for r := first + overlap; r < end; r++ {
		at := (r - first) * t.row
		line := bytes[at*size : (at+t.row)*size]
		if r < 0 || r >= t.height {
			setBytes(line, t.zero)
			continue
		}
		setBytes(line[:left], t.zero)
		setBytes(line[len(line)-right:], t.zero)
	}
	r := max(first+overlap, 0)
	if rows := min(end, t.height) - r; rows > 0 {
		t.expand.block(s, (r-first)*t.row+t.w.pl*ch, t.row, t.x.under(b, r, t.from), t.from.sh*t.x.row(), rows, (t.row/ch)-t.w.pl-t.w.pr)
	}
}

// keep moves count wide rows from row at to the start of t.wide.
func (t *tile) keep(s *Session, at, count int) {
	size := t.wide.typ.Size()
	bytes := s.mem[t.wide.id]
	copy(bytes, bytes[at*t.row*size:(at+count)*t.row*size])
}
