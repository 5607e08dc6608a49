package release_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/release"
)

var now = time.UnixMilli(1_790_000_000_000).UTC()

func keyOf(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func manifest() *release.Manifest {
	return &release.Manifest{
		Channel: release.Stable, Version: 7, Module: blob.Sum([]byte("module")), Size: 6, ABI: 1, Fold: 1,
		NotBefore: now.Add(-time.Hour), Expires: now.Add(24 * time.Hour), Program: "1.2.3",
	}
}

// TestSigned opens what was signed, and refuses each thing that may be wrong with it.
func TestSigned(t *testing.T) {
	key, m := keyOf(1), manifest()
	signed := release.Sign(key, m)
	got, err := release.Open(signed, public(key), release.Stable, now)
	if diff := cmp.Diff(*m, got); err != nil || diff != "" {
		t.Errorf("%v, manifest (-want +got):\n%s", err, diff)
	}
	old, future := manifest(), manifest()
	old.Expires = now.Add(-release.Skew)
	future.NotBefore = now.Add(release.Skew + time.Millisecond)
	for _, tt := range []struct {
		name    string
		signed  []byte
		key     ed25519.PrivateKey
		channel string
		want    error
	}{
		{"another's key", signed, keyOf(2), release.Stable, release.ErrSignature},
		{"signed by another", release.Sign(keyOf(2), m), key, release.Stable, release.ErrSignature},
		{"another's signature under our key", bytes.Replace(release.Sign(keyOf(2), m), public(keyOf(2)), public(key), 1), key, release.Stable, release.ErrSignature},
		{"another channel", signed, key, "canary", release.ErrChannel},
		{"expired", release.Sign(key, old), key, release.Stable, release.ErrTime},
		{"of tomorrow", release.Sign(key, future), key, release.Stable, release.ErrTime},
		{"nothing", nil, key, release.Stable, field.ErrFormat},
		{"a page", []byte("<html>"), key, release.Stable, field.ErrFormat},
		{"no manifest in it", []byte{1}, key, release.Stable, release.ErrSignature},
	} {
		if m, err := release.Open(tt.signed, public(tt.key), tt.channel, now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", tt.name, m, err, tt.want)
		}
	}
	if _, err := release.Open(signed, nil, release.Stable, now); !errors.Is(err, release.ErrSignature) {
		t.Errorf("without a key: %v", err)
	}
	if by, err := release.By(signed); err != nil || !bytes.Equal(by, public(key)) {
		t.Errorf("signed by %x, %v", by, err)
	}
	for _, none := range [][]byte{nil, {1}, m.Encode(), []byte("<html>")} {
		if by, err := release.By(none); !errors.Is(err, field.ErrFormat) {
			t.Errorf("%q is signed by %x, %v", none, by, err)
		}
	}
	for i := range signed {
		bad := bytes.Clone(signed)
		bad[i] ^= 1
		if _, err := release.Open(bad, public(key), release.Stable, now); err == nil {
			t.Errorf("bit of byte %d turned: it opens", i)
		}
		if _, err := release.Open(signed[:i], public(key), release.Stable, now); err == nil {
			t.Errorf("cut at %d: it opens", i)
		}
	}
}

// TestFits refuses what goes back, and what is for others.
func TestFits(t *testing.T) {
	host := release.Host{ABI: 1, Fold: 1, Seen: release.Seen{Version: 7, Module: manifest().Module}}
	for _, tt := range []struct {
		name   string
		change func(*release.Manifest)
		want   error
	}{
		{"the same", func(*release.Manifest) {}, nil},
		{"the next", func(m *release.Manifest) { m.Version, m.Module = 8, blob.Sum([]byte("next")) }, nil},
		{"newer rules", func(m *release.Manifest) { m.Fold = 2 }, nil},
		{"an older one", func(m *release.Manifest) { m.Version = 6 }, release.ErrOlder},
		{"no number", func(m *release.Manifest) { m.Version = 0 }, release.ErrOlder},
		{"another of the same number", func(m *release.Manifest) { m.Module = blob.Sum([]byte("other")) }, release.ErrOlder},
		{"another contract", func(m *release.Manifest) { m.ABI = 2 }, release.ErrUnfit},
		{"older rules", func(m *release.Manifest) { m.Fold = 0 }, release.ErrUnfit},
		{"no bytes", func(m *release.Manifest) { m.Size = 0 }, release.ErrUnfit},
		{"too many bytes", func(m *release.Manifest) { m.Size = release.MaxModule + 1 }, release.ErrUnfit},
	} {
		m := manifest()
		tt.change(m)
		if err := m.Fits(host); !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// golden is how a signed manifest begins.
const golden = "010a3301" + "0a06737461626c65" + "1007" + "1a20%x" + "2006" + "2801" + "3001"

// TestGolden holds the bytes to what they were.
func TestGolden(t *testing.T) {
	m := manifest()
	m.NotBefore, m.Expires, m.Program = time.Time{}, time.Time{}, ""
	signed := release.Sign(keyOf(1), m)
	want := fmt.Sprintf(golden, m.Module[:])
	if got := hex.EncodeToString(signed); got[:len(want)] != want || len(signed) != len(want)/2+2+32+2+64 {
		t.Errorf("%s, want %s and key and signature", got, want)
	}
}

// FuzzOpen has whatever comes be no release, and what decodes encode to the same manifest.
func FuzzOpen(f *testing.F) {
	f.Add(release.Sign(keyOf(1), manifest()))
	f.Add(manifest().Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := release.Open(data, public(keyOf(2)), release.Stable, now); err == nil {
			t.Error("what nobody signed opens")
		}
		m, err := release.Decode(data)
		if err != nil {
			return
		}
		again, err := release.Decode(m.Encode())
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Errorf("%v (-decoded +again):\n%s", err, diff)
		}
	})
}
