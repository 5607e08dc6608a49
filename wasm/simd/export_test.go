package simd

// Build makes the module anew.
func Build() []byte { return build().Bytes() }
