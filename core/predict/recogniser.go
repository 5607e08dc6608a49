package predict

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// Recogniser is the middle step of an analysis, with the memory of one thread. It runs the network on a prepared picture and turns the
// outputs into an embedding and values. It is not safe for concurrent use, but recognisers of one set may run at the same time. The set's
// Base alone determines the results, so a guest leaves the step to a host that has the same Base.
type Recogniser struct {
	set     *Set
	session *nn.Session // nil: the host runs the network
	input   nn.Tensor
	scratch scratch
}

// NewRecogniser returns a recogniser. The set must come from [Load] or [LoadNetwork].
func (s *Set) NewRecogniser() *Recogniser {
	if s.backbone == nil {
		panic("predict: NewRecogniser needs a set that was loaded with its network")
	}
	r := &Recogniser{set: s}
	if s.backbone.hostHandle != 0 {
		return r
	}
	r.session = s.backbone.plan.NewSession()
	in := s.backbone.input
	r.input = nn.Tensor{Type: in.Type, Shape: in.Shape}
	if in.Type == nn.Float32 {
		r.input.F32 = make([]float32, in.Shape[1]*in.Shape[2]*in.Shape[3])
	}
	return r
}

// Shape returns the side of a picture that Recognise takes, and the numbers of concepts of the general and the food model that it fills.
func (r *Recogniser) Shape() (side, general, food int) {
	return r.set.backbone.size, len(r.set.evaluator.rules), len(r.set.evaluator.food)
}

// Recognise runs the network on a picture and fills e, general and food.
//
//	pix      (side, side, 3) bytes, RGB
//	general  (concepts of the general model)
//	food     (concepts of the food model)
//
// It panics for lengths other than those of Shape. It returns ErrNetwork if the network's output is not an embedding.
func (r *Recogniser) Recognise(pix []byte, e *Embedding, general, food []float32) error {
	bb := r.set.backbone
	if side, g, f := r.Shape(); len(pix) != 3*side*side || len(general) != g || len(food) != f {
		panic("predict: the picture or the values do not have the recogniser's shape")
	}
	if bb.hostHandle != 0 {
		if !recogniseAtHost(bb.hostHandle, pix, e, general, food) {
			return ErrNetwork
		}
		return nil
	}
	r.feed(pix)
	res, err := r.session.Run(r.input)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if *e, err = NewEmbedding(res[bb.embedding].F32); err != nil {
		return err
	}
	return r.set.evaluator.values(general, food, res[bb.logits].F32, e, &r.scratch)
}

// feed makes pix the session's input.
func (r *Recogniser) feed(pix []byte) {
	t := &r.input
	if t.Type != nn.Float32 {
		t.U8 = pix
		return
	}
	for i, p := range pix {
		t.F32[i] = float32(p)/127.5 - 1
	}
}

// CellsShape returns the size of the map that Cells evaluates, or 0 and 0 if the network has none.
func (r *Recogniser) CellsShape() (height, width int) {
	if bb := r.set.backbone; bb.hostHandle != 0 {
		return cellsAtHost(bb.hostHandle, nil, nil)
	}
	return r.set.backbone.plan.CellsShape()
}

// Classes returns the number of logits.
func (r *Recogniser) Classes() int { return r.set.backbone.classes }

// Cells runs the network on a picture cell by cell and fills rows in the layout of [Cells].
//
//	pix   (side, side, 3) bytes, RGB
//	rows  (height·width, classes + Dim), height and width being those of CellsShape
//
// It panics for other lengths. It returns ErrNetwork if the network's output is not finite.
func (r *Recogniser) Cells(pix []byte, rows []float32) error {
	bb := r.set.backbone
	height, width := r.CellsShape()
	row := bb.classes + Dim
	if len(pix) != 3*bb.size*bb.size || len(rows) != height*width*row {
		panic("predict: the picture or the rows do not have the recogniser's shape")
	}
	if bb.hostHandle != 0 {
		if h, _ := cellsAtHost(bb.hostHandle, pix, rows); h == 0 {
			return ErrNetwork
		}
		return nil
	}
	r.feed(pix)
	err := r.session.Cells(r.input, func(y, x int, out []nn.Tensor) {
		to := rows[(y*width+x)*row:][:row]
		copy(to, out[bb.logits].F32)
		copy(to[bb.classes:], out[bb.embedding].F32)
	})
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}
