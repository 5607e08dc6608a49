package cpu

import (
	"slices"
	"testing"
)

// allow makes the levels from AVX2 to l the levels of this machine until the test ends.
func allow(t *testing.T, l Level) {
	least, oldBest := lowest, best
	lowest, best = AVX2, l
	t.Cleanup(func() { lowest, best = least, oldBest })
}

func TestHighestNeedsAllBelow(t *testing.T) {
	tests := []struct {
		lowest Level
		has    []bool
		want   Level
	}{
		{AVX2, nil, Generic},
		{AVX2, []bool{false, true, true}, Generic},
		{AVX2, []bool{true, false, true}, AVX2},
		{AVX2, []bool{true, true, false}, AVX512},
		{AVX2, []bool{true, true, true}, AVX512VNNI},
		{NEON, []bool{true, false, true}, NEON},
		{NEON, []bool{true, true, true}, I8MM},
	}
	for _, tt := range tests {
		if got := highest(tt.lowest, tt.has...); got != tt.want {
			t.Errorf("highest(%v, %v) = %v, want %v", tt.lowest, tt.has, got, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		best    Level
		written []Level
		want    []Level
	}{
		{AVX512VNNI, nil, []Level{Generic}},
		{AVX512VNNI, []Level{AVX2, AVX512VNNI}, []Level{AVX512VNNI, AVX2, Generic}},
		{AVX512VNNI, []Level{AVX512, AVX2, Generic}, []Level{AVX512, AVX2, Generic}},
		{AVX512, []Level{AVX2, AVX512VNNI}, []Level{AVX2, Generic}},
		{AVX2, []Level{AVX512, AVX512VNNI}, []Level{Generic}},
		{Generic, []Level{AVX2, AVX512}, []Level{Generic}},
	}
	for _, tt := range tests {
		allow(t, tt.best)
		args := slices.Clone(tt.written)
		c := Choose(tt.written...)
		if got := slices.Collect(c.Each()); !slices.Equal(got, tt.want) || c.Current() != tt.want[0] {
			t.Errorf("with %v, Choose(%v) = %v of %v, want the first of %v", tt.best, tt.written, c.Current(), got, tt.want)
		}
		if !slices.Equal(tt.written, args) {
			t.Errorf("Choose changed its arguments from %v to %v", args, tt.written)
		}
	}
}

func TestForce(t *testing.T) {
	allow(t, AVX512)
	c := Choose(AVX2, AVX512, AVX512VNNI)
	back := c.Force(AVX2)
	restore := c.Force(Generic)
	if c.Current() != Generic {
		t.Errorf("forced to %v, want generic", c.Current())
	}
	if restore(); c.Current() != AVX2 {
		t.Errorf("back at %v, want avx2", c.Current())
	}
	if back(); c.Current() != AVX512 {
		t.Errorf("back at %v, want avx512", c.Current())
	}
	for l := range c.Each() {
		if c.Current() != l {
			t.Errorf("at %v, want %v", c.Current(), l)
		}
		if l == AVX2 {
			break
		}
	}
	if c.Current() != AVX512 {
		t.Errorf("at %v after the levels, want avx512", c.Current())
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a level that this machine does not have")
		}
	}()
	c.Force(AVX512VNNI)
}

// TestHas: the machine's best level is one of its levels, and it has no higher one.
func TestHas(t *testing.T) {
	if !Has(Generic) {
		t.Error("no generic level")
	}
	if Has(Lent) != hostKernels || hostKernels && best != Generic {
		t.Errorf("lent is %v where the best of our own is %v", Has(Lent), best)
	}
	for l := AVX2; l < Lent; l++ {
		if Has(l) != (lowest <= l && l <= best) || Has(l) && l > lowest && !Has(l-1) {
			t.Errorf("Has(%v) = %v where the best is %v", l, Has(l), best)
		}
	}
}

func TestString(t *testing.T) {
	want := []string{"generic", "avx2", "avx512", "avx512vnni", "neon", "dotprod", "i8mm", "lent", "Level(8)"}
	for i, w := range want {
		if got := Level(i).String(); got != w {
			t.Errorf("Level(%d).String() = %q, want %q", i, got, w)
		}
	}
}
