package simd

// Build makes the module again.
func Build() []byte { return build().Bytes() }
