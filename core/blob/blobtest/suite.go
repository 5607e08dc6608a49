// Package blobtest tests implementations of blob stores and of hosted names. It has one suite for all implementations, and a file system
// that fails and crashes.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/sightline-dev/sightline/core/blob"
)

// MaxBytes is the size limit of blobs with which stores under test must be opened.
const MaxBytes = 10_000

// Blobs runs the suite for [blob.Blobs]. open returns an empty store that accepts blobs of up to
// MaxBytes.
func Blobs(t *testing.T, open func(t *testing.T) blob.Blobs) {
	tests := []struct {
		name string
		run  func(*testing.T, blob.Blobs)
	}{
		{"RoundTrip", roundTrip},
		{"Absent", absent},
		{"Delete", deleteBlob},
		{"ExpectedHash", expectedHash},
		{"FailingReader", failingReader},
		{"TooLarge", tooLarge},
		{"Each", each},
		{"CopiesAreTheCallers", copies},
		{"OpenOutlivesDelete", openOutlivesDelete},
		{"Cancelled", checkCancellation},
		{"Concurrent", concurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

func put(t testing.TB, s blob.Blobs, data []byte) blob.Hash {
	t.Helper()
	h, err := s.Put(t.Context(), bytes.NewReader(data), blob.Hash{})
	if err != nil {
		t.Fatalf("Put(%d bytes): %v", len(data), err)
	}
	return h
}

// holds checks that s contains exactly the blobs in want, with every method that reads.
func holds(t testing.TB, s blob.Blobs, want ...[]byte) {
	t.Helper()
	ctx := t.Context()
	var hashes []blob.Hash
	for _, data := range want {
		h := blob.Sum(data)
		hashes = append(hashes, h)
		got, err := s.Get(ctx, h)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get(%v) = %d bytes, %v, want the %d that were put", h, len(got), err, len(data))
		}
		if n, err := s.Len(ctx, h); n != int64(len(data)) || err != nil {
			t.Errorf("Len(%v) = %d, %v, want %d", h, n, err, len(data))
		}
		if ok, err := s.Has(ctx, h); !ok || err != nil {
			t.Errorf("Has(%v) = %v, %v, want true", h, ok, err)
		}
		r, err := s.Open(ctx, h)
		if err != nil {
			t.Errorf("Open(%v): %v", h, err)
			continue
		}
		got, err = io.ReadAll(iotest.OneByteReader(r))
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, data) {
			t.Errorf("reading %v = %d bytes, %v, want the %d that were put", h, len(got), err, len(data))
		}
	}
	slices.SortFunc(hashes, func(a, b blob.Hash) int { return bytes.Compare(a[:], b[:]) })
	var got []blob.Hash
	err := s.Each(ctx, blob.Hash{}, func(h blob.Hash) error { got = append(got, h); return nil })
	if err != nil || !slices.Equal(got, hashes) {
		t.Errorf("Each = %v, %v, want %v", got, err, hashes)
	}
}

func roundTrip(t *testing.T, s blob.Blobs) {
	var want [][]byte
	holds(t, s)
	for _, n := range []int{0, 1, 999, 1000, 1001, MaxBytes} {
		data := bytes.Repeat([]byte{byte(n), 7}, n)[:n]
		if h := put(t, s, data); h != blob.Sum(data) {
			t.Errorf("Put(%d bytes) = %v, want %v", n, h, blob.Sum(data))
		}
		put(t, s, data)
		want = append(want, data)
	}
	holds(t, s, want...)
}

func checkAbsent(t testing.TB, s blob.Blobs, h blob.Hash) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.Get(ctx, h); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get = %v, want ErrNotFound", err)
	}
	if _, err := s.Open(ctx, h); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Open = %v, want ErrNotFound", err)
	}
	if _, err := s.Len(ctx, h); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Len = %v, want ErrNotFound", err)
	}
	if ok, err := s.Has(ctx, h); ok || err != nil {
		t.Errorf("Has = %v, %v, want false", ok, err)
	}
}

func absent(t *testing.T, s blob.Blobs) {
	put(t, s, []byte("here"))
	checkAbsent(t, s, blob.Sum([]byte("not here")))
	checkAbsent(t, s, blob.Hash{})
	if err := s.Delete(t.Context(), blob.Hash{}); err != nil {
		t.Errorf("Delete of an absent blob = %v, want nil", err)
	}
}

func deleteBlob(t *testing.T, s blob.Blobs) {
	a, b := []byte("a"), []byte("b")
	put(t, s, a)
	put(t, s, b)
	if err := s.Delete(t.Context(), blob.Sum(a)); err != nil {
		t.Fatal(err)
	}
	checkAbsent(t, s, blob.Sum(a))
	holds(t, s, b)
	put(t, s, a)
	holds(t, s, a, b)
}

func expectedHash(t *testing.T, s blob.Blobs) {
	data := []byte("picture")
	h, err := s.Put(t.Context(), bytes.NewReader(data), blob.Sum([]byte("another")))
	if !errors.Is(err, blob.ErrHash) || !h.IsZero() {
		t.Errorf("Put with another hash = %v, %v, want ErrHash", h, err)
	}
	holds(t, s)
	if h, err := s.Put(t.Context(), bytes.NewReader(data), blob.Sum(data)); h != blob.Sum(data) || err != nil {
		t.Errorf("Put with its hash = %v, %v", h, err)
	}
	holds(t, s, data)
}

func failingReader(t *testing.T, s blob.Blobs) {
	broken := errors.New("broken")
	r := io.MultiReader(bytes.NewReader(make([]byte, 3000)), iotest.ErrReader(broken))
	if h, err := s.Put(t.Context(), r, blob.Hash{}); !errors.Is(err, broken) || !h.IsZero() {
		t.Errorf("Put of a failing reader = %v, %v, want its error", h, err)
	}
	holds(t, s)
}

func tooLarge(t *testing.T, s blob.Blobs) {
	if _, err := s.Put(t.Context(), bytes.NewReader(make([]byte, MaxBytes+1)), blob.Hash{}); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Put of %d bytes = %v, want ErrTooLarge", MaxBytes+1, err)
	}
	holds(t, s)
}

func each(t *testing.T, s blob.Blobs) {
	var want [][]byte
	for i := range 50 {
		data := fmt.Appendf(nil, "picture %d", i)
		put(t, s, data)
		want = append(want, data)
	}
	holds(t, s, want...)
	stop := errors.New("enough")
	n := 0
	err := s.Each(t.Context(), blob.Hash{}, func(blob.Hash) error {
		if n++; n == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 3 {
		t.Errorf("Each stopped after %d with %v, want 3 and the error of yield", n, err)
	}
	var all, rest []blob.Hash
	if err := s.Each(t.Context(), blob.Hash{}, func(h blob.Hash) error { all = append(all, h); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 20, len(all) - 1} {
		rest = nil
		if err := s.Each(t.Context(), all[i], func(h blob.Hash) error { rest = append(rest, h); return nil }); err != nil || !slices.Equal(rest, all[i:]) {
			t.Errorf("Each from the hash at %d gives %d hashes, %v, want %d", i, len(rest), err, len(all)-i)
		}
	}
	last := all[len(all)-1]
	for i := range last {
		last[i] = 0xff
	}
	if err := s.Each(t.Context(), last, func(h blob.Hash) error { return stop }); err != nil {
		t.Errorf("Each from beyond the last = %v, want nothing", err)
	}
}

func copies(t *testing.T, s blob.Blobs) {
	data := []byte("picture")
	h := put(t, s, data)
	data[0] = 'X'
	got, err := s.Get(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	got[1] = 'Y'
	holds(t, s, []byte("picture"))
}

func openOutlivesDelete(t *testing.T, s blob.Blobs) {
	data := bytes.Repeat([]byte("x"), MaxBytes)
	r, err := s.Open(t.Context(), put(t, s, data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := s.Delete(t.Context(), blob.Sum(data)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("reading a deleted blob = %d bytes, %v, want all", len(got), err)
	}
}

func checkCancellation(t *testing.T, s blob.Blobs) {
	data := []byte("picture")
	h := put(t, s, data)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, put := s.Put(ctx, bytes.NewReader([]byte("another")), blob.Hash{})
	_, get := s.Get(ctx, h)
	_, open := s.Open(ctx, h)
	_, has := s.Has(ctx, h)
	_, length := s.Len(ctx, h)
	for i, err := range []error{
		put, get, open, has, length, s.Delete(ctx, h),
		s.Each(ctx, blob.Hash{}, func(blob.Hash) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("method %d with a cancelled context = %v, want context.Canceled", i, err)
		}
	}
	holds(t, s, data)
}

func concurrent(t *testing.T, s blob.Blobs) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 40 {
				data := fmt.Appendf(nil, "picture %d", (i+w)%8)
				h, err := s.Put(t.Context(), bytes.NewReader(data), blob.Hash{})
				if err != nil {
					t.Errorf("Put: %v", err)
				}
				got, err := s.Get(t.Context(), h)
				if err != nil && !errors.Is(err, blob.ErrNotFound) || err == nil && !bytes.Equal(got, data) {
					t.Errorf("Get = %q, %v, want %q or ErrNotFound", got, err, data)
				}
				if i%3 == w%3 {
					if err := s.Delete(t.Context(), h); err != nil {
						t.Errorf("Delete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
}
