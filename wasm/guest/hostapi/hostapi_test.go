package hostapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

func newHost(l hostcalls.Services) *hostcalls.Host {
	h, err := hostcalls.New(l, "")
	if err != nil {
		panic(err) // hostcalls.New fails only for a wrong application
	}
	return h
}

func TestStore(t *testing.T) {
	kvtest.Store(t, func(t testing.TB) kv.Store {
		h := newHost(hostcalls.Services{Store: memkv.New()})
		t.Cleanup(func() {
			if _, scans := h.Open(); scans != 0 {
				t.Errorf("%d scans are left open", scans)
			}
		})
		return hostapi.NewStore(h)
	})
}

// TestLongScans scans records whose sizes are near the sizes of a scan's buffers, and scans within scans.
func TestLongScans(t *testing.T) {
	h := newHost(hostcalls.Services{Store: memkv.New()})
	s := hostapi.NewStore(h)
	b := &kv.Batch{}
	var want []string
	for i, n := range []int{0, 1, 900, 1010, 1015, 1016, 1017, 4000, 4096, 65_000, 65_526, 65_527, 65_528, 70_000, 200_000, 3} {
		key := fmt.Sprintf("%02d", i)
		b.Put([]byte(key), bytes.Repeat([]byte{byte(i)}, n))
		want = append(want, fmt.Sprint(key, " ", n))
	}
	if err := s.Apply(b); err != nil {
		t.Fatal(err)
	}
	read := func(scan func(lo, hi []byte, yield func(k, v []byte) bool) error) (got []string) {
		err := scan(nil, nil, func(k, v []byte) bool {
			got = append(got, fmt.Sprint(string(k), " ", len(v)))
			for _, c := range v {
				if fmt.Sprintf("%02d", c) != string(k) {
					t.Fatalf("value of %s holds %d", k, c)
				}
			}
			value, err := s.Get(k)
			if err != nil || !bytes.Equal(value, v) {
				t.Fatalf("Get(%s) = %d bytes, %v, want %d", k, len(value), err, len(v))
			}
			inside := 0
			if err := s.Scan(k, nil, func([]byte, []byte) bool { inside++; return inside < 3 }); err != nil || inside == 0 {
				t.Fatalf("scan inside: %d, %v", inside, err)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := read(s.Scan); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Scan = %v, want %v", got, want)
	}
	back := read(s.ScanBack)
	for i := range back {
		if back[i] != want[len(want)-1-i] {
			t.Errorf("ScanBack = %v", back)
			break
		}
	}
	if snapshots, scans := h.Open(); snapshots+scans != 0 {
		t.Errorf("%d snapshots, %d scans are open", snapshots, scans)
	}
}

// failing is a store whose writes return err.
type failing struct {
	*memkv.Store
	err error
}

func (f failing) Apply(*kv.Batch) error                  { return f.err }
func (f failing) Commit(*kv.Batch) (func() error, error) { return nil, f.err }
func (f failing) Room() error                            { return f.err }

func TestStoreErrors(t *testing.T) {
	for _, want := range []error{kv.ErrFull, kv.ErrFailed, kv.ErrClosed, kv.ErrCorrupt} {
		s := hostapi.NewStore(newHost(hostcalls.Services{Store: failing{memkv.New(), want}}))
		_, committed := s.Commit(&kv.Batch{})
		for method, err := range map[string]error{"Apply": s.Apply(&kv.Batch{}), "Commit": committed, "Room": s.Room()} {
			if !errors.Is(err, want) {
				t.Errorf("%s = %v, want %v", method, err, want)
			}
		}
	}
	s := hostapi.NewStore(newHost(hostcalls.Services{Store: memkv.New()}))
	snapshot := s.Snapshot()
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Get([]byte("k")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Get of a closed snapshot = %v", err)
	}
	if err := snapshot.Scan(nil, nil, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Scan of a closed snapshot = %v", err)
	}
	if err := s.Compact(t.Context(), nil, nil); err != nil {
		t.Errorf("Compact = %v", err)
	}
}

func TestDisk(t *testing.T) {
	disk := journaltest.NewDisk()
	d := hostapi.Disk{From: newHost(hostcalls.Services{Files: disk})}
	if n, err := d.Size(2); n != 0 || err != nil {
		t.Errorf("Size of a new file = %d, %v", n, err)
	}
	if err := errors.Join(d.Write(2, 0, []byte("abc")), d.Write(2, 3, []byte("def")), d.Write(2, 6, nil), d.Truncate(2, 5), d.Sync(2)); err != nil {
		t.Fatal(err)
	}
	var p [3]byte
	if err := errors.Join(d.Read(2, 2, p[:]), d.Read(2, 5, nil)); err != nil || string(p[:]) != "cde" {
		t.Errorf("Read = %q, %v", p, err)
	}
	if n, err := d.Size(2); n != 5 || err != nil {
		t.Errorf("Size = %d, %v", n, err)
	}
	if err := d.Read(2, 3, p[:]); err == nil {
		t.Error("Read past the end is no error")
	}
	disk.FailAt(1, true)
	for method, err := range map[string]error{"Write": d.Write(2, 0, p[:]), "Truncate": d.Truncate(2, 0), "Sync": d.Sync(2)} {
		if err == nil {
			t.Errorf("%s of a broken disk is no error", method)
		}
	}
}

func TestFiles(t *testing.T) {
	bundles := fstest.MapFS{
		"a/manifest.json": {Data: []byte("{}")}, "a/names/en.tsv": {Data: bytes.Repeat([]byte("x"), 9000)},
		"a.b/c": {Data: []byte{}}, "ab": {Data: []byte("1")}, "a/names.txt": {Data: []byte("2")},
	}
	h := newHost(hostcalls.Services{Bundles: bundles, Older: func(base [32]byte) (fs.FS, error) {
		if base[0] == 1 {
			return bundles, nil
		}
		return nil, fs.ErrNotExist
	}})
	names, err := hostcalls.Names(bundles)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(hostapi.Bundles(h, names), names...); err != nil {
		t.Error(err)
	}
	older, err := hostapi.Older(h, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(older, names...); err != nil {
		t.Error(err)
	}
	if _, err := hostapi.Older(h, [32]byte{2}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Older of an unknown network = %v", err)
	}
	odd := hostapi.Bundles(h, []string{"../x", ".", "", "/a", "gone"})
	if entries, err := fs.ReadDir(odd, "."); err != nil || len(entries) > 0 {
		t.Errorf("a file that the host does not have is listed: %v, %v", entries, err)
	}
	if _, err := fs.ReadFile(odd, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of a file that the host does not have = %v", err)
	}
	if _, err := fs.ReadFile(odd, "../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("ReadFile of a path that is none = %v", err)
	}
}

func TestPictures(t *testing.T) {
	now := apitest.Start
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: &apitest.Counter{}})
	if err != nil {
		t.Fatal(err)
	}
	p := hostapi.Pictures{From: newHost(hostcalls.Services{Hosted: hosted, Clock: func() time.Time { return now }})}
	ctx := t.Context()
	name, hash, err := p.Add(ctx, blob.AppID{}, []byte("picture"), "image/png", now.Add(time.Hour))
	if err != nil || hash != blob.Sum([]byte("picture")) {
		t.Fatalf("Add = %q, %v, %v", name, hash, err)
	}
	want, err := hosted.Lookup(name, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Lookup(name, now); got != want || err != nil {
		t.Errorf("Lookup = %+v, %v, want %+v", got, err, want)
	}
	for _, name := range []string{"", name[:31], name[:31] + "x", "A" + name[1:], "00000000000000000000000000000000"} {
		if _, err := p.Lookup(name, now); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Lookup(%q) = %v, want ErrNotFound", name, err)
		}
	}
	if _, err := p.Lookup(name, now.Add(2*time.Hour)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Lookup of what has expired = %v", err)
	}
	if forever, _, err := p.Add(ctx, blob.AppID{}, []byte("other"), "image/png", time.Time{}); err != nil {
		t.Error(err)
	} else if got, err := p.Lookup(forever, now.Add(1e6*time.Hour)); err != nil || !got.Expires.IsZero() {
		t.Errorf("Lookup of what stays = %+v, %v", got, err)
	}
	pinnedHash, err := hosted.Pin(ctx, []byte("held"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Unpin(ctx, pinnedHash), p.Drop(ctx, hash)); err != nil {
		t.Error(err)
	}
	if _, _, err := p.Add(ctx, blob.AppID{}, nil, "a\nb", now); err == nil {
		t.Error("a content type with a line end is taken")
	}
}

func TestTokens(t *testing.T) {
	now := apitest.Start
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	h := newHost(hostcalls.Services{Tokens: w.Tokens, Clock: func() time.Time { return now }})
	tokens := hostapi.Tokens{From: h}
	claims := auth.Claims{App: "a", Client: "c", Generation: 2}
	token, life, err := tokens.Issue(claims)
	if err != nil || life != 15*time.Minute {
		t.Fatalf("Issue = %q, %v, %v", token, life, err)
	}
	if got, err := tokens.Read(token); got != claims || err != nil {
		t.Errorf("Read = %+v, %v", got, err)
	}
	if _, err := tokens.Read("other"); !errors.Is(err, auth.ErrToken) {
		t.Errorf("Read of another = %v", err)
	}
	w.Now = w.Now.Add(time.Hour)
	if _, err := tokens.Read(token); !errors.Is(err, auth.ErrExpired) {
		t.Errorf("Read of an old one = %v", err)
	}
}

// TestCalls: Spend lets the host count a call, and returns the host's reason if it refuses the call.
func TestCalls(t *testing.T) {
	refused := ""
	calls := hostapi.Calls{From: newHost(hostcalls.Services{Count: func(string) string { return refused }})}
	if left, err := calls.Spend(t.Context(), api.CountedCall{}); left >= 0 || err != nil {
		t.Errorf("Spend = %d, %v", left, err)
	}
	refused = "none before May"
	if _, err := calls.Spend(t.Context(), api.CountedCall{}); !errors.Is(err, auth.ErrQuota) || !strings.HasSuffix(err.Error(), refused) {
		t.Errorf("Spend without calls left: %v", err)
	}
	if _, err := (hostapi.Calls{From: newHost(hostcalls.Services{})}).Spend(t.Context(), api.CountedCall{}); !errors.Is(err, abi.ErrHost) {
		t.Errorf("Spend at a host that counts nothing: %v", err)
	}
}
