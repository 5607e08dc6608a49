//go:build linux

package kernels

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/wasm/abi"
)

// arena is a guest's memory between two protected pages: a kernel that leaves it crashes.
type arena struct {
	mapping, mem []byte
}

func newArena(t testing.TB, pages int) *arena {
	t.Helper()
	size := syscall.Getpagesize()
	mapping, err := syscall.Mmap(-1, 0, (pages+2)*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mapping); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{mapping[:size], mapping[len(mapping)-size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return &arena{mapping: mapping, mem: mapping[size : len(mapping)-size : len(mapping)-size]}
}

// Addresses of the data that parameters point to.
const (
	arenaPages = 64
	viewAt     = 64 << 10  // the view and the limits for decode
	tableAt    = 66 << 10  // tables of chunks
	requantAt  = 68 << 10  // structures of 64 bytes each: 32 of them
	addAt      = 70 << 10  // likewise
	shapeAt    = 72 << 10  // likewise
	pictureAt  = 96 << 10  // a JPEG
	dataAt     = 128 << 10 // small numbers, up to the end
)

// picture is a small JPEG.
func picture() []byte {
	m := image.NewYCbCr(image.Rect(0, 0, 40, 30), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = byte(i * 7)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var small = picture()

// furnish fills the memory with data that calls accept.
func (a *arena) furnish(rng *rand.Rand) {
	clear(a.mem)
	for i := dataAt; i < len(a.mem); i += 4 {
		a.mem[i] = byte(rng.IntN(100))
	}
	data := func() uint32 { return uint32(dataAt + 64*rng.IntN((len(a.mem)-dataAt)/128)) }
	upTo := func(n int) uint32 { return uint32(rng.IntN(n)) }
	put := func(at int, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(a.mem[at+4*i:], w)
		}
	}
	for i, v := range []float64{0, 0, 1, 1} {
		binary.LittleEndian.PutUint64(a.mem[viewAt+8*i:], math.Float64bits(v))
	}
	for i := range 6 {
		binary.LittleEndian.PutUint64(a.mem[viewAt+32+8*i:], 1<<20)
	}
	put(viewAt+80, upTo(18), upTo(40), upTo(40), upTo(40), 16, 100, 4, 9)
	for i := range 8 {
		put(tableAt+8*i, data(), 0)
	}
	for i := range 32 {
		put(requantAt+64*i, data(), data(), upTo(256), upTo(100), 100+upTo(156))
		put(addAt+64*i, 0x3f000000, 0x3f800000, upTo(256), upTo(256), upTo(256), upTo(100), 100+upTo(156), data(), upTo(99))
		put(shapeAt+64*i, upTo(5), upTo(6), upTo(300), upTo(300), upTo(300), upTo(4), upTo(3))
	}
	copy(a.mem[pictureAt:], small)
	if rng.IntN(3) == 0 {
		a.mem[pictureAt+rng.IntN(len(small))] ^= byte(rng.Uint32())
	}
}

// roles has a letter for each parameter of an import, so that most calls have valid arguments.
//
// 1 and 2: a handle of that kind. a, h: an address. o: an address or 0. n: a small number. l: a length in training. s: a stride of
// vectors. k: a kind of packing.
//
// q, p, d: a structure. t: a table. u: its number of rows. v: a view. j: a JPEG. z: its length. c: enough room. f: a float. I: any i64.
var roles = map[string]string{
	"pack_room": "knnn", "pack": "kannna", "unpack": "n",
	"conv_u8": "1anannnqo", "conv_rows_u8": "1anannnqnnn", "gemv_u16": "1aao",
	"depthwise_u8": "2aadq", "add_u8": "aaanp", "sum_rows_u8": "aannn",
	"distances": "aasnfanthu", "dots": "aasanttu", "product": "ananlal",
	"dot": "aal", "axpy": "afal", "residual": "aafaal", "raise": "aafl", "exp": "afaal", "share": "aaaaal", "rows": "anala",
	"inspect": "jza", "decode": "jzvaca", "add_rows": "aanann", "across": "aaaannII", "ycbcr": "aaaan", "inverse8": "anaa", "inverse4": "anaa",
	"base64": "acaz", "quote": "az", "sha256": "aza",
	"network": "a", "recognise": "1aaaanan", "cells": "1anan",
}

// argument draws an argument that fits a role.
func (a *arena) argument(rng *rand.Rand, role rune) uint64 {
	at := uint64(dataAt + 64*rng.IntN((len(a.mem)-dataAt)/128))
	structure := uint64(64 * rng.IntN(32))
	switch role {
	case '1', '2':
		return uint64(role-'0') + 2*uint64(rng.IntN(4))
	case 'a', 'h':
		return at
	case 'o':
		return at * uint64(rng.IntN(2))
	case 'l':
		return uint64(32 * rng.IntN(9))
	case 's':
		return uint64(64 * (1 + rng.IntN(4)))
	case 'k':
		return uint64(rng.IntN(6))
	case 'q':
		return requantAt + structure
	case 'p':
		return addAt + structure
	case 'd':
		return shapeAt + structure
	case 't':
		return tableAt
	case 'u':
		return uint64(100 + rng.IntN(200))
	case 'v':
		return viewAt
	case 'j':
		return pictureAt
	case 'z':
		return uint64(len(small))
	case 'c':
		return 8 << 10
	case 'f':
		return uint64(math.Float32bits([]float32{0, 1, -2.5, float32(math.NaN()), float32(math.Inf(1)), 1e30}[rng.IntN(6)]))
	case 'I':
		return rng.Uint64()
	}
	return uint64(rng.IntN(40))
}

// nonsense draws a random argument that need not fit anything.
func (a *arena) nonsense(rng *rand.Rand) uint64 {
	end := len(a.mem)
	switch rng.IntN(8) {
	case 0:
		return uint64(rng.IntN(end))
	case 1, 2:
		return uint64(uint32(end - rng.IntN(300)))
	case 3, 4:
		return []uint64{0, 1, math.MaxInt32, math.MaxUint32, 1 << 31, 1 << 30, uint64(end), uint64(end) + 1}[rng.IntN(8)]
	case 5:
		return uint64(rng.Uint32())
	case 6:
		return rng.Uint64()
	}
	return uint64(rng.IntN(3000))
}

// FuzzImports calls the imports with arguments of a hostile guest. Each call succeeds or panics
// with ErrWild, and none accesses anything outside of the memory.
func FuzzImports(f *testing.F) {
	for i := range imports {
		for seed := range uint64(4) {
			f.Add(uint8(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64) {
		im := &imports[int(which)%len(imports)]
		rng := rand.New(rand.NewPCG(seed, uint64(which)))
		a := newArena(t, arenaPages)
		a.furnish(rng)
		n := New(Options{Weights: 1 << 20, Work: 1 << 22})
		in := n.Open()
		in.mem, in.ctx = a.mem, context.Background()
		for i := range 8 {
			k := 1 + rng.IntN(5)*(1+rng.IntN(2))
			segs := 1
			if rng.IntN(2) == 0 {
				segs = k
			}
			kind, cols := productS8+i%3, 1+rng.IntN(70)
			if kind == windowsS8 {
				cols, k, segs = 16*(1+rng.IntN(3)), 9*16*(1+rng.IntN(2)), 3
			}
			in.pack([]uint64{uint64(kind), 64, uint64(cols), uint64(k), uint64(segs), 0})
		}
		well := 0
		for range 200 {
			s := make([]uint64, max(len(im.params), len(im.results)))
			for i, role := range roles[im.name] {
				s[i] = a.argument(rng, role)
			}
			for range max(0, rng.IntN(5)-2) {
				if len(im.params) > 0 {
					s[rng.IntN(len(im.params))] = a.nonsense(rng)
				}
			}
			if call(t, in, im, s) {
				well++
			}
		}
		if in.weights > n.o.Weights {
			t.Errorf("%d bytes of weights are held, at most %d", in.weights, n.o.Weights)
		}
		in.Close()
		if packings, bytes := n.PackingUsage(); packings != 0 || bytes != 0 {
			t.Errorf("%d packings of %d bytes are left", packings, bytes)
		}
		t.Logf("%s: %d of 200 calls end well", im.name, well)
	})
}

// call calls an import and reports whether it returned. It fails the test after a panic other than ErrWild.
func call(t *testing.T, in *Instance, f *function, s []uint64) (lives bool) {
	t.Helper()
	args := append([]uint64(nil), s...)
	defer func() {
		v := recover()
		if err, _ := v.(error); v != nil && !errors.Is(err, abi.ErrRange) {
			t.Errorf("%s(%d) = panic %v, want ErrWild", f.name, args, v)
		}
		lives = v == nil
	}()
	f.run(in, s)
	return
}
