package simd_test

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

func TestQuote(t *testing.T) {
	rounds(t, 200, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), rng.IntN(80)
		b := make([]uint8, n)
		for i := range b {
			b[i] = []byte(" aZ09~\x7f")[rng.IntN(7)]
			if rng.IntN(40) == 0 {
				b[i] = []byte("\"\\\x00\x1f\x80\xff\n\xc3")[rng.IntN(8)]
			}
		}
		want := 0
		for want < n && b[want] >= 0x20 && b[want] < 0x80 && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := int(a.call("quote", last(a, b), n)); got != want {
			t.Fatalf("quote(%q) = %d, want %d", b, got, want)
		}
	})
}

func TestBase64(t *testing.T) {
	rounds(t, 200, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		plain := kerneltest.Bytes(rng, rng.IntN(90))
		encoding := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding}[rng.IntN(2)]
		text := []byte(encoding.EncodeToString(plain))
		room := len(text)/4*3 + rng.IntN(20)
		// good is the length of the groups of 16 characters before the padding or the first invalid character.
		good := len(text) / 16 * 16
		for good > 0 && text[good-1] == '=' {
			good -= 16
		}
		if len(text) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(text))
			text[i] = []byte("=.\n\x00\x80\xff@[`{:,")[rng.IntN(12)]
			good = min(good, i/16*16)
		}
		for good/4*3 > room {
			good -= 16
		}
		dst := a.out(1, 0, room)
		got := a.call("base64", dst, room, last(a, text), len(text))
		if want := uint64(good)<<32 | uint64(good/4*3); got != want {
			t.Fatalf("base64 of %q into %d = %d, %d, want %d, %d", text, room, got>>32, uint32(got), good, good/4*3)
		}
		equal(t, "base64", get[uint8](a, dst, good/4*3), plain[:min(len(plain), good/4*3)])
	})
}

func TestSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := newArena(t, rng)
	for n := range 300 {
		a.reset()
		b := kerneltest.Bytes(rng, n)
		want := sha256.Sum256(b)
		dst := a.out(1, 0, 32)
		a.call("sha256", last(a, b), n, dst)
		equal(t, "sha256", get[uint8](a, dst, 32), want[:])
	}
}
