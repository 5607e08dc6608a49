package host

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// memoryFiles implements the files of a host in memory.
type memoryFiles [4][]byte

func (f *memoryFiles) Size(file int) (int64, error) { return int64(len(f[file])), nil }

func (f *memoryFiles) Read(file int, offset int64, dst []byte) error {
	if offset > int64(len(f[file])) || copy(dst, f[file][offset:]) < len(dst) {
		return hostcalls.ErrTooLong
	}
	return nil
}

func (f *memoryFiles) Write(file int, offset int64, src []byte) error {
	if end := offset + int64(len(src)); end > 1<<20 {
		return kv.ErrFull
	} else if end > int64(len(f[file])) {
		f[file] = append(f[file], make([]byte, end-int64(len(f[file])))...)
	}
	copy(f[file][offset:], src)
	return nil
}

func (f *memoryFiles) Truncate(file int, size int64) error {
	if size > int64(len(f[file])) {
		return kv.ErrFull
	}
	f[file] = f[file][:size]
	return nil
}

func (f *memoryFiles) Sync(int) error { return nil }

// mint issues and accepts one token.
type mint struct{}

var claims = auth.Claims{App: "00000000000000000000000000000001", Client: "c", Generation: 3}

func (mint) Issue(auth.Claims) (string, time.Duration, error) { return "token", time.Minute, nil }

func (mint) Read(token string) (auth.Claims, error) {
	if token != "token" {
		return auth.Claims{}, auth.ErrToken
	}
	return claims, nil
}

// prober calls imports from inside a guest with any arguments.
type prober struct {
	t        testing.TB
	rt       *Runtime
	services Services
	in       *Instance
}

func newProber(t testing.TB) *prober {
	g := newGuest()
	g.imports = imports
	g.bodies["serve"] = g.caller()
	p := &prober{t: t, rt: newRuntime(t, options(g.encode())), services: testServices(t)}
	p.services.Files, p.services.Tokens = &memoryFiles{}, mint{}
	var b kv.Batch
	for i := range 100 {
		b.Put(binary.BigEndian.AppendUint32([]byte("k"), uint32(i)), make([]byte, 3*i))
	}
	if err := p.services.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.in != nil {
			if err := p.in.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// call calls import number n. It returns the import's result, or the error that ended the guest.
func (p *prober) call(n int, args ...uint64) (uint64, error) {
	p.t.Helper()
	if p.in == nil {
		var err error
		if p.in, err = p.rt.Open(context.Background(), p.services, abi.Settings{Role: abi.Engine, Store: abi.StoreHost}); err != nil {
			p.t.Fatal(err)
		}
	}
	sent := make([]byte, 8, 64)
	sent[0] = byte(n)
	for _, a := range args {
		sent = binary.LittleEndian.AppendUint64(sent, a)
	}
	answer, err := p.in.call(context.Background(), "serve", sent)
	if err == nil {
		return binary.LittleEndian.Uint64(answer), nil
	}
	if !errors.Is(err, abi.ErrRange) && !errors.Is(err, hostcalls.ErrTooMany) {
		p.t.Fatalf("%s(%x) ends the guest with %v", imports[n].name, args, err)
	}
	if err := p.in.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.in = nil
	return 0, err
}

func importOf(t testing.TB, name string) int {
	t.Helper()
	for i, im := range imports {
		if im.name == name {
			return i
		}
	}
	t.Fatalf("no import %s", name)
	return 0
}

// at writes data to the guest's memory and returns its address and length.
func (p *prober) at(address uint32, data string) (a, n uint64) {
	p.t.Helper()
	if p.in == nil {
		p.call(importOf(p.t, "now"))
	}
	if !p.in.module.Memory().Write(address, []byte(data)) {
		p.t.Fatal("no room")
	}
	return uint64(address), uint64(len(data))
}

func (p *prober) name(name string, args ...uint64) int64 {
	p.t.Helper()
	v, err := p.call(importOf(p.t, name), args...)
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	if n := importOf(p.t, name); len(imports[n].results) > 0 && imports[n].results[0] == kernels.Types("i")[0] {
		return int64(int32(v))
	}
	return int64(v)
}

func (p *prober) read(address, n uint64) string {
	b, _ := p.in.module.Memory().Read(uint32(address), uint32(n))
	return string(b)
}

// TestImports checks the results of the imports.
func TestImports(t *testing.T) {
	p := newProber(t)
	const room, size = 40 << 10, 8 << 10
	if got := p.name("now"); got != time.Unix(1_700_000_000, 0).UnixNano() {
		t.Errorf("now = %d", got)
	}
	p.name("random", room, 16)
	if got := p.read(room, 16); got == string(make([]byte, 16)) {
		t.Errorf("random = %x", got)
	}
	a, n := p.at(50_000, "general/a")
	if got := p.name("bundle", a, n, room, 3); got != 4 {
		t.Errorf("bundle without room = %d", got)
	}
	if got := p.name("bundle", a, n, room, size); got != 4 || p.read(room, 4) != "aaaa" {
		t.Errorf("bundle = %d", got)
	}
	if got := p.name("bundle", a, n-1, room, size); got != -int64(abi.KeyNotFound) {
		t.Errorf("missing bundle = %d", got)
	}
	a, n = p.at(50_000, "k\x00\x00\x00\x02")
	if got := p.name("kv_get", 0, a, n, room, size); got != 6 {
		t.Errorf("kv_get = %d", got)
	}
	if got := p.name("kv_get", 0, a, n-1, room, size); got != -int64(abi.KeyNotFound) {
		t.Errorf("kv_get of no key = %d", got)
	}
	if got := p.name("kv_get", 99, a, n, room, size); got != -int64(abi.StoreClosed) {
		t.Errorf("kv_get of no snapshot = %d", got)
	}
	snapshot := uint64(p.name("kv_snapshot"))
	var b kv.Batch
	b.DeleteRange([]byte("k"), []byte("l"))
	b.Put([]byte("z"), []byte("new"))
	a, n = p.at(50_000, string(b.Bytes()))
	if got := p.name("kv_commit", a, n); got != 0 {
		t.Errorf("kv_commit = %d", got)
	}
	if got := p.name("kv_apply", a, n-1); got != int64(abi.Other) {
		t.Errorf("kv_apply of no batch = %d", got)
	}
	for _, tt := range []struct {
		snapshot, back uint64
		records        int
	}{{snapshot, 0, 100}, {snapshot, 1, 100}, {0, 0, 1}} {
		scan := uint64(p.name("kv_scan", tt.snapshot, 0, 0, 0, 1<<32-1, tt.back))
		records := 0
		for {
			got := p.name("kv_next", scan, room, 500)
			if got == 0 {
				break
			}
			for data := []byte(p.read(room, uint64(got))); len(data) > 0; records++ {
				var err error
				if _, _, data, err = abi.NextRecord(data); err != nil {
					t.Fatal(err)
				}
			}
		}
		if records != tt.records {
			t.Errorf("a scan has %d records, want %d", records, tt.records)
		}
		p.name("kv_end", scan)
		if got := p.name("kv_next", scan, room, size); got != -int64(abi.StoreClosed) {
			t.Errorf("kv_next of a scan that has ended = %d", got)
		}
	}
	scan := uint64(p.name("kv_scan", snapshot, 0, 0, 0, 1<<32-1, 1))
	if got := p.name("kv_next", scan, room, 5); got != 8+5+3*99 {
		t.Errorf("kv_next without room = %d", got)
	}
	p.name("kv_release", snapshot) // releases its scan too
	if snapshots, scans := p.in.host.Open(); snapshots+scans != 0 {
		t.Errorf("%d snapshots, %d scans are open", snapshots, scans)
	}
	if p.name("kv_room") != 0 || p.name("kv_compact", 0, 0, 0, 1<<32-1) != 0 {
		t.Error("kv_room, kv_compact")
	}
	p.files(room)
	p.pictures(room, size)
	a, n = p.at(50_000, string(abi.MarshalClaims(claims)))
	if got := p.name("token_issue", a, n, room, size); got != 8+5 {
		t.Errorf("token_issue = %d", got)
	}
	a, n = p.at(50_000, "token")
	if got := p.name("token_read", a, n, room, size); p.read(room, uint64(got)) != string(abi.MarshalClaims(claims)) {
		t.Errorf("token_read = %d", got)
	}
	if got := p.name("token_read", a, n-1, room, size); got != -int64(abi.BadToken) {
		t.Errorf("token_read of none = %d", got)
	}
	p.count(room, size)
}

func (p *prober) files(room uint64) {
	t := p.t
	t.Helper()
	a, n := p.at(50_000, "hello")
	if p.name("file_write", 1, 3, a, n) != 0 || p.name("file_size", 1) != 8 || p.name("file_sync", 1) != 0 {
		t.Error("file_write")
	}
	if p.name("file_read", 1, 4, room, 4) != 0 || p.read(room, 4) != "ello" {
		t.Error("file_read")
	}
	if p.name("file_read", 1, 5, room, 4) == 0 || p.name("file_read", 1, ^uint64(0), room, 1) == 0 || p.name("file_write", 4, 0, a, n) == 0 {
		t.Error("reading and writing what is not there")
	}
	if p.name("file_truncate", 1, 2) != 0 || p.name("file_size", 1) != 2 || p.name("file_size", 4) != -int64(abi.Other) || p.name("file_sync", 9) == 0 {
		t.Error("file_truncate, file_size")
	}
}

func (p *prober) pictures(room, size uint64) {
	t := p.t
	t.Helper()
	a, n := p.at(50_000, "picture")
	b, m := p.at(50_100, "image/png")
	if got := p.name("picture_add", a, n, b, m, 0, room); got != 0 {
		t.Errorf("picture_add = %d", got)
	}
	name := p.read(room, abi.PictureNameBytes)
	if got := p.name("picture_add", a, n, a, 0, 0, room+100); got != int64(abi.Other) && got != 0 {
		t.Errorf("picture_add without a type = %d", got)
	}
	at, _ := p.at(50_200, name)
	got := p.name("picture_lookup", at, room, size)
	picture, err := abi.ParsePicture([]byte(p.read(room, uint64(got))))
	if err != nil || picture.ContentType != "image/png" {
		t.Errorf("picture_lookup = %d: %+v, %v", got, picture, err)
	}
	at, _ = p.at(50_200, string(make([]byte, 32)))
	if got := p.name("picture_lookup", at, room, size); got != -int64(abi.BlobNotFound) {
		t.Errorf("picture_lookup of none = %d", got)
	}
	if p.name("picture_drop", at) != 0 {
		t.Error("picture_drop")
	}
}

// count checks the import count: for an allowed call, for a refused one, and for a reason that is longer than its room.
func (p *prober) count(room, size uint64) {
	t := p.t
	t.Helper()
	for _, tt := range []struct {
		reason string
		room   uint64
		want   int64
	}{{"", 0, 0}, {"none left", size, 9}, {"none left", 8, -int64(abi.Other)}} {
		p.services.Count = func(string) string { return tt.reason }
		p.in.host.Services.Count = p.services.Count
		if got := p.name("count", room, tt.room); got != tt.want || got > 0 && p.read(room, uint64(got)) != tt.reason {
			t.Errorf("count with %q = %d, want %d", tt.reason, got, tt.want)
		}
	}
}

// TestOpenScansAreBounded: a guest gets an error for one open scan too many, and ends at one snapshot too many.
func TestOpenScansAreBounded(t *testing.T) {
	p := newProber(t)
	for range hostcalls.MaxOpen {
		p.name("kv_scan", 0, 0, 0, 0, 0, 0)
	}
	if got := p.name("kv_scan", 0, 0, 0, 0, 0, 0); got != -int64(abi.Other) {
		t.Errorf("one scan too many = %d", got)
	}
	for range hostcalls.MaxOpen {
		p.name("kv_snapshot")
	}
	if _, err := p.call(importOf(t, "kv_snapshot")); !errors.Is(err, hostcalls.ErrTooMany) {
		t.Errorf("one snapshot too many: %v", err)
	}
}

// wild draws an argument that a hostile guest could try.
func wild(draw *rand.Rand) uint64 {
	switch draw.IntN(6) {
	case 0:
		return draw.Uint64()
	case 1:
		return uint64(draw.Uint32())
	case 2:
		return 1<<32 - 1 - uint64(draw.IntN(16))
	case 3:
		return 1<<16 - uint64(draw.IntN(64))
	case 4:
		return uint64(draw.IntN(64))
	}
	return uint64(draw.IntN(1 << 16))
}

// TestWildPointers calls every import with wild arguments. Each call returns or ends the guest, and
// every import with a range has ended it at least once.
func TestWildPointers(t *testing.T) {
	p := newProber(t)
	draw := rand.New(rand.NewPCG(6, 6))
	for n, im := range imports {
		ended := false
		for range 60 {
			args := make([]uint64, len(im.params))
			for i := range args {
				args[i] = wild(draw)
			}
			_, err := p.call(n, args...)
			ended = ended || err != nil
		}
		switch im.name {
		case "now", "kv_end", "kv_snapshot", "kv_release", "kv_room", "file_size", "file_truncate", "file_sync", "register_seq": // no range
		default:
			if !ended {
				t.Errorf("%s takes any range", im.name)
			}
		}
	}
}

// FuzzImports calls an import with any arguments, from inside a guest.
func FuzzImports(f *testing.F) {
	draw := rand.New(rand.NewPCG(6, 7))
	for n, im := range imports {
		seed := []byte{byte(n)}
		for range im.params {
			seed = binary.LittleEndian.AppendUint64(seed, wild(draw))
		}
		f.Add(seed)
	}
	p := newProber(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		p.t = t
		n := int(data[0]) % len(imports)
		args := make([]uint64, len(imports[n].params))
		for i := range args {
			if data = data[1:]; len(data) < 8 {
				break
			}
			args[i], data = binary.LittleEndian.Uint64(data), data[7:]
		}
		p.call(n, args...)
	})
}
