package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/sync/selftest"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// ErrSelfTest is returned for a module that does not compute what it should.
var ErrSelfTest = errors.New("module has failed its self-test")

// Test has a module show, on an instance of its own and before it serves, that it folds a log to the state that this
// program folds it to, and sees in a picture what the module that serves sees in it. Nothing of it is kept.
// Errors: ErrSelfTest, ErrDead, and what keeps the module from being opened.
func (f *Fleet) Test(ctx context.Context, rt *Runtime) error {
	want, err := f.shown(ctx, f.Runtime())
	if err != nil {
		return fmt.Errorf("the module that serves: %w", err)
	}
	got, err := f.shown(ctx, rt)
	if err != nil {
		return err
	}
	if want.state, err = selftest.Digest(selftest.Log()); err != nil {
		return err
	}
	return got.differs(&want)
}

// shown is what a module has shown.
type shown struct {
	state   [32]byte // digest of what it folds selftest's log to
	picture predict.Analysis
}

// shown opens an instance of a module and asks it.
func (f *Fleet) shown(ctx context.Context, rt *Runtime) (s shown, err error) {
	settings := f.o.Settings
	settings.Role, settings.Store = abi.Analyser, abi.StoreMemory
	lent := f.o.Lent
	lent.Store, lent.Hosted, lent.Blobs, lent.Register, lent.Files = nil, nil, nil, nil, nil // what is tried gets at nothing
	in, err := rt.Open(ctx, lent, settings)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	digest, err := in.Ask(ctx, abi.Question{What: abi.AskFold, Name: string(selftest.Log())})
	if err != nil && rt == f.Runtime() { // it may be of before there was the question, and is not on trial
		digest, err = nil, in.Dead()
	}
	if err != nil {
		return s, fmt.Errorf("%w: fold: %w", ErrSelfTest, err)
	}
	copy(s.state[:], digest)
	r := in.Analyse(ctx, &api.Job{Data: testPicture(), Want: predict.WantConcepts | predict.WantThumb})
	if r.Err != nil {
		return s, fmt.Errorf("%w: picture: %w", ErrSelfTest, errors.Join(r.Err, in.Dead()))
	}
	s.picture = r.Analysis
	return s, nil
}

// How far two modules may differ on a picture: another order of sums is none.
const (
	leastCosine = 0.999
	mostApart   = 0.01 // of a value in 0…1
)

// differs says where a module that is tried differs from what it should show.
func (s *shown) differs(want *shown) error {
	a, b := &s.picture, &want.picture
	switch {
	case s.state != want.state:
		return fmt.Errorf("%w: it folds a log to %.8x, and that is %.8x", ErrSelfTest, s.state, want.state)
	case a.Has != b.Has || len(a.General) != len(b.General) || len(a.Food) != len(b.Food):
		return fmt.Errorf("%w: it sees other things in a picture", ErrSelfTest)
	case !(a.Embedding.Cosine(&b.Embedding) >= leastCosine):
		return fmt.Errorf("%w: the embeddings of a picture have cosine %.4f", ErrSelfTest, a.Embedding.Cosine(&b.Embedding))
	}
	for i, v := range a.General {
		if !(max(v-b.General[i], b.General[i]-v) <= mostApart) {
			return fmt.Errorf("%w: it gives a concept of a picture %.3f, and it has %.3f", ErrSelfTest, v, b.General[i])
		}
	}
	return nil
}

// testPicture is a picture with large and small things in it, as PNG.
func testPicture() []byte {
	const side = 256
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			c := color.RGBA{R: uint8(x), G: uint8(y), B: uint8(x * y / side), A: 255}
			if dx, dy := x-160, y-90; dx*dx+dy*dy < 50*50 {
				c = color.RGBA{R: 220, G: uint8(40 + x/8), B: 30, A: 255}
			}
			if x/8%4 == 0 && y > 180 {
				c = color.RGBA{R: 250, G: 250, B: 250, A: 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}
