package predict

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// Recogniser is the middle of an analysis, one thread's memory for it: a prepared picture goes through the network,
// and what comes out becomes an embedding and values. It is not safe for concurrent use; any number of one set may
// run at once. What it computes is said by the set's Base alone, so a guest leaves it to a host that has the same.
type Recogniser struct {
	set     *Set
	session *nn.Session // nil: the host's
	input   [1]nn.Tensor
	scratch Scratch
}

// NewRecogniser makes a recogniser. The set is one of [Load] or [LoadNetwork].
func (s *Set) NewRecogniser() *Recogniser {
	if s.backbone == nil {
		panic("predict: a recogniser of a set that was loaded without its network")
	}
	r := &Recogniser{set: s}
	if s.backbone.elsewhere != 0 {
		return r
	}
	r.session = s.backbone.plan.NewSession()
	in := s.backbone.input
	r.input[0] = nn.Tensor{Type: in.Type, Shape: in.Shape}
	if in.Type == onnx.Float32 {
		r.input[0].F32 = make([]float32, in.Shape[1]*in.Shape[2]*in.Shape[3])
	}
	return r
}

// Shape is what Recognise takes and fills: the side of a picture, and the concepts of the general and the food model.
func (r *Recogniser) Shape() (side, general, food int) {
	return r.set.backbone.size, len(r.set.evaluator.rules), len(r.set.evaluator.food)
}

// Recognise runs the network on a picture and fills e, general and food.
//
//	pix      (side, side, 3) bytes, RGB
//	general  (concepts of the general model)
//	food     (concepts of the food model)
//
// It panics for lengths other than those of Shape, and returns ErrNetwork where the network gives what is no embedding.
func (r *Recogniser) Recognise(pix []byte, e *Embedding, general, food []float32) error {
	bb := r.set.backbone
	if side, g, f := r.Shape(); len(pix) != 3*side*side || len(general) != g || len(food) != f {
		panic("predict: a picture or values of another shape than the recogniser's")
	}
	if bb.elsewhere != 0 {
		if !recogniseElsewhere(bb.elsewhere, pix, e, general, food) {
			return ErrNetwork
		}
		return nil
	}
	if t := &r.input[0]; t.Type == onnx.Float32 {
		for i, p := range pix {
			t.F32[i] = float32(p)/127.5 - 1
		}
	} else {
		t.U8 = pix
	}
	res, err := r.session.Run(r.input[:])
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if *e, err = NewEmbedding(res[bb.embedding].F32); err != nil {
		return err
	}
	return r.set.evaluator.values(general, food, res[bb.logits].F32, e, &r.scratch)
}
