package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// pictureTime is how long an analysis may take by the clock, beside what its caller allows.
const pictureTime = 15 * time.Second

// pool are the instances that analyse pictures. There are as many as analyse at once.
type pool struct {
	f *Fleet

	mu     sync.Mutex
	free   []*Instance
	using  int
	over   *sync.Cond // told when using falls to 0
	closed bool
}

func newPool(f *Fleet) *pool {
	p := &pool{f: f}
	p.over = sync.NewCond(&p.mu)
	return p
}

// warm opens n instances, where pictures are going to be analysed by any.
func (p *pool) warm(ctx context.Context, n int) error {
	if p.f.native([32]byte{}) != nil {
		return nil
	}
	for range n {
		in, err := p.open(ctx)
		if err != nil {
			return err
		}
		p.add(in)
	}
	return nil
}

func (p *pool) open(ctx context.Context) (*Instance, error) {
	s := p.f.o.Settings
	s.Role, s.Store, s.App = abi.Analyser, abi.StoreMemory, ""
	return p.f.open(ctx, s)
}

// add takes an instance that was opened elsewhere.
func (p *pool) add(in *Instance) {
	p.mu.Lock()
	p.using++
	p.mu.Unlock()
	p.give(in)
}

// take hands out an instance of the module in force.
func (p *pool) take(ctx context.Context) (*Instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errStopping
	}
	p.using++
	for n := len(p.free); n > 0; n = len(p.free) {
		in := p.free[n-1]
		p.free = p.free[:n-1]
		if in.rt == p.f.Runtime() {
			p.mu.Unlock()
			return in, nil
		}
		p.mu.Unlock()
		p.end(in)
		p.mu.Lock()
	}
	p.mu.Unlock()
	in, err := p.open(ctx)
	if err != nil {
		p.left()
	}
	return in, err
}

// left counts one out that was handed out.
func (p *pool) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.using--; p.using == 0 {
		p.over.Broadcast()
	}
}

func (p *pool) end(in *Instance) {
	if err := p.f.end(in); err != nil {
		p.f.o.Lent.Log.Error("analyser", "error", err)
	}
}

// give takes an instance back. One that is dead, of an old module or no longer wanted is closed.
func (p *pool) give(in *Instance) {
	defer p.left()
	if err := in.Dead(); err != nil {
		p.f.o.Lent.Log.Error("analyser died", "error", err)
		p.end(in)
		return
	}
	p.mu.Lock()
	keep := !p.closed && in.rt == p.f.Runtime()
	if keep {
		p.free = append(p.free, in)
	}
	p.mu.Unlock()
	if !keep {
		p.end(in)
	}
}

// sweep closes the free ones that are of an old module.
func (p *pool) sweep() error {
	p.mu.Lock()
	var old []*Instance
	kept := p.free[:0]
	for _, in := range p.free {
		if in.rt == p.f.Runtime() {
			kept = append(kept, in)
		} else {
			old = append(old, in)
		}
	}
	p.free = kept
	p.mu.Unlock()
	var err error
	for _, in := range old {
		err = errors.Join(err, p.f.end(in))
	}
	return err
}

// bytes is the memory of those that are free.
func (p *pool) bytes() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.free {
		n += in.Bytes()
	}
	return n
}

// close ends all of them, when those that are used have been given back.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	for p.using > 0 {
		p.over.Wait()
	}
	all := p.free
	p.free = nil
	p.mu.Unlock()
	var err error
	for _, in := range all {
		err = errors.Join(err, in.Close())
	}
	return err
}

// Analyser turns pictures into analyses. It is used by one thread at a time.
//
//	the program's own module ──▶ natively: what an instance would do is decode and recognise, in loops that are lent
//	any other                ──▶ on whichever instance is free; it holds none in between
type Analyser struct {
	f       *Fleet
	base    [32]byte
	expired func() bool
	native  *predict.Analyser // nil: there was no use for it yet
}

// NewAnalyser makes an analyser of the network with a base, the newest for zero. Of l only
// Expired counts, where pictures are decoded natively: what a picture may be, the guest knows.
func (f *Fleet) NewAnalyser(base [32]byte, l raster.Limits) *Analyser {
	return &Analyser{f: f, base: base, expired: l.Expired}
}

// Analyse is predict's Analyser's, which does it where the module is made of the same source as the host and
// the host has the network. A guest that dies of a picture costs that picture: the error is api.ErrInternal.
func (a *Analyser) Analyse(picture []byte, c raster.Crop, w predict.Want) (predict.Analysis, error) {
	if n := a.natively(); n != nil {
		return n.Analyse(picture, c, w)
	}
	ctx := context.Context(context.Background())
	if a.expired != nil {
		ctx = expiring{ctx, a.expired}
	}
	in, err := a.f.pool.take(ctx)
	if err != nil {
		return predict.Analysis{}, err
	}
	defer a.f.pool.give(in)
	r := in.Analyse(ctx, &api.Job{Data: picture, Crop: c, Want: w, Base: a.base})
	return r.Analysis, r.Err
}

// natively is the host's own analyser; nil where pictures are the module's to analyse.
func (a *Analyser) natively() *predict.Analyser {
	if a.native != nil && a.f.Runtime().own {
		return a.native
	}
	if set := a.f.native(a.base); set != nil {
		a.native = set.NewAnalyser(raster.Limits{Expired: a.expired})
		return a.native
	}
	return nil
}

// native is the network with a base, the newest for zero, where the host gives the module's answers; else nil.
func (f *Fleet) native(base [32]byte) *predict.Set {
	rt := f.Runtime()
	if !rt.own {
		return nil
	}
	if base == [32]byte{} {
		base = f.o.Models.Base()
	}
	return rt.network(&f.o.Lent, base)
}

// expiring is a context that has ended when its work has had its time, which is not told by the
// clock: whoever works under it asks from time to time.
type expiring struct {
	context.Context
	expired func() bool
}

// Err implements [context.Context].
func (e expiring) Err() error {
	if e.expired() {
		return context.DeadlineExceeded
	}
	return e.Context.Err()
}
