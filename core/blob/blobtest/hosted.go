package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
)

// HostedNames runs the suite for hosted names. open returns an empty HostedNames and its empty
// blobs, made from o with FS and Blobs filled in. They may be in memory.
func HostedNames(t *testing.T, open func(t *testing.T, o blob.HostedOptions) (*blob.HostedNames, blob.Blobs)) {
	tests := []struct {
		name string
		run  func(*testing.T, func(*testing.T, blob.HostedOptions) (*blob.HostedNames, blob.Blobs))
	}{
		{"Names", names},
		{"Expiry", expiry},
		{"SharedBlob", sharedBlob},
		{"Ended", endedApps},
		{"EndedFails", endedFails},
		{"Keep", keep},
		{"Malformed", checkMalformedNames},
		{"Random", random},
		{"Collect", collect},
		{"Hold", hold},
		{"Delay", delay},
		{"Each", listedBlobs},
		{"AgainstModel", againstModel},
		{"Concurrent", concurrentNames},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open) })
	}
}

type opener = func(*testing.T, blob.HostedOptions) (*blob.HostedNames, blob.Blobs)

// Random returns a source of names that depends only on the seed.
func Random(seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
}

// Noon returns the time at which tests begin.
func Noon() time.Time { return time.Date(2017, 7, 1, 12, 0, 0, 0, time.UTC) }

func add(t testing.TB, h *blob.HostedNames, data []byte, expires time.Time) string {
	t.Helper()
	name, hash, err := h.Add(t.Context(), blob.AppID{}, data, "image/png", expires)
	if err != nil || hash != blob.Sum(data) {
		t.Fatalf("Add = %q, %v, %v", name, hash, err)
	}
	return name
}

func names(t *testing.T, open opener) {
	h, s := open(t, blob.HostedOptions{Random: Random(1)})
	seen := map[string]bool{}
	for i := range 20 {
		data := fmt.Appendf(nil, "picture %d", i)
		name := add(t, h, data, time.Time{})
		if len(name) != 32 || seen[name] {
			t.Errorf("Add = %q, want 32 fresh hex digits", name)
		}
		seen[name] = true
		p, err := h.Lookup(name, Noon())
		if want := (blob.Picture{Hash: blob.Sum(data), ContentType: "image/png"}); p != want || err != nil {
			t.Errorf("Lookup = %v, %v, want %v", p, err, want)
		}
		if got, err := s.Get(t.Context(), p.Hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get = %q, %v, want %q", got, err, data)
		}
	}
	for name := range seen {
		if err := errors.Join(h.Remove(t.Context(), name), h.Remove(t.Context(), name)); err != nil {
			t.Errorf("Remove: %v", err)
		}
		if _, err := h.Lookup(name, Noon()); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Lookup after Remove = %v, want ErrNotFound", err)
		}
	}
	if h.Len() != 0 {
		t.Errorf("Len() = %d, want 0", h.Len())
	}
	holds(t, s)
}

func expiry(t *testing.T, open opener) {
	h, s := open(t, blob.HostedOptions{Random: Random(2)})
	end := Noon().Add(1500 * time.Microsecond) // rounded down to 1 ms
	name, stays := add(t, h, []byte("goes"), end), add(t, h, []byte("stays"), time.Time{})
	for _, tt := range []struct {
		at   time.Duration
		want error
	}{{0, nil}, {999 * time.Microsecond, nil}, {time.Millisecond, blob.ErrNotFound}, {time.Hour, blob.ErrNotFound}} {
		if _, err := h.Lookup(name, Noon().Add(tt.at)); !errors.Is(err, tt.want) {
			t.Errorf("Lookup after %v = %v, want %v", tt.at, err, tt.want)
		}
	}
	for _, tt := range []struct {
		at   time.Duration
		want int
	}{{999 * time.Microsecond, 0}, {time.Millisecond, 1}, {time.Hour, 0}} {
		if n, err := h.Sweep(t.Context(), Noon().Add(tt.at)); n != tt.want || err != nil {
			t.Errorf("Sweep after %v = %d, %v, want %d", tt.at, n, err, tt.want)
		}
	}
	holds(t, s, []byte("stays"))
	if _, err := h.Lookup(stays, Noon().AddDate(100, 0, 0)); err != nil {
		t.Errorf("Lookup of a name without expiry = %v", err)
	}
}

func sharedBlob(t *testing.T, open opener) {
	h, s := open(t, blob.HostedOptions{Random: Random(3)})
	data := []byte("the same picture")
	a := add(t, h, data, Noon().Add(time.Hour))
	b := add(t, h, data, time.Time{})
	if a == b {
		t.Error("the same bytes have the same name twice")
	}
	if n, err := h.Sweep(t.Context(), Noon().Add(2*time.Hour)); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}
	holds(t, s, data)
	if err := h.Remove(t.Context(), b); err != nil {
		t.Error(err)
	}
	holds(t, s)
}

// endedApps tests names of deleted applications: Lookup does not find them, and Sweep deletes them with their blobs.
func endedApps(t *testing.T, open opener) {
	a, b, gone := blob.AppID{1}, blob.AppID{2}, map[blob.AppID]bool{}
	h, s := open(t, blob.HostedOptions{Random: Random(9), AppDeleted: func(app blob.AppID) (bool, error) {
		if app == (blob.AppID{}) {
			t.Error("Ended is called without an application")
		}
		return gone[app], nil
	}})
	both, only, other := []byte("of both"), []byte("only of a"), []byte("of no application")
	names := map[string]blob.AppID{}
	addOf := func(app blob.AppID, data []byte) {
		name, _, err := h.Add(t.Context(), app, data, "image/png", Noon().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		names[name] = app
	}
	addOf(a, both)
	addOf(b, both)
	addOf(a, only)
	addOf(blob.AppID{}, other)
	find := func() {
		t.Helper()
		for name, app := range names {
			var want error
			if gone[app] {
				want = blob.ErrNotFound
			}
			if p, err := h.Lookup(name, Noon()); !errors.Is(err, want) || err == nil && p.App != app {
				t.Errorf("Lookup of a name of %x = %v, %v, want %v", app[:1], p, err, want)
			}
		}
	}
	sweep := func(want int) {
		t.Helper()
		if n, err := h.Sweep(t.Context(), Noon()); n != want || err != nil {
			t.Errorf("Sweep = %d, %v, want %d", n, err, want)
		}
	}
	find()
	sweep(0)
	gone[a] = true
	find() // at once
	holds(t, s, both, only, other)
	sweep(2)
	sweep(0)
	find()
	holds(t, s, both, other)
}

// endedFails tests an Ended that returns an error: Lookup and Sweep return it, and Sweep deletes no name of the application.
func endedFails(t *testing.T, open opener) {
	down := errors.New("store failed")
	h, s := open(t, blob.HostedOptions{Random: Random(10), AppDeleted: func(blob.AppID) (bool, error) { return false, down }})
	name, _, err := h.Add(t.Context(), blob.AppID{1}, []byte("x"), "image/png", Noon().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	add(t, h, []byte("expires"), Noon())
	if _, err := h.Lookup(name, Noon()); !errors.Is(err, down) {
		t.Errorf("Lookup = %v, want %v", err, down)
	}
	if n, err := h.Sweep(t.Context(), Noon()); n != 1 || !errors.Is(err, down) {
		t.Errorf("Sweep = %d, %v, want 1 and %v", n, err, down)
	}
	holds(t, s, []byte("x"))
}

func keep(t *testing.T, open opener) {
	inputBlob := []byte("also an input's")
	h, s := open(t, blob.HostedOptions{
		Random:     Random(4),
		References: func(hash blob.Hash) bool { return hash == blob.Sum(inputBlob) },
	})
	for _, data := range [][]byte{inputBlob, []byte("nobody's")} {
		if err := h.Remove(t.Context(), add(t, h, data, time.Time{})); err != nil {
			t.Error(err)
		}
	}
	holds(t, s, inputBlob)
	if n, err := h.Collect(t.Context()); n != 0 || err != nil {
		t.Errorf("Collect = %d, %v, want 0", n, err)
	}
	holds(t, s, inputBlob)
}

func checkMalformedNames(t *testing.T, open opener) {
	h, s := open(t, blob.HostedOptions{Random: Random(5)})
	name := add(t, h, []byte("x"), time.Time{})
	for _, bad := range []string{"", "x", name[1:], name + "0", "../" + name[3:], name[:30] + "/.", "0" + name[:31], string(bytes.ToUpper([]byte("ab" + name[2:])))} {
		if _, err := h.Lookup(bad, Noon()); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Lookup(%q) = %v, want ErrNotFound", bad, err)
		}
		if err := h.Remove(t.Context(), bad); err != nil {
			t.Errorf("Remove(%q) = %v, want nil", bad, err)
		}
	}
	for _, bad := range []string{"image/png\r\nX: y", "image/\x00", "bild/größe", string(make([]byte, 300))} {
		if _, _, err := h.Add(t.Context(), blob.AppID{}, []byte("y"), bad, time.Time{}); !errors.Is(err, blob.ErrContentType) {
			t.Errorf("Add with content type %q = %v, want ErrContentType", bad, err)
		}
	}
	holds(t, s, []byte("x"))
}

func random(t *testing.T, open opener) {
	dry := errors.New("dry")
	h, s := open(t, blob.HostedOptions{Random: iotest.ErrReader(dry)})
	if _, _, err := h.Add(t.Context(), blob.AppID{}, []byte("x"), "", time.Time{}); !errors.Is(err, dry) || !errors.Is(err, blob.ErrRandom) {
		t.Errorf("Add without randomness = %v, want ErrRandom and its cause", err)
	}
	holds(t, s)

	h, s = open(t, blob.HostedOptions{Random: zeros{}})
	add(t, h, []byte("first"), time.Time{})
	if _, _, err := h.Add(t.Context(), blob.AppID{}, []byte("second"), "", time.Time{}); !errors.Is(err, blob.ErrRandom) {
		t.Errorf("Add with the same random bits again = %v, want ErrRandom", err)
	}
	holds(t, s, []byte("first"))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func collect(t *testing.T, open opener) {
	h, s := open(t, blob.HostedOptions{Random: Random(6)})
	add(t, h, []byte("named"), time.Time{})
	put(t, s, []byte("left by a crash"))
	put(t, s, []byte("left too"))
	if n, err := h.Collect(t.Context()); n != 2 || err != nil {
		t.Errorf("Collect = %d, %v, want 2", n, err)
	}
	holds(t, s, []byte("named"))

	var blobs [][]byte
	for i := range 30 {
		put(t, s, fmt.Appendf(nil, "left %d", i))
		blobs = append(blobs, fmt.Appendf(nil, "stays %d", i))
		add(t, h, blobs[i], time.Time{})
	}
	steps, deleted := 0, 0
	for from := (blob.Hash{}); ; steps++ {
		next, n, err := h.CollectSome(t.Context(), from, 7)
		if err != nil || !next.IsZero() && bytes.Compare(next[:], from[:]) <= 0 {
			t.Fatalf("CollectSome from %v = %v, %v", from, next, err)
		}
		if deleted += n; next.IsZero() {
			break
		}
		from = next
	}
	if deleted != 30 || steps != 61/7 {
		t.Errorf("CollectSome deletes %d in %d steps, want 30 in %d", deleted, steps, 61/7)
	}
	holds(t, s, append(blobs, []byte("named"))...)
}

// hold tests pinned blobs without a record: Unpin and Drop ask References.
func hold(t *testing.T, open opener) {
	data, claimed := []byte("a picture"), map[blob.Hash]bool{}
	h, s := open(t, blob.HostedOptions{Random: Random(8), References: func(h blob.Hash) bool { return claimed[h] }})
	pin := func(n int) blob.Hash {
		t.Helper()
		var hash blob.Hash
		for range n {
			var err error
			if hash, err = h.Pin(t.Context(), data); err != nil || hash != blob.Sum(data) {
				t.Fatalf("Hold = %v, %v", hash, err)
			}
		}
		return hash
	}
	try := func(call string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	hash := pin(2)
	if n, err := h.Collect(t.Context()); n != 0 || err != nil {
		t.Errorf("Collect = %d, %v, want 0: it is held", n, err)
	}
	try("Release", h.Unpin(t.Context(), hash))
	try("Drop", h.Drop(t.Context(), hash))
	holds(t, s, data)
	try("Release", h.Unpin(t.Context(), hash))
	holds(t, s)

	hash = pin(1)
	claimed[hash] = true
	try("Release", h.Unpin(t.Context(), hash))
	try("Drop", h.Drop(t.Context(), hash))
	holds(t, s, data)
	delete(claimed, hash)
	name := add(t, h, data, Noon())
	try("Drop", h.Drop(t.Context(), hash))
	holds(t, s, data)
	try("Remove", h.Remove(t.Context(), name))
	holds(t, s)
	put(t, s, data)
	try("Drop", h.Drop(t.Context(), hash))
	holds(t, s)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Pin(ctx, data); !errors.Is(err, context.Canceled) {
		t.Errorf("Hold with a cancelled context = %v", err)
	}
	holds(t, s)
}

// delay tests that a blob stays for the Delay, and longer if something needs it again.
func delay(t *testing.T, open opener) {
	a, b, claimed := []byte("a"), []byte("b"), map[blob.Hash]bool{}
	h, s := open(t, blob.HostedOptions{
		Random: Random(9), Delay: 10 * time.Minute, References: func(h blob.Hash) bool { return claimed[h] },
	})
	sweep := func(after time.Duration) {
		t.Helper()
		if _, err := h.Sweep(t.Context(), Noon().Add(after)); err != nil {
			t.Errorf("Sweep after %v: %v", after, err)
		}
	}
	for _, data := range [][]byte{a, b} {
		put(t, s, data)
		if err := h.Drop(t.Context(), blob.Sum(data)); err != nil {
			t.Errorf("Drop: %v", err)
		}
	}
	sweep(0)
	sweep(9 * time.Minute)
	if n, err := h.Collect(t.Context()); n != 0 || err != nil {
		t.Errorf("Collect = %d, %v, want 0: the blobs wait", n, err)
	}
	holds(t, s, a, b)
	claimed[blob.Sum(a)] = true
	sweep(10 * time.Minute)
	holds(t, s, a)
	delete(claimed, blob.Sum(a))

	// A pin begins the time again.
	if err := h.Drop(t.Context(), blob.Sum(a)); err != nil {
		t.Errorf("Drop: %v", err)
	}
	sweep(20 * time.Minute)
	if _, err := h.Pin(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	sweep(30 * time.Minute)
	if err := h.Unpin(t.Context(), blob.Sum(a)); err != nil {
		t.Errorf("Unpin: %v", err)
	}
	sweep(31 * time.Minute)
	sweep(40 * time.Minute)
	holds(t, s, a)
	sweep(41 * time.Minute)
	holds(t, s)
}

// listedBlobs tests that Collect deletes only blobs that Each lists.
func listedBlobs(t *testing.T, open opener) {
	old, young := []byte("old"), []byte("young")
	h, s := open(t, blob.HostedOptions{Random: Random(10), Each: func(_ context.Context, _ blob.Hash, yield func(blob.Hash) error) error {
		return yield(blob.Sum(old))
	}})
	put(t, s, old)
	put(t, s, young)
	if n, err := h.Collect(t.Context()); n != 1 || err != nil {
		t.Errorf("Collect = %d, %v, want 1", n, err)
	}
	holds(t, s, young)
}

// againstModel compares random operations on names with the same operations on a list.
func againstModel(t *testing.T, open opener) {
	type entry struct {
		name string
		data []byte
		ends time.Time
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h, s := open(t, blob.HostedOptions{Random: Random(seed)})
		var model []entry
		now := Noon()
		for range 60 {
			switch rng.IntN(4) {
			case 0, 1:
				e := entry{data: []byte{byte(rng.IntN(5))}}
				if rng.IntN(3) > 0 {
					e.ends = now.Add(time.Duration(rng.IntN(10)) * time.Minute)
				}
				e.name = add(t, h, e.data, e.ends)
				model = append(model, e)
			case 2:
				if len(model) > 0 {
					i := rng.IntN(len(model))
					if err := h.Remove(t.Context(), model[i].name); err != nil {
						t.Fatal(err)
					}
					model = append(model[:i:i], model[i+1:]...)
				}
			case 3:
				now = now.Add(time.Duration(rng.IntN(5)) * time.Minute)
				want := 0
				var left []entry
				for _, e := range model {
					if !e.ends.IsZero() && !now.Before(e.ends) {
						want++
					} else {
						left = append(left, e)
					}
				}
				model = left
				if n, err := h.Sweep(t.Context(), now); n != want || err != nil {
					t.Fatalf("seed %d: Sweep = %d, %v, want %d", seed, n, err, want)
				}
			}
		}
		blobs := map[string]bool{}
		var want [][]byte
		for _, e := range model {
			if !blobs[string(e.data)] {
				blobs[string(e.data)] = true
				want = append(want, e.data)
			}
			p, err := h.Lookup(e.name, now.Add(-time.Hour))
			if err != nil || p.Hash != blob.Sum(e.data) || !p.Expires.Equal(e.ends) {
				t.Fatalf("seed %d: Lookup = %v, %v, want %v", seed, p, err, e)
			}
		}
		holds(t, s, want...)
		if h.Len() != len(model) {
			t.Fatalf("seed %d: Len() = %d, want %d", seed, h.Len(), len(model))
		}
	}
}

func concurrentNames(t *testing.T, open opener) {
	var mu sync.Mutex
	source := Random(8)
	h, s := open(t, blob.HostedOptions{Random: readerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return source.Read(p)
	})})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 30 {
				data := fmt.Appendf(nil, "picture %d", i%3)
				name, hash, err := h.Add(t.Context(), blob.AppID{}, data, "", time.Time{})
				if err != nil {
					t.Errorf("Add: %v", err)
					return
				}
				// A name keeps its blob while other goroutines remove their names of it.
				if got, err := s.Get(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Get = %q, %v, want %q", got, err, data)
				}
				if w == 0 {
					if _, err := h.Sweep(t.Context(), Noon()); err != nil {
						t.Errorf("Sweep: %v", err)
					}
				}
				if err := h.Remove(t.Context(), name); err != nil {
					t.Errorf("Remove: %v", err)
				}
			}
		})
	}
	wg.Wait()
	holds(t, s)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
