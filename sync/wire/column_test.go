package wire

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// values draws the numbers of a column: equal, rising, close together or far apart.
func values(t *rapid.T) []uint64 {
	n := rapid.IntRange(0, 300).Draw(t, "n")
	width := rapid.IntRange(0, 64).Draw(t, "width")
	base := rapid.Uint64().Draw(t, "base")
	step := rapid.SampledFrom([]uint64{0, 1, 1 << 40, ^uint64(0)}).Draw(t, "step")
	noise := rapid.SliceOfN(rapid.Uint64(), n, n).Draw(t, "noise")
	for i := range noise {
		noise[i] = base + step*uint64(i) + noise[i]&(1<<width-1)
	}
	return noise
}

func TestColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := values(t)
		column := appendInts(nil, want)
		got := make([]uint64, len(want))
		if err := ints(got, column); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("read %d, want %d", got, want)
		}
		plain := 1
		for _, v := range want {
			plain += varintSize(v)
		}
		if len(column) > plain {
			t.Fatalf("%d bytes, and %d as plain varints", len(column), plain)
		}
		for n := range len(column) {
			if n == 0 {
				continue // an empty column is valid: all zeros
			}
			if err := ints(got, column[:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("cut at %d of %d: %v, want ErrFormat", n, len(column), err)
			}
		}
		if err := ints(got, append(column, 0)); len(want) > 0 && len(column) > 0 && !errors.Is(err, ErrFormat) {
			t.Fatalf("a byte too many: %v, want ErrFormat", err)
		}
	})
}

func TestMalformedColumn(t *testing.T) {
	tests := []struct {
		name   string
		n      int
		column []byte
	}{
		{"numbers of nothing", 0, []byte{formVarints}},
		{"form", 1, []byte{3, 1}},
		{"other bits", 1, []byte{8, 1}},
		{"run of none", 2, []byte{formRuns, 1, 0, 1, 2}},
		{"run too long", 2, []byte{formRuns, 1, 3}},
		{"run without length", 2, []byte{formRuns, 1}},
		{"no base", 2, []byte{formPacked}},
		{"no width", 2, []byte{formPacked, 1}},
		{"width of 65 bits", 1, []byte{formPacked, 0, 65, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"bits left over", 2, []byte{formPacked, 0, 1, 4}},
		{"first number missing", 2, []byte{formRuns | differences}},
		{"varint without end", 1, []byte{formVarints, 0x80}},
		{"varint of 65 bits", 1, []byte{formVarints, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := ints(make([]uint64, tt.n), tt.column); !errors.Is(err, ErrFormat) {
				t.Errorf("ints = %v, want ErrFormat", err)
			}
		})
	}
}
