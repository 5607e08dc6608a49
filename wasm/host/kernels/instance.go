package kernels

import (
	"context"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/core/predict"
	nnkernel "github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Instance holds the handles and scratch memory of one instance of a guest on a [Native]. Only one goroutine at a time may use it, like
// the guest.
type Instance struct {
	native *Native
	mem    []byte          // the guest's memory, while a call runs
	ctx    context.Context // of the call of the guest that a call is part of, likewise

	handles []*packedWeights // by handle - 1; nil where one is free
	free    []int32
	weights int64 // bytes of all handles, each as if it were not shared

	// Arguments for core. They are here so that no call allocates them.
	requant nnkernel.Requant
	add     nnkernel.Add

	vectors   kernel.Vectors
	query     kernel.Query
	high, low table
	rows      [rowsAtOnce]uint32

	embedding predict.Embedding

	networks Networks // nil: there are none
	shared   []sharedNetwork

	decoder *raster.Decoder
	limits  raster.Limits // of decoder, but for Expired
}

type key struct{}

// Bind returns a context for calls of the guest: the imports find their instance in it, and a
// picture is given up when it is done.
func (in *Instance) Bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, in)
}

// Close frees all packings of the guest. The instance must not be called any more.
func (in *Instance) Close() {
	for _, p := range in.handles {
		if p != nil {
			in.native.shared.release(p)
		}
	}
	*in = Instance{native: in.native}
}
