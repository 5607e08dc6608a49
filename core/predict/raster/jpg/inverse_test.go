package jpg

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestInverseEqualsGeneric compares the transforms chosen for this machine with the generic ones, over sparse, full and overflowing
// blocks. It also checks that they write only the block's samples.
func TestInverseEqualsGeneric(t *testing.T) {
	type inverse = func(dst []byte, stride int, b, quant *[64]int32)
	for _, tt := range []struct {
		side          int
		fast, generic inverse
	}{{8, inverse8, inverse8Generic}, {4, inverse4, inverse4Generic}} {
		t.Run(fmt.Sprint(tt.side), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(tt.side)))
			for range 20000 {
				var b, quant [64]int32
				limit, wide := 1<<r.IntN(17), r.IntN(50) == 0
				for i := range b {
					quant[i] = r.Int32N(256)
					if r.IntN(4) == 0 {
						b[i] = int32(r.IntN(2*limit) - limit)
					}
					if wide {
						b[i], quant[i] = int32(r.Uint32()), r.Int32N(1<<16)
					}
				}
				stride, at := 8+r.IntN(20), r.IntN(9)
				want := bytes.Repeat([]byte{0xa5}, 8*stride+32)
				got := bytes.Clone(want)
				c := b
				tt.generic(want[at:], stride, &b, &quant)
				tt.fast(got[at:], stride, &c, &quant)
				if !bytes.Equal(got, want) {
					t.Fatalf("stride %d gives %v, want %v", stride, got, want)
				}
				if b != c {
					t.Fatalf("leaves %v, want %v", c, b)
				}
				for i := range tt.side * tt.side {
					if b[i] != 0 {
						t.Fatal("block is not cleared")
					}
				}
			}
		})
	}
}

// TestFlatBlockEqualsInverse compares the short cut for blocks without AC with the whole transform.
func TestFlatBlockEqualsInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for i := range transforms {
		tr := &transforms[i]
		for range 5000 {
			f := int32(r.Uint32()) >> r.IntN(32)
			got, want := make([]byte, 64), make([]byte, 64)
			tr.flat(got, 8, f)
			tr.inverse(want, 8, &[64]int32{f}, &[64]int32{1})
			if !bytes.Equal(got, want) {
				t.Fatalf("flat of %d a side: %d gives %v, want %v", tr.side, f, got, want)
			}
		}
	}
}
