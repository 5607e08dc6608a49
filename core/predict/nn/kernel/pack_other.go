//go:build purego || !arm64

package kernel

// neonProduct is empty: no level of arm64 is in this build.
type neonProduct struct{}

func (neonProduct) packNEON(*PackedS8, []int8) {}

// neonDepthwise is empty, too.
type neonDepthwise struct{}

func (neonDepthwise) packNEON(*DepthwiseS8) {}
