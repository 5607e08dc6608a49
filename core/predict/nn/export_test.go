package nn

// WithTiling returns o with blocks made of inner values of at least worthwhile bytes, in tiles of
// about tile bytes.
func WithTiling(o Options, worthwhile, tile int) Options {
	o.tiling = &tiling{worthwhile, tile}
	return o
}
