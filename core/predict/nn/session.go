package nn

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// step is one operator of a plan, ready to run: strides, offsets and weights are in run's closure.
type step struct {
	name string // node and operator
	out  []*value
	in   []*value
	temp []*value // scratch, used in this step only
	run  func(s *Session)
}

// Session is one thread's memory for running a plan. It is not safe for concurrent use;
// any number of sessions of one plan may run at once.
type Session struct {
	plan *Plan
	mem  [][]byte // by value id: a slice of the arena, a constant of the plan, or the caller's input
	outs []Tensor
	add  kernel.Add // of the running product; a field here so that it is not allocated
	cell int        // 0, or 1 more than the index of the one pixel that the last Pool reads: see Cells

	// Pause, if not nil, is called before each step. The run continues when it returns.
	Pause func()
}

// NewSession allocates the arena, of Plan.SessionBytes, in one piece.
func (p *Plan) NewSession() *Session {
	s := &Session{plan: p, mem: make([][]byte, len(p.blocks))}
	arena := alignedBytes(p.arena)
	for id, b := range p.blocks {
		if b != nil {
			s.mem[id] = arena[b.offset : b.offset+b.bytes : b.offset+b.bytes]
		}
	}
	for _, v := range p.outs {
		s.outs = append(s.outs, s.output(v))
	}
	return s
}

// Run executes the plan on in, whose type and shape must be those of Plan.Input. Run borrows the tensor until it returns. The result has
// one tensor per Plan.Outputs; it belongs to the session, and the next Run overwrites it. Run allocates nothing.
//
// It returns ErrInput for a tensor of another type or shape.
func (s *Session) Run(in Tensor) ([]Tensor, error) {
	p := s.plan
	defer s.release()
	if err := s.feed(&in); err != nil {
		return nil, err
	}
	s.runSteps(0, len(p.steps))
	return s.outs, nil
}

// runSteps runs the steps from to to-1.
func (s *Session) runSteps(from, to int) {
	for i := from; i < to; i++ {
		if s.Pause != nil {
			s.Pause()
		}
		s.runStep(&s.plan.steps[i])
	}
}

func (s *Session) runStep(st *step) {
	for _, v := range st.out {
		if v.halo != [4]int{} {
			s.fillHalo(v)
		}
	}
	st.run(s)
}

// release drops the reference to the caller's tensor.
func (s *Session) release() { s.mem[s.plan.in.id] = nil }

// feed makes t the input of the next steps.
func (s *Session) feed(t *Tensor) error {
	want := &s.plan.input
	if t.Type != want.Type || !slices.Equal(t.Shape, want.Shape) {
		return fmt.Errorf("input %q: %v %v, want %v %v: %w", want.Name, t.Type, t.Shape, want.Type, want.Shape, ErrInput)
	}
	b := t.U8
	if t.Type == Float32 {
		b = bytesOf(t.F32)
	}
	if len(b) != t.Len()*t.Type.Size() {
		return fmt.Errorf("input %q: %d bytes for shape %v: %w", want.Name, len(b), t.Shape, ErrInput)
	}
	s.mem[s.plan.in.id] = b
	return nil
}

// output returns a tensor that shares v's memory.
func (s *Session) output(v *value) Tensor {
	t := Tensor{Type: v.typ, Shape: slices.Clone(v.shape)}
	n := volume(v.shape)
	switch v.typ {
	case Float32:
		t.F32 = data[float32](s, v)[:n:n]
	case Uint8:
		t.U8 = data[uint8](s, v)[:n:n]
	case Uint16:
		t.U16 = data[uint16](s, v)[:n:n]
	}
	return t
}

// data returns v's memory, halo included, as elements of T.
func data[T any](s *Session, v *value) []T {
	b := s.mem[v.root().id]
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func bytesOf[T any](v []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}

// alignedBytes returns n zero bytes that start at a cache line.
func alignedBytes(n int64) []byte {
	b := make([]byte, n+cacheLine)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % cacheLine
	return b[skip : int64(skip)+n]
}

// fillHalo writes the fill value around v's pixels: the rows above and below, and the columns
// between, where the right border of a row and the left of the next are one run of memory.
func (s *Session) fillHalo(v *value) {
	b := s.mem[v.root().id]
	c := v.shape[1] * v.typ.Size()
	h, w := v.shape[2], v.shape[3]
	top, left, bottom, right := v.halo[0], v.halo[1], v.halo[2], v.halo[3]
	row := (left + w + right) * c
	image := (top + h + bottom) * row
	for range v.shape[0] {
		setBytes(b[:top*row+left*c], v.fill())
		for y := top; y < top+h-1; y++ {
			end := y*row + (left+w)*c
			setBytes(b[end:end+(right+left)*c], v.fill())
		}
		setBytes(b[image-bottom*row-right*c:image], v.fill())
		b = b[image:]
	}
}

func setBytes(b []byte, x byte) {
	if x == 0 {
		clear(b)
		return
	}
	eight := uint64(x) * 0x0101010101010101
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, eight)
		b = b[8:]
	}
	for i := range b {
		b[i] = x
	}
}
