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
	mem    []byte          // the guest's memory; nil while no call runs
	ctx    context.Context // context of the guest's call; nil while no call runs

	handles []*packedWeights // by handle - 1; nil if the handle is free
	free    []int32
	weights int64 // bytes of all handles; shared weights count in full

	// Arguments of core's kernels. They are fields so that no call allocates them.
	requant nnkernel.Requant
	add     nnkernel.Add

	vectors   kernel.Vectors
	query     kernel.Query
	high, low table
	rows      [rowsAtOnce]uint32

	embedding predict.Embedding

	networks Networks // nil: the host provides no networks
	shared   []sharedNetwork

	decoder *raster.Decoder
	limits  raster.Limits // limits of decoder, without Expired
}

type key struct{}

// Bind returns a context for calls of the guest. The imports get the instance from it. When it is done, they stop decoding a picture.
func (in *Instance) Bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, in)
}

// Close releases all packed weights of the guest. The caller must not use the instance afterwards.
func (in *Instance) Close() {
	for _, p := range in.handles {
		if p != nil {
			in.native.shared.release(p)
		}
	}
	*in = Instance{native: in.native}
}
