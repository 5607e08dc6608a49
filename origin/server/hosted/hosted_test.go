package hosted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
	"github.com/sightline-dev/sightline/origin/server/location"
)

// world is a folder of blobs with hosted files. The name of a file is the hash of its bytes.
type world struct {
	t     *testing.T
	fsys  *gated
	blobs *blob.Folder
	files *Files
}

// gated is a file system whose reads of complete files wait while the gate is closed.
type gated struct {
	*blobtest.FS
	mu    sync.Mutex
	gate  chan struct{} // nil: open
	reads int           // complete reads that have begun
}

// Open implements [blob.FS].
func (g *gated) Open(name string) (io.ReadCloser, error) {
	f, err := g.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &gatedFile{g, f.(file), false}, nil
}

type file interface {
	io.ReadCloser
	io.ReaderAt
}

type gatedFile struct {
	g *gated
	file
	begun bool
}

func (f *gatedFile) Read(p []byte) (int, error) {
	if !f.begun {
		f.begun = true
		f.g.mu.Lock()
		f.g.reads++
		gate := f.g.gate
		f.g.mu.Unlock()
		if gate != nil {
			<-gate
		}
	}
	return f.file.Read(p)
}

// shut closes the gate, and returns the function that opens it.
func (g *gated) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := make(chan struct{})
	g.gate = gate
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.gate = nil
		close(gate)
	}
}

func (g *gated) begun() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, fsys: &gated{FS: blobtest.NewFS()}}
	var err error
	if w.blobs, err = blob.OpenFolder(w.fsys, blob.Options{}); err != nil {
		t.Fatal(err)
	}
	w.files = New(Options{
		Picture: func(name string) (blob.Picture, error) {
			h, err := blob.ParseHash(name)
			if err != nil {
				return blob.Picture{}, blob.ErrNotFound
			}
			return blob.Picture{Hash: h, ContentType: "image/jpeg"}, nil
		},
		Thumbnail: func(string) ([]byte, error) { return []byte("thumbnail"), nil },
		Owner:     func(p *blob.Picture) string { return "account" },
		Blobs:     w.blobs, Workers: 1,
	})
	t.Cleanup(func() { _ = w.files.Close() })
	return w
}

func (w *world) put(data []byte) blob.Hash {
	w.t.Helper()
	h, err := w.blobs.Put(w.t.Context(), bytes.NewReader(data), blob.Hash{})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// read returns the bytes from ≤ i < to of the file with a path below /hosted/.
func (w *world) read(ctx context.Context, name string, from, to int64) ([]byte, error) {
	p, err := w.files.Open(ctx, &api.Request{}, name)
	if err != nil {
		return nil, err
	}
	r, err := p.Open(ctx, &api.Request{}, from, min(to, p.Size))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// photo returns a JPEG-like file of n bytes with a comment that the reduced form lacks.
func photo(n int, seed uint64) []byte {
	b := []byte("\xff\xd8\xff\xfe\x00\x0fa place here.\xff\xda\x00\x02")
	rnd := rand.New(rand.NewPCG(seed, 0))
	for len(b) < n {
		b = append(b, byte(rnd.UintN(255)))
	}
	return b
}

const all = 1 << 40

// TestParts reads random parts of files of several sizes, in both forms.
func TestParts(t *testing.T) {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{22, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7} {
		data := photo(n, uint64(n))
		h := w.put(data)
		edits, err := location.Edits(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		reduced := bytes.Clone(data)
		location.Apply(edits, reduced, 0)
		if bytes.Equal(reduced, data) {
			t.Fatal("the place is not removed")
		}
		for path, want := range map[string][]byte{h.String(): reduced, h.String() + "/" + h.String(): data} {
			for range 50 {
				from := rnd.IntN(n)
				to := from + rnd.IntN(n-from+1)
				if got, err := w.read(t.Context(), path, int64(from), int64(to)); err != nil || !bytes.Equal(got, want[from:to]) {
					t.Fatalf("%s: bytes %d to %d of %d differ, %v", path, from, to, n, err)
				}
			}
		}
	}
	if got, err := w.read(t.Context(), "any/thumbnail", 1, 5); err != nil || string(got) != "humb" {
		t.Errorf("thumbnail: %q, %v", got, err)
	}
	h := w.put([]byte("picture"))
	for _, path := range []string{"x", h.String() + "/" + blob.Sum(nil).String(), h.String() + "/"} {
		if _, err := w.read(t.Context(), path, 0, all); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v, want not found", path, err)
		}
	}
}

// TestPlanIsMadeOnce reads many parts of one file. Only the first one reads the complete file.
func TestPlanIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	h := w.put(photo(5*pieceBytes, 1)).String()
	for i := range int64(20) {
		if _, err := w.read(t.Context(), h, i, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.fsys.begun(); n != 1 {
		t.Errorf("the file was read %d times", n)
	}
}

// TestDamagedPart damages a file before and after its plan is made. No damaged byte is returned. After the plan, the other pieces are.
func TestDamagedPart(t *testing.T) {
	data := photo(3*pieceBytes, 1)
	damaged := int64(len(data) / 2) // as blobtest.FS damages it
	w := newWorld(t)
	h := w.put(data).String()
	w.fsys.Damage("blobs/")
	if _, err := w.read(t.Context(), h, 0, 1); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("damaged before the plan: %v", err)
	}

	w = newWorld(t)
	w.put(data)
	if _, err := w.read(t.Context(), h, 0, 1); err != nil {
		t.Fatal(err)
	}
	w.fsys.Damage("blobs/")
	for _, tt := range []struct{ from, to, want int64 }{
		{0, all, pieceBytes}, {damaged, damaged + 1, 0}, {pieceBytes - 1, pieceBytes + 1, 1}, {2*pieceBytes - 1, 2 * pieceBytes, 0},
	} {
		if got, err := w.read(t.Context(), h, tt.from, tt.to); !errors.Is(err, blob.ErrCorrupt) || int64(len(got)) != tt.want {
			t.Errorf("bytes %d to %d: %d bytes, %v; want %d", tt.from, tt.to, len(got), err, tt.want)
		}
	}
	for _, tt := range []struct{ from, to int64 }{{0, pieceBytes}, {2 * pieceBytes, 3 * pieceBytes}} {
		if got, err := w.read(t.Context(), h, tt.from, tt.to); err != nil || int64(len(got)) != tt.to-tt.from {
			t.Errorf("bytes %d to %d: %d bytes, %v", tt.from, tt.to, len(got), err)
		}
	}
}

// TestStoredFileHasAnotherLength replaces a file by one that is longer or shorter, before and after its plan is made. The answers of both
// forms are short, also if the missing bytes are complete pieces.
func TestStoredFileHasAnotherLength(t *testing.T) {
	data := photo(3*pieceBytes, 1)
	for _, stored := range [][]byte{append(bytes.Clone(data), 'x'), append(bytes.Clone(data), data...), data[:2*pieceBytes], data[:len(data)-1], {}} {
		for _, planned := range []bool{false, true} {
			w := newWorld(t)
			h := w.put(data)
			paths := []string{h.String(), h.String() + "/" + h.String()}
			for _, path := range paths {
				if planned {
					if _, err := w.read(t.Context(), path, 0, 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, name := range w.fsys.Files() {
				if err := w.fsys.Remove(name); err != nil {
					t.Fatal(err)
				}
				f, err := w.fsys.Create(name)
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Write(stored)
				if err = errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
			}
			for _, path := range paths {
				if got, err := w.read(t.Context(), path, 0, all); !errors.Is(err, blob.ErrCorrupt) {
					t.Errorf("planned %v, %d bytes stored: %d bytes, %v", planned, len(stored), len(got), err)
				}
			}
			r, err := w.files.Part(t.Context(), &api.Request{}, "caller", h, 0, int64(len(stored)))
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("planned %v, %d bytes stored: part: %v", planned, len(stored), err)
			}
		}
	}
}

// TestReadersShareAPlan makes ten readers wait for one file. The file is read once, all get it, and the reader that came first may leave.
func TestReadersShareAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := w.put(photo(1000, 1)).String()
		open := w.fsys.shut()
		first, leave := context.WithCancel(t.Context())
		results := make(chan error, 10)
		for i := range 10 {
			ctx := t.Context()
			if i == 0 {
				ctx = first
			}
			go func() {
				_, err := w.read(ctx, h, 0, all)
				results <- err
			}()
			synctest.Wait()
		}
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader that left: %v", err)
		}
		open()
		for range 9 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if n := w.fsys.begun(); n != 1 {
			t.Errorf("the file was read %d times", n)
		}
	})
}

// TestPlanEndsWithItsReaders cancels all readers of a plan that waits for its place. The plan is not made, and the place goes to another.
func TestPlanEndsWithItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, second, third := w.put(photo(1000, 1)).String(), w.put(photo(1000, 2)).String(), w.put(photo(1000, 3)).String()
		open := w.fsys.shut()
		results := make(chan error, 3)
		read := func(ctx context.Context, name string) {
			go func() {
				_, err := w.read(ctx, name, 0, all)
				results <- err
			}()
			synctest.Wait()
		}
		ctx, leave := context.WithCancel(t.Context())
		read(t.Context(), first)
		read(ctx, second)
		read(ctx, second)
		leave()
		for range 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("a reader that left: %v", err)
			}
		}
		read(t.Context(), third)
		open()
		synctest.Wait()
		if err := errors.Join(<-results, nil); err != nil {
			t.Error(err)
		}
		if n := w.fsys.begun(); n != 2 {
			t.Errorf("%d files were read, want the first and the third", n)
		}
	})
}

// TestPlanTakesTooLong makes a reader wait for ten seconds. Then it gets the error "busy".
func TestPlanTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := w.put(photo(1000, 1)).String()
		open := w.fsys.shut()
		began := time.Now()
		_, err := w.read(t.Context(), h, 0, all)
		if took := time.Since(began); !errors.Is(err, api.ErrBusy) || took != maxWait {
			t.Errorf("after %v: %v", took, err)
		}
		open()
		synctest.Wait()
		if _, err := w.read(t.Context(), h, 0, all); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

// TestPlansAreBounded keeps plans until they take more than their memory. The plan that was not used for the longest time goes first.
func TestPlansAreBounded(t *testing.T) {
	p := newPlans(nil, 1)
	large := &plan{sums: make([]uint32, 250_000)} // 1 MB
	keyOf := func(i int) key { return key{hash: blob.Sum([]byte(fmt.Sprint(i)))} }
	p.mu.Lock()
	for i := range 100 {
		p.keep(keyOf(i), large)
		if p.findLocked(keyOf(0)) == nil {
			t.Fatalf("plan %d displaces one that is in use", i)
		}
	}
	if p.bytes > maxPlans || p.bytes < maxPlans-2*large.bytes() || len(p.known) != p.recent.Len() {
		t.Errorf("%d plans of %d bytes", len(p.known), p.bytes)
	}
	if p.findLocked(keyOf(1)) != nil || p.findLocked(keyOf(99)) == nil {
		t.Error("an old plan is kept, or the newest is not")
	}
	p.mu.Unlock()
}

// noMemory grants an answer at most its number of bytes.
type noMemory int64

func (n noMemory) Reserve(total int64) bool { return total <= int64(n) }
func (n noMemory) Room() int64              { return int64(n) }
func (n noMemory) Settle(int64)             {}

// TestReaderNeedsMemory opens a file when the host has no memory left for the reader's piece and plan.
func TestReaderNeedsMemory(t *testing.T) {
	w := newWorld(t)
	p, err := w.files.Open(t.Context(), &api.Request{}, w.put(photo(1000, 1)).String())
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[noMemory]error{pieceBytes: api.ErrBusy, pieceBytes + 1<<10: nil} {
		r, err := p.Open(t.Context(), &api.Request{Memory: m}, 0, 1000)
		if !errors.Is(err, want) {
			t.Errorf("with %d bytes: %v, want %v", m, err, want)
		}
		if err == nil {
			_ = r.Close()
		}
	}
}
