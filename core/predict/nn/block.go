package nn

import "slices"

// tiling says when convolutions run as one block, and how much of it at a time. A core's L2 cache is
// 1 to 2 MB where we measure, 256 KB at the least.
type tiling struct {
	worthwhile int // bytes: an inner value smaller than this stays in L2 anyway
	tile       int // bytes of inner rows of one tile, both convolutions' together
}

var defaultTiling = tiling{worthwhile: 1 << 20, tile: 384 << 10}

// block finds expand → depthwise → project, the inverted residual of MobileNetV2, and makes each
// one node that computes a few output rows at a time, so that the wide values between the three
// convolutions never leave the cache:
//
//	x ─ rows ─▶ expand ─▶ [wide rows, kept for the next tile] ─▶ depthwise ─▶ [wide rows] ─▶ project ─▶ + residual
//
// The first may be any convolution without groups, or absent.
func (g *graph) block(t tiling) error {
	prod, users := g.producers(), g.users()
	for i, n := range g.nodes {
		if n.op != "Conv" || !n.matches(pointwisePart) {
			continue
		}
		parts := []*node{n}
		for _, kind := range []part{depthwisePart, expandPart} {
			v := parts[0].in[0]
			p := prod[v]
			if p == nil || p.op != "Conv" || len(users[v]) != 1 || !p.matches(kind) {
				break
			}
			parts = slices.Insert(parts, 0, p)
		}
		if len(parts) < 2 {
			continue
		}
		wide := parts[0].out[0]
		if volume(wide.shape[1:])*wide.typ.Size() < t.worthwhile {
			continue
		}
		made := &node{op: "Block", src: n.src, in: parts[0].in[:1], out: n.out, parts: parts}
		made.fuse.add = n.fuse.add
		g.nodes[i] = made
		prod[n.out[0]] = made
	}
	return nil
}

// part is a role in a block.
type part int

const (
	expandPart part = iota
	depthwisePart
	pointwisePart
)

// matches reports whether convolution n can play a role in a block.
func (n *node) matches(role part) bool {
	w, err := n.window(n.in[0].shape, n.out[0].shape)
	if err != nil || !n.weighted() || (n.q != nil && n.q.out == nil) {
		return false
	}
	switch role {
	case pointwisePart:
		return w.pointwise()
	case depthwisePart:
		return n.depthwise(w) && w.dh == 1
	default:
		return w.group == 1 && w.dw == 1 && n.fuse.add == nil
	}
}

// tile is the working state of a block: wide rows in the order of the picture, of which the
// depthwise convolution reads a window.
type tile struct {
	x, wide, mid *value // mid: depthwise rows
	w            window // the depthwise one
	row          int    // elements of a wide row, its halo included
	rows         int    // output rows per tile
	height       int    // of the wide value
	expand       *product
	from         window // the expanding one
	zero         byte   // what the wide halo holds
}

// blockStep lowers a block.
func (c *compiler) blockStep(n *node) error {
	last := n.parts[len(n.parts)-1]
	middle := n.parts[len(n.parts)-2]
	out, in := n.out[0], middle.in[0]
	want, err := n.padding()
	if err != nil {
		return err
	}
	x := c.pixels(n, n.in[0], want)
	if n.fuse.add != nil {
		n.fuse.add = c.pixels(n, n.fuse.add, padding{})
		last.fuse.add = n.fuse.add
	}
	w, err := middle.window(in.shape, middle.out[0].shape)
	if err != nil {
		return err
	}
	edge, err := middle.padding()
	if err != nil {
		return err
	}
	ch, size := in.shape[1], in.typ.Size()
	width, height := middle.out[0].shape[3], middle.out[0].shape[2]
	t := &tile{x: x, w: w, height: in.shape[2], row: (w.pl + in.shape[3] + w.pr) * ch, zero: edge.fill}
	perRow := (width*ch + w.sh*t.row) * size
	most := max(1, (c.tiling.tile-(w.kh-w.sh)*t.row*size)/perRow)
	tiles := (height + most - 1) / most
	t.rows = (height + tiles - 1) / tiles
	t.mid = scratch(in.typ, t.rows*width*ch)
	temps := []*value{t.mid}
	source, stepRow := x, x.row()
	if len(n.parts) == 3 {
		first := n.parts[0]
		t.from, err = first.window(x.shape, in.shape)
		if err != nil {
			return err
		}
		t.wide = scratch(in.typ, ((t.rows-1)*w.sh+w.kh)*t.row)
		t.expand = c.product(first, x, t.wide, 0, 1, t.from.kh, t.from.kw*x.shape[1])
		t.expand.stepX, t.expand.stepRow = t.from.sw*x.shape[1], t.from.dh*x.row()
		temps = append(temps, t.wide)
		source, stepRow = t.wide, t.row
	}
	rows := c.depthwiseRows(middle, w, t.mid, source, stepRow, width)
	project := c.product(last, t.mid, out, 0, 1, 1, ch)
	project.stepX = ch
	res := n.fuse.add
	run := func(s *Session) {
		for b := range out.shape[0] {
			for y := 0; y < height; y += t.rows {
				now := min(t.rows, height-y)
				if t.expand != nil {
					t.fill(s, b, y, now)
				}
				for i := range now {
					from := i * w.sh * t.row
					if t.expand == nil {
						from = x.under(b, y+i, w)
					}
					rows(s, i*width*ch, from)
				}
				t.project(s, project, out, res, b, y, now)
			}
		}
	}
	c.emit(step{name: n.String(), out: []*value{out}, in: blockReads(x, res), temp: temps, run: run})
	return nil
}

func blockReads(x, res *value) []*value {
	if res == nil {
		return []*value{x}
	}
	return []*value{x, res}
}

// fill brings t.wide to the rows that output rows y…y+now-1 of picture b read, keeping those
// that the tile above computed already.
func (t *tile) fill(s *Session, b, y, now int) {
	first := y*t.w.sh - t.w.pt
	end := (y+now-1)*t.w.sh - t.w.pt + t.w.kh
	kept := 0
	if y > 0 {
		before := t.rows*t.w.sh - t.w.sh + t.w.kh // rows the tile above left
		kept = max(0, t.w.kh-t.w.sh)
		t.keep(s, before-kept, kept)
	}
	size := t.wide.typ.Size()
	bytes := s.mem[t.wide.id]
	ch := t.expand.ldd
	left, right := t.w.pl*ch*size, t.w.pr*ch*size
	for r := first + kept; r < end; r++ {
		at := (r - first) * t.row
		line := bytes[at*size : (at+t.row)*size]
		if r < 0 || r >= t.height {
			setBytes(line, t.zero)
			continue
		}
		setBytes(line[:left], t.zero)
		setBytes(line[len(line)-right:], t.zero)
		t.expand.rows(s, at+t.w.pl*ch, t.x.under(b, r, t.from), 0, (t.row/ch)-t.w.pl-t.w.pr)
	}
}

// keep moves count wide rows from row at to the top.
func (t *tile) keep(s *Session, at, count int) {
	size := t.wide.typ.Size()
	bytes := s.mem[t.wide.id]
	copy(bytes, bytes[at*t.row*size:(at+count)*t.row*size])
}

// project multiplies now rows of t.mid into rows y… of picture b of out.
func (t *tile) project(s *Session, p *product, out, res *value, b, y, now int) {
	width := out.shape[3]
	if out.halo == [4]int{} && (res == nil || res.halo == [4]int{}) {
		r := 0
		if res != nil {
			r = res.at(b, y)
		}
		p.rows(s, out.at(b, y), 0, r, now*width)
		return
	}
	for i := range now {
		r := 0
		if res != nil {
			r = res.at(b, y+i)
		}
		p.rows(s, out.at(b, y+i), i*width*p.stepX, r, width)
	}
}
