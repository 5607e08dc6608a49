package testkit

import (
	"slices"
	"testing"
)

func TestSeedsGoOnFrom(t *testing.T) {
	tests := []struct {
		name                   string
		nightly, soak, from, n string
		want                   []uint64 // without -short
		short                  []uint64 // with -short, if it differs
	}{
		{name: "test", want: []uint64{0, 1}, short: []uint64{0}},
		{name: "nightly", nightly: "1", want: []uint64{0, 1, 2, 3, 4, 5, 6, 7}, short: []uint64{0}},
		{name: "soak", soak: "1", want: []uint64{0, 1, 2}},
		{name: "from a seed", soak: "1", from: "7", want: []uint64{7, 8, 9}},
		{name: "one seed again", soak: "1", from: "7", n: "1", want: []uint64{7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("NIGHTLY", tt.nightly)
			t.Setenv("SOAK", tt.soak)
			t.Setenv("SOAK_FROM", tt.from)
			t.Setenv("SOAK_N", tt.n)
			want := tt.want
			if testing.Short() && tt.short != nil {
				want = tt.short
			}
			if got := slices.Collect(Seeds(t, 8, 3)); !slices.Equal(got, want) {
				t.Errorf("Seeds = %v, want %v", got, want)
			}
		})
	}
}
