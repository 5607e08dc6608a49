package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// bench calls imports without a guest. It has an instance and 64 KiB of memory.
type bench struct {
	mem []byte
	in  *Instance
}

func newBench(services Services) *bench {
	begun := apitest.Start
	rt := &Runtime{o: Options{Now: func() time.Time { return begun.Add(time.Second) }, Rand: newSeeded()}, begun: begun}
	host, err := hostcalls.New(services, "")
	if err != nil {
		panic(err) // hostcalls.New fails only for a wrong application
	}
	return &bench{make([]byte, 1<<16), &Instance{rt: rt, host: host}}
}

// importNamed returns the import with this name.
func importNamed(name string) hostFunc {
	return imports[slices.IndexFunc(imports, func(im hostImport) bool { return im.name == name })].hostFunc
}

// call calls an import. ended is the error with which the import ended the guest, or nil.
func (b *bench) call(f hostFunc, args ...uint64) (answer uint64, ended error) {
	c := &call{ctx: context.Background(), in: b.in, memory: &ranges{spans: []piece{{0, b.mem}}}, stack: append(args, 0)[:max(len(args), 1)]}
	defer func() {
		if v := recover(); v != nil {
			ended = v.(error)
		}
	}()
	f(c)
	return c.stack[0], nil
}

func (b *bench) put(at int, words ...uint32) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(b.mem[at+4*i:], w)
	}
}

func (b *bench) word(at int) uint32 { return binary.LittleEndian.Uint32(b.mem[at:]) }

// TestPrinted: the host keeps the end of a guest's output to files 1 and 2, and rejects writes to other files.
func TestPrinted(t *testing.T) {
	b := newBench(Services{})
	copy(b.mem[1000:], "panic: out of luck")
	b.put(64, 1000, 7, 1007, 11)
	for file, want := range []uint64{wasiBadF, wasiOK, wasiOK, wasiBadF} {
		b.put(32, 99)
		answer, err := b.call(wasiWrite, uint64(file), 64, 2, 32)
		if answer != want || err != nil || want == wasiOK && b.word(32) != 18 {
			t.Errorf("fd_write(%d) = %d, %v, %d bytes, want %d", file, answer, err, b.word(32), want)
		}
	}
	if got := string(b.in.printed); got != strings.Repeat("panic: out of luck", 2) {
		t.Errorf("printed %q", got)
	}
	if answer, _ := b.call(wasiWrite, 1, 64, maxVectors+1, 32); answer != wasiInval {
		t.Errorf("fd_write of too many pieces = %d, want %d", answer, wasiInval)
	}
	for i := range b.mem[2000:40000] {
		b.mem[2000+i] = byte('a' + i%26)
	}
	b.put(64, 2000, 38000)
	if _, err := b.call(wasiWrite, 2, 64, 1, 32); err != nil || !bytes.Equal(b.in.printed, b.mem[40000-maxPrinted:40000]) {
		t.Errorf("of much that is printed %d bytes are kept, %v, want the last %d", len(b.in.printed), err, maxPrinted)
	}
	b.put(64, 2000, 10)
	if _, err := b.call(wasiWrite, 2, 64, 1, 32); err != nil || len(b.in.printed) != maxPrinted || !bytes.HasSuffix(b.in.printed, b.mem[2000:2010]) {
		t.Errorf("%d bytes are kept, %v, want %d that end with the newest", len(b.in.printed), err, maxPrinted)
	}
	b.put(64, 1<<16-4, 8)
	if _, err := b.call(wasiWrite, 2, 64, 1, 32); !errors.Is(err, abi.ErrRange) {
		t.Errorf("printing from outside of memory ends with %v, want ErrWild", err)
	}
}

// TestPoll: poll_oneoff never waits. Each clock has expired, and each file is an error.
func TestPoll(t *testing.T) {
	b := newBench(Services{})
	for i, kind := range []byte{0, 1, 2} {
		binary.LittleEndian.PutUint64(b.mem[1000+subscriptionBytes*i:], uint64(70+i))
		b.mem[1000+subscriptionBytes*i+8] = kind
	}
	if answer, err := b.call(wasiPoll, 1000, 2000, 3, 32); answer != wasiOK || err != nil || b.word(32) != 3 {
		t.Fatalf("poll_oneoff = %d, %v, %d events, want 3", answer, err, b.word(32))
	}
	for i, code := range []byte{0, wasiBadF, wasiBadF} {
		e := b.mem[2000+eventBytes*i:]
		if e[0] != byte(70+i) || e[8] != code || e[10] != byte(i) {
			t.Errorf("event %d = % x, want of %d with error %d", i, e[:eventBytes], 70+i, code)
		}
	}
	for _, n := range []uint64{0, maxSubscriptions + 1} {
		if answer, _ := b.call(wasiPoll, 1000, 2000, n, 32); answer != wasiInval {
			t.Errorf("poll_oneoff of %d = %d, want %d", n, answer, wasiInval)
		}
	}
	if _, err := b.call(wasiPoll, 1000, 1<<16-8, 1, 32); !errors.Is(err, abi.ErrRange) {
		t.Errorf("events outside of memory end with %v, want ErrWild", err)
	}
}

// TestNoRandomness: if the host's random source fails, the guest ends, so that it makes no keys from zeros.
func TestNoRandomness(t *testing.T) {
	b := newBench(Services{Rand: newSeeded()})
	for _, f := range []hostFunc{importNamed("random"), wasiRandom} {
		clear(b.mem)
		if _, err := b.call(f, 1000, 32); err != nil || bytes.Equal(b.mem[1000:1032], make([]byte, 32)) {
			t.Errorf("random = % x, %v", b.mem[1000:1032], err)
		}
	}
	broken := errors.New("no more")
	b.in.host.Rand, b.in.rt.o.Rand = iotest.ErrReader(broken), iotest.ErrReader(broken)
	for _, f := range []hostFunc{importNamed("random"), wasiRandom} {
		if _, err := b.call(f, 1000, 32); !errors.Is(err, broken) {
			t.Errorf("without randomness the guest ends with %v, want %v", err, broken)
		}
	}
}

// TestOlderNetworks lists the files of an older network and reads them.
func TestOlderNetworks(t *testing.T) {
	files := fstest.MapFS{"general/manifest.json": {Data: []byte("{}")}, "general/network": {Data: []byte("weights")}}
	b := newBench(Services{})
	b.mem[0] = 7 // the base is at address 0
	ask := func(name string, room uint64) (int64, string) {
		t.Helper()
		copy(b.mem[100:], name)
		answer, err := b.call(importNamed("older"), 0, 100, uint64(len(name)), 1000, room)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(answer)
		if n < 0 || uint64(n) > room {
			return n, ""
		}
		return n, string(b.mem[1000 : 1000+n])
	}
	absent := func(err error) int64 { return -int64(abi.ErrnoOf(err)) }
	if n, _ := ask("", 99); n != absent(fs.ErrNotExist) {
		t.Errorf("without older networks: %d, want %d", n, absent(fs.ErrNotExist))
	}
	b.in.host.Services.Older = func(base [32]byte) (fs.FS, error) {
		if base != [32]byte{7} {
			return nil, fs.ErrNotExist
		}
		return files, nil
	}
	for _, tt := range []struct {
		name string
		room uint64
		n    int64
		text string
	}{
		{"", 99, 37, "general/manifest.json\ngeneral/network"},
		{"", 5, 37, ""},
		{"general/network", 99, 7, "weights"},
		{"general/network", 6, 7, ""},
		{"general", 99, absent(fs.ErrInvalid), ""},
		{"general/other", 99, -int64(abi.KeyNotFound), ""},
	} {
		if n, text := ask(tt.name, tt.room); n != tt.n || text != tt.text {
			t.Errorf("older(%q) with room for %d = %d, %q, want %d, %q", tt.name, tt.room, n, text, tt.n, tt.text)
		}
	}
	b.mem[0] = 8
	if n, _ := ask("", 99); n != absent(fs.ErrNotExist) {
		t.Errorf("of a base that nobody has: %d, want %d", n, absent(fs.ErrNotExist))
	}
}

// TestMissingHostServices: a guest gets errors for services that its host does not have.
func TestMissingHostServices(t *testing.T) {
	b := newBench(Services{})
	code := uint64(abi.ErrnoOf(hostcalls.ErrNotProvided))
	for _, name := range []string{"picture_release", "picture_drop", "kv_room"} {
		if answer, err := b.call(importNamed(name), 0, 0, 0); answer != code || err != nil {
			t.Errorf("%s = %d, %v, want %d", name, answer, err, code)
		}
	}
	for _, name := range []string{"bundle", "picture_lookup", "count"} {
		if answer, err := b.call(importNamed(name), 0, 0, 100, 0); -int64(answer) != int64(code) || err != nil {
			t.Errorf("%s = %d, %v, want -%d", name, int64(answer), err, code)
		}
	}
}

// TestTurnEndsWithContext: a request stops waiting for an instance in use when its context ends. The error names the cause.
func TestTurnEndsWithContext(t *testing.T) {
	w := newWriter(nil, "app")
	if !w.try() || w.try() {
		t.Fatal("an instance is used by two")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.take(ctx); !errors.Is(err, errStopping) {
		t.Errorf("take = %v, want %v", err, errStopping)
	}
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	if err := w.take(late); !errors.Is(err, api.ErrTimeout) {
		t.Errorf("take = %v, want %v", err, api.ErrTimeout)
	}
	w.turn <- struct{}{}
	if err := w.take(ctx); err != nil {
		t.Errorf("take of what is free = %v", err)
	}
}

// TestPicturesOfAGuest: an instance that stores its pictures itself returns ErrNotFound for unknown names.
func TestPicturesOfAGuest(t *testing.T) {
	in, err := module(t).Open(t.Context(), Services{Bundles: apitest.TinyBundles(t), Clock: func() time.Time { return apitest.Start }, Rand: newSeeded()},
		abi.Settings{Role: abi.Engine, Store: abi.StoreMemory, OpenDoor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"", "nonsense", strings.Repeat("0", 32)} {
		if p, err := in.HostedPicture(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Hosted(%q) = %v, %v, want %v", name, p, err, blob.ErrNotFound)
		}
		if b, err := in.Thumbnail(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Thumbnail(%q) = %d bytes, %v, want %v", name, len(b), err, blob.ErrNotFound)
		}
	}
	if m, err := in.Memory(t.Context()); err != nil || m.Heap == 0 || m.System < m.Heap {
		t.Errorf("Memory = %+v, %v", m, err)
	}
}
