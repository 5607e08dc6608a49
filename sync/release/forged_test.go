package release_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/sync/release"
)

// TestForgedManifests forges releases as an attacker on the line could, who has other releases of the same origin and a key of
// the attacker's own. None is accepted except exactly as it was signed.
func TestForgedManifests(t *testing.T) {
	refused, same := 0, 0
	for seed := range proof.Seeds(t, 200, 100_000) {
		rng := rand.New(rand.NewPCG(seed, 21))
		key, his := keyOf(byte(seed)), keyOf(byte(seed)+1+byte(rng.IntN(200)))
		m := drawn(rng)
		data, how := forge(rng, key, his, m)
		got, err := release.Open(data, public(key), release.Stable, now)
		switch {
		case err != nil:
			refused++
		case !bytes.Equal(got.Encode(), m.Encode()):
			t.Errorf("seed %d, %s: %+v opens, and %+v was signed", seed, how, got, m)
		default:
			same++
		}
	}
	t.Logf("%d refused, %d as they were signed", refused, same)
	if same*20 > refused {
		t.Errorf("only %d of %d forged releases were refused", refused, refused+same)
	}
}

// drawn is some manifest of now.
func drawn(rng *rand.Rand) *release.Manifest {
	m := manifest()
	m.Version, m.Size, m.ABI, m.Fold = rng.Uint64N(1000), rng.Uint64N(1<<24), rng.Uint32N(4), rng.Uint32N(4)
	m.Module = blob.Sum(binary.LittleEndian.AppendUint64(nil, rng.Uint64()))
	m.Expires = now.Add(time.Duration(1+rng.IntN(1000)) * time.Hour)
	m.Program = fmt.Sprint(rng.IntN(1000))
	return m
}

// signed is a signed manifest of the three fields.
func signed(data []byte, by ed25519.PublicKey, signature []byte) []byte {
	var e field.Encoder
	e.Reset(nil)
	e.Raw(1, data)
	e.Raw(2, by)
	e.Raw(3, signature)
	return e.Bytes(nil)
}

// parts are the three fields.
func parts(data []byte) (m, by, signature []byte) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m = d.Raw()
		case 2:
			by = d.Raw()
		case 3:
			signature = d.Raw()
		}
	}
	return m, by, signature
}

// forge makes something else of a release that key has signed, and says how.
func forge(rng *rand.Rand, key, his ed25519.PrivateKey, m *release.Manifest) (data []byte, how string) {
	good, other := release.Sign(key, m), release.Sign(key, drawn(rng))
	p := bytes.Clone(good)
	i := rng.IntN(len(p))
	_, _, signature := parts(good)
	otherData, _, otherSignature := parts(other)
	switch n := rng.IntN(12); n {
	case 0:
		p[i] ^= 1 << rng.IntN(8)
		return p, "a bit"
	case 1:
		p[i] += byte(1 + rng.IntN(255))
		return p, "a byte"
	case 2:
		return append(p[:i], p[min(i+1+rng.IntN(8), len(p)):]...), "bytes cut out"
	case 3:
		return append(p[:i], append(bytes.Clone(p[max(i-1-rng.IntN(8), 0):i]), p[i:]...)...), "bytes doubled"
	case 4:
		for i = 0; p[i] == other[i]; i++ {
		}
		i += 1 + rng.IntN(len(p)-i-1)
		return append(p[:i], other[min(i, len(other)):]...), "the rest of another"
	case 5:
		return signed(otherData, public(key), signature), "the signature of another"
	case 6:
		return release.Sign(his, m), "his key"
	case 7:
		_, _, signature = parts(release.Sign(his, m))
		return signed(m.Encode(), public(key), signature), "his signature under our key"
	case 8:
		return append(p, signed(otherData, public(his), otherSignature)...), "another behind it"
	case 9:
		x := *m
		x.Version++
		return signed(x.Encode(), public(key), signature), "a later number"
	case 10:
		x := *m
		x.Channel = fmt.Sprint("canary", rng.IntN(9))
		return release.Sign(key, &x), "of another channel"
	default:
		x := *m
		x.Expires = now.Add(-release.Skew - time.Duration(rng.Int64N(int64(time.Hour))))
		return release.Sign(key, &x), "that has ended"
	}
}
