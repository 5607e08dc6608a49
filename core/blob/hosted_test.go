package blob_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
)

// slowStore is a store whose Delete takes a second and then returns err.
type slowStore struct {
	blob.Blobs
	err     error
	deletes int
}

func (s *slowStore) Delete(ctx context.Context, h blob.Hash) error {
	s.deletes++
	time.Sleep(time.Second) // virtual
	if s.err != nil {
		return s.err
	}
	return s.Blobs.Delete(ctx, h)
}

// TestSlowDeletion deletes a blob of a slow store. Other calls do not wait for it. A Pin of the same blob does, and stores it again.
func TestSlowDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Blobs: blob.NewMemory(blob.Options{})}
		h := openHosted(t, blob.HostedOptions{Blobs: s, Random: blobtest.Random(1)})
		a, b, began := []byte("a"), []byte("b"), time.Now()
		hash, err := h.Pin(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := h.Unpin(t.Context(), hash); err != nil {
				t.Errorf("Unpin: %v", err)
			}
		}()
		synctest.Wait()
		if _, err := h.Pin(t.Context(), b); err != nil || time.Since(began) != 0 {
			t.Errorf("Pin of another blob = %v after %v, want at once", err, time.Since(began))
		}
		if _, err := h.Pin(t.Context(), a); err != nil || time.Since(began) != time.Second {
			t.Errorf("Pin of the same blob = %v after %v, want 1s", err, time.Since(began))
		}
		if got, err := s.Get(t.Context(), hash); err != nil || string(got) != "a" {
			t.Errorf("Get = %q, %v, want the bytes that the second Pin stored", got, err)
		}
	})
}

// TestUnavailableStore sweeps blobs of a store that does not answer. A Sweep asks it once, and a later Sweep deletes all.
func TestUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Blobs: blob.NewMemory(blob.Options{}), err: blob.ErrUnavailable}
		h := openHosted(t, blob.HostedOptions{Blobs: s, Random: blobtest.Random(1), Delay: time.Minute})
		var hashes []blob.Hash
		for _, data := range []string{"a", "b", "c"} {
			hash, err := h.Pin(t.Context(), []byte(data))
			if err = errors.Join(err, h.Unpin(t.Context(), hash)); err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, hash)
		}
		for _, after := range []time.Duration{0, time.Minute} {
			_, err := h.Sweep(t.Context(), blobtest.Noon().Add(after))
			if failed := after > 0; failed != errors.Is(err, blob.ErrUnavailable) {
				t.Errorf("Sweep after %v = %v", after, err)
			}
		}
		if s.deletes != 1 {
			t.Errorf("%d deletions were tried, want 1", s.deletes)
		}
		s.err = nil
		if _, err := h.Sweep(t.Context(), blobtest.Noon().Add(2*time.Minute)); err != nil {
			t.Errorf("Sweep: %v", err)
		}
		for _, hash := range hashes {
			if has, err := s.Has(t.Context(), hash); has || err != nil {
				t.Errorf("Has = %v, %v, want false", has, err)
			}
		}
	})
}
