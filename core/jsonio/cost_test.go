package jsonio

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"testing"
)

// TestMemberLimitBoundsMemory checks that the limit of members bounds the memory that Parse allocates, also for very small values.
func TestMemberLimitBoundsMemory(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name  string
		text  []byte
		want  error
		limit uint64 // maximum number of allocated bytes
	}{
		{"8 MiB of empty objects", list(bytes.Repeat([]byte(`{},`), 8*mib/3)), ErrTooMany, 24 * mib},
		{"8 MiB of numbers", list(bytes.Repeat([]byte(`0,`), 4*mib)), ErrTooMany, 24 * mib},
		{"100,000 members", list(bytes.Repeat([]byte(`{"a":1},`), 50_000-1)), nil, 24 * mib},
		{"an object of 90,000 names", names(90_000), nil, 32 * mib},
		{"90,000 times one name", append(append([]byte("{"), bytes.Repeat([]byte(`"a":0,`), 90_000)...), `"a":0}`...), ErrDuplicate, 32 * mib},
		{"one string of 32 MiB", append(append([]byte(`["`), bytes.Repeat([]byte("é"), 16*mib)...), `"]`...), nil, mib},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d Doc
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := d.Parse(tt.text, Limits{})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tt.want) {
				t.Errorf("Parse = %v, want %v", err, tt.want)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > tt.limit {
				t.Errorf("%d bytes of text allocate %d bytes, want at most %d", len(tt.text), got, tt.limit)
			}
		})
	}
}

func list(elements []byte) []byte {
	return append(append([]byte("["), elements...), "0]"...)
}

// names returns an object of n members with different names.
func names(n int) []byte {
	var w Writer
	w.Object()
	for i := range n {
		w.Name(strconv.Itoa(i))
		w.Int(0)
	}
	w.End('}')
	return w.Bytes()
}
