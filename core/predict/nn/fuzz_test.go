package nn_test

import (
	"bytes"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"pgregory.net/rapid"
)

// FuzzPlan reads any file, compiles its network and runs it on zeros. It expects an error or a result, no panic, and no memory beyond the
// limit. A file that can be read must equal the file that its network writes.
func FuzzPlan(f *testing.F) {
	for seed := range 6 {
		f.Add(rapid.Custom(func(t *rapid.T) []byte { return growFloatNet(t).Marshal() }).Example(seed))
		f.Add(rapid.Custom(func(t *rapid.T) []byte {
			n, _ := growIntNet(t)
			return n.Marshal()
		}).Example(seed))
	}
	const memory = 4 << 20
	f.Fuzz(func(t *testing.T, file []byte) {
		n, err := nn.Read(file)
		if err != nil {
			return
		}
		if !bytes.Equal(n.Marshal(), file) {
			t.Fatal("the network writes another file than it was read from")
		}
		p, err := nn.Compile(n, nn.Options{Memory: memory, Work: 1 << 26})
		if err != nil {
			return
		}
		if n := p.SessionBytes() + p.WeightBytes(); n > memory {
			t.Fatalf("plan of %d bytes, limit %d", n, memory)
		}
		in := nn.Tensor{Type: p.Input().Type, Shape: p.Input().Shape}
		in.F32, in.U8 = make([]float32, in.Len()), make([]uint8, in.Len())
		if _, err := p.NewSession().Run(in); err != nil {
			t.Fatal(err)
		}
	})
}
