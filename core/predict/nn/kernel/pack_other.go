//go:build purego || !arm64

package kernel

// neonProduct is empty, because this build has no level of arm64.
type neonProduct struct{}

func (neonProduct) packNEON(*PackedS8, []int8) {}

// neonDepthwise is empty for the same reason.
type neonDepthwise struct{}

func (neonDepthwise) packNEON(*DepthwiseS8) {}
