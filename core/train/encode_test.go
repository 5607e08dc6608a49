package train

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func heads(t testing.TB) []*Head {
	w := newWorld(20, 3, 1)
	p := w.problem(4, "a", "b", "")
	p.Background = w.background(40)
	sigmoid := fitHead(t, NewFitter(p))
	p.Exclusive = true
	open := fitHead(t, NewFitter(p))
	p.Closed = true
	return []*Head{sigmoid, open, fitHead(t, NewFitter(p))}
}

func TestHeadRoundTrips(t *testing.T) {
	for _, h := range heads(t) {
		b, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got Head
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(h, &got); d != "" {
			t.Errorf("another head comes back:\n%s", d)
		}
	}
}

func TestInvalidHeadsAreRefused(t *testing.T) {
	good, _ := heads(t)[0].MarshalBinary()
	reseal := func(b []byte) []byte {
		body := b[:len(b)-4]
		return binary.LittleEndian.AppendUint32(body[:len(body):len(body)], crc32.Checksum(body, castagnoli))
	}
	edit := func(f func(b []byte) []byte) []byte { return reseal(f(bytes.Clone(good))) }
	tests := map[string][]byte{
		"nothing":       nil,
		"magic":         edit(func(b []byte) []byte { b[0]++; return b }),
		"version":       edit(func(b []byte) []byte { b[4]++; return b }),
		"flags":         edit(func(b []byte) []byte { b[5] = 4; return b }),
		"none, sigmoid": edit(func(b []byte) []byte { b[5] = flagNone; return append(b[:len(b)-4], make([]byte, 4*257+4)...) }),
		"dimensions":    edit(func(b []byte) []byte { b[6]++; return b }),
		"no concepts":   edit(func(b []byte) []byte { b[8] = 0; return append(b[:headerBytes], 0, 0, 0, 0) }),
		"many concepts": edit(func(b []byte) []byte { b[10] = 255; return b }),
		"long concept":  edit(func(b []byte) []byte { b[13] = 255; return b }),
		"too long":      edit(func(b []byte) []byte { return append(b, 0) }),
		"a NaN":         edit(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[len(b)-8:], 0x7fc00000); return b }),
		"an infinity":   edit(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[len(b)-8:], 0x7f800000); return b }),
		"a wrong sum":   append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
	}
	for name, b := range tests {
		h := Head{Exclusive: true}
		if err := h.UnmarshalBinary(b); !errors.Is(err, ErrHead) || !reflect.DeepEqual(h, Head{Exclusive: true}) {
			t.Errorf("%s: error %v, head %+v, want ErrHead and nothing changed", name, err, h)
		}
	}
	for i := range good {
		var h Head
		if err := h.UnmarshalBinary(good[:i]); !errors.Is(err, ErrHead) {
			t.Fatalf("the first %d bytes: %v, want ErrHead", i, err)
		}
	}
}

func TestUnfitPartsAreNotWritten(t *testing.T) {
	for name, h := range map[string]*Head{
		"no concepts": {},
		"no outputs":  {Concepts: []string{"a"}},
		"no weights":  {Concepts: []string{"a"}, Bias: []float32{1}},
		"a long id":   {Concepts: []string{string(make([]byte, 1<<16))}, Bias: []float32{1}, Weights: make([]float32, 256)},
		"a NaN":       {Concepts: []string{"a"}, Bias: []float32{float32(math.NaN())}, Weights: make([]float32, 256)},
	} {
		if _, err := h.MarshalBinary(); !errors.Is(err, ErrHead) {
			t.Errorf("%s: %v, want ErrHead", name, err)
		}
	}
}

func FuzzHeadUnmarshalBinary(f *testing.F) {
	for _, h := range heads(f) {
		b, _ := h.MarshalBinary()
		f.Add(b)
	}
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Head
		err := h.UnmarshalBinary(b)
		if err != nil {
			// A wrong checksum hides later faults: try once more with the right one.
			if len(b) < headerBytes+sumBytes {
				return
			}
			b = binary.LittleEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.Checksum(b[:len(b)-4], castagnoli))
			if h.UnmarshalBinary(b) != nil {
				return
			}
		}
		again, err := h.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("what was read is written as other bytes (%v)", err)
		}
	})
}
