package testkit

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestSeedsStartAtFrom(t *testing.T) {
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

// TestTimedFindsTests checks that .ci/timed finds the tests that call Timing or RequireTiming, also if these functions are renamed.
func TestTimedFindsTests(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(Root(t), ".ci", "timed"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(regexp.MustCompile(`'(testkit[^']+)'`).FindStringSubmatch(string(script))[1])
	for _, f := range []any{Timing, RequireTiming} {
		name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
		call := "testkit" + name[strings.LastIndex(name, "."):] + "("
		if !pattern.MatchString(call) {
			t.Errorf("%s does not match %s", pattern, call)
		}
	}
}
