package kv_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

func TestAfter(t *testing.T) {
	for _, tt := range []struct{ prefix, want []byte }{
		{[]byte("a"), []byte("b")},
		{[]byte{1, 0xff}, []byte{2}},
		{[]byte{0xff, 0xff}, nil},
	} {
		if got := kv.PrefixEnd(tt.prefix); !bytes.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("After(%x) = %x, want %x", tt.prefix, got, tt.want)
		}
	}
}

// TestLoops loops over keys in both directions, stops early, and loops over a closed store.
func TestLoops(t *testing.T) {
	s := memkv.New()
	var b kv.Batch
	for _, key := range []string{"a", "b1", "b2", "b3", "c"} {
		b.Put([]byte(key), []byte{key[len(key)-1]})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	var err error
	got := ""
	for key, value := range kv.WithPrefix(s, []byte("b"), &err) {
		got += string(key) + string(value) + " "
	}
	for key := range kv.Range(s, []byte("b2"), nil, &err) {
		got += string(key) + " "
	}
	for key := range kv.Backward(s, nil, []byte("c"), &err) {
		if got += string(key) + " "; key[len(key)-1] == '2' {
			break
		}
	}
	if want := "b11 b22 b33 b2 b3 c b3 b2 "; got != want || err != nil {
		t.Errorf("loops = %q, %v, want %q", got, err, want)
	}
	if some, err := kv.AnyWithPrefix(s, []byte("b")); !some || err != nil {
		t.Errorf("Some(b) = %v, %v, want true", some, err)
	}
	if some, err := kv.AnyWithPrefix(s, []byte("b4")); some || err != nil {
		t.Errorf("Some(b4) = %v, %v, want false", some, err)
	}
	if value, err := kv.Find(s, []byte("b4")); value != nil || err != nil {
		t.Errorf("Find(b4) = %q, %v, want nil", value, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range kv.WithPrefix(s, nil, &err) {
		t.Error("a closed store yields a key")
	}
	_, failed := kv.AnyWithPrefix(s, nil)
	_, missing := kv.Find(s, []byte("a"))
	for _, err := range []error{err, failed, missing} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("closed store: %v, want ErrClosed", err)
		}
	}
}
