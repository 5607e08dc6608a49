package release_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	origin "github.com/sightline-dev/sightline/origin/release"
	"github.com/sightline-dev/sightline/sync/release"
)

// counting is a source of bytes that differ.
type counting struct{ n byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		c.n++
		p[i] = c.n
	}
	return len(p), nil
}

func of(module string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(module), nil }
}

// TestPublished starts an origin again and again: the key stays, the number rises when the module is another and only
// then, also when its clock or its store went back.
func TestPublished(t *testing.T) {
	store, now := memkv.New(), time.UnixMilli(1_790_000_000_000)
	var key [32]byte
	publish := func(module string) release.Manifest {
		t.Helper()
		p, err := origin.Open(origin.Options{Store: store, Module: of(module), Program: "1.2", Now: func() time.Time { return now }, Rand: &counting{}})
		if err != nil {
			t.Fatal(err)
		}
		if key == [32]byte{} {
			key = p.Key()
		}
		if p.Key() != key {
			t.Error("another key than before")
		}
		signed, ok := p.Manifest(release.Stable)
		m, err := release.Open(signed, ed25519.PublicKey(key[:]), release.Stable, now)
		if !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		if got, ok := p.Module(m.Module); !ok || string(got) != module || m.Size != uint64(len(module)) || m.Module != blob.Sum(got) {
			t.Errorf("the manifest is of %s, %d bytes; it is %q", m.Module, m.Size, got)
		}
		if _, ok := p.Module(blob.Sum([]byte("another"))); ok {
			t.Error("a module that is not published is there")
		}
		if _, ok := p.Manifest("canary"); ok {
			t.Error("a channel that is not there has a manifest")
		}
		return m
	}
	one := publish("one")
	if again := publish("one"); again.Version != one.Version {
		t.Errorf("the same module is %d, then %d", one.Version, again.Version)
	}
	backup := store.Snapshot()
	old, err := backup.Get(catalog.Control.LocalKey("release"))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour) // a clock that was set back
	two := publish("two")
	if two.Version <= one.Version || two.Module == one.Module {
		t.Errorf("after %d comes %d", one.Version, two.Version)
	}
	now = now.Add(2 * time.Hour)
	var b kv.Batch
	b.Put(catalog.Control.LocalKey("release"), old) // restored from a backup
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if three := publish("three"); three.Version <= two.Version {
		t.Errorf("restored: after %d comes %d", two.Version, three.Version)
	}
	if back := publish("one"); back.Version <= two.Version {
		t.Errorf("an operator goes back: after %d comes %d", two.Version, back.Version)
	}
}

var errNone = errors.New("no module")

// TestDamaged refuses to sign with what is no key.
func TestDamaged(t *testing.T) {
	o := origin.Options{Store: memkv.New(), Module: of("one"), Now: time.Now, Rand: strings.NewReader("too little")}
	if _, err := origin.Open(o); err == nil {
		t.Error("a key of ten bytes")
	}
	for _, data := range [][]byte{{}, {1}, {1, 10, 1, 7}, bytes.Repeat([]byte{255}, 40)} {
		var b kv.Batch
		b.Put(catalog.Control.LocalKey("release"), data)
		o.Store, o.Rand = memkv.New(), &counting{}
		if err := o.Store.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := origin.Open(o); err == nil {
			t.Errorf("%x is a key", data)
		}
	}
	if _, err := origin.Open(origin.Options{Module: func() ([]byte, error) { return nil, errNone }}); !errors.Is(err, errNone) {
		t.Errorf("without a module: %v", err)
	}
	store := memkv.New()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	o.Store = store
	if _, err := origin.Open(o); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("on a closed store: %v", err)
	}
}
