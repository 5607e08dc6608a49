package proof

import (
	"slices"
	"testing"
)

func TestSeedsGoOnFrom(t *testing.T) {
	tests := []struct {
		name          string
		soak, from, n string
		want          []uint64
	}{
		{name: "tier P", want: []uint64{0, 1}},
		{name: "tier N", soak: "1", want: []uint64{0, 1, 2}},
		{name: "from a seed", soak: "1", from: "7", want: []uint64{7, 8, 9}},
		{name: "one seed again", soak: "1", from: "7", n: "1", want: []uint64{7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("SOAK", tt.soak)
			t.Setenv("SOAK_FROM", tt.from)
			t.Setenv("SOAK_N", tt.n)
			p := 2
			if testing.Short() {
				p = 20 // a tenth of it
			}
			if got := slices.Collect(Seeds(t, p, 3)); !slices.Equal(got, tt.want) {
				t.Errorf("Seeds = %v, want %v", got, tt.want)
			}
		})
	}
}
