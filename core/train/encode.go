package train

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict"
)

// ErrHead is returned for an invalid head or an invalid model file.
var ErrHead = errors.New("invalid model head")

const (
	magic         = "SLHD"
	formatVersion = 1
	headerBytes   = 12
	sumBytes      = 4

	flagExclusive = 1
	flagNone      = 2 // one output more than concepts

	maxConceptBytes = math.MaxUint16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Check returns ErrHead for a head that cannot be evaluated or written.
func (h *Head) Check() error {
	c, o := len(h.Concepts), len(h.Bias)
	switch {
	case c == 0 || c > MaxConcepts:
		return fmt.Errorf("%d concepts: %w", c, ErrHead)
	case o != c && !(h.Exclusive && o == c+1):
		return fmt.Errorf("%d outputs for %d concepts: %w", o, c, ErrHead)
	case len(h.Weights) != o*predict.Dim:
		return fmt.Errorf("%d weights for %d outputs: %w", len(h.Weights), o, ErrHead)
	}
	for _, id := range h.Concepts {
		if len(id) > maxConceptBytes {
			return fmt.Errorf("concept of %d bytes: %w", len(id), ErrHead)
		}
	}
	infinite := func(v float32) bool { return !(math.Abs(float64(v)) <= math.MaxFloat32) }
	if slices.ContainsFunc(h.Weights, infinite) || slices.ContainsFunc(h.Bias, infinite) {
		return fmt.Errorf("a parameter is not a number: %w", ErrHead)
	}
	return nil
}

// AppendBinary appends the head in this form, all little-endian:
//
//	 0  4  "SLHD"
//	 4  1  version, 1
//	 5  1  bit 0: exclusive; bit 1: one output more than concepts
//	 6  2  dimensions, 256
//	 8  4  concepts
//	12     for each concept: length (2), bytes of its id
//	       weights (outputs, 256) float32, then biases (outputs) float32
//	    4  CRC-32C of all bytes before
//
// It returns ErrHead for a head whose parts do not fit together.
func (h *Head) AppendBinary(b []byte) ([]byte, error) {
	if err := h.Check(); err != nil {
		return b, err
	}
	start := len(b)
	flags := byte(0)
	if h.Exclusive {
		flags |= flagExclusive
	}
	if len(h.Bias) > len(h.Concepts) {
		flags |= flagNone
	}
	b = append(b, magic...)
	b = append(b, formatVersion, flags)
	b = binary.LittleEndian.AppendUint16(b, predict.Dim)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.Concepts)))
	for _, id := range h.Concepts {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(id)))
		b = append(b, id...)
	}
	b = appendFloats(b, h.Weights)
	b = appendFloats(b, h.Bias)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), nil
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (h *Head) MarshalBinary() ([]byte, error) { return h.AppendBinary(nil) }

// UnmarshalBinary reads the bytes that MarshalBinary wrote. It does not retain b. For all other bytes it returns ErrHead, and
// does not change h.
func (h *Head) UnmarshalBinary(b []byte) error {
	if len(b) < headerBytes+sumBytes || string(b[:4]) != magic {
		return fmt.Errorf("%d bytes: %w", len(b), ErrHead)
	}
	if b[4] != formatVersion {
		return fmt.Errorf("version %d: %w", b[4], ErrHead)
	}
	body, sum := b[:len(b)-sumBytes], binary.LittleEndian.Uint32(b[len(b)-sumBytes:])
	if crc32.Checksum(body, castagnoli) != sum {
		return fmt.Errorf("checksum: %w", ErrHead)
	}
	flags, d, n := b[5], binary.LittleEndian.Uint16(b[6:]), binary.LittleEndian.Uint32(b[8:])
	if flags&^(flagExclusive|flagNone) != 0 || d != predict.Dim || n > MaxConcepts {
		return fmt.Errorf("flags %d, %d dimensions, %d concepts: %w", flags, d, n, ErrHead)
	}
	out := Head{Exclusive: flags&flagExclusive != 0}
	rest := body[headerBytes:]
	for range n {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return fmt.Errorf("concepts: %w", ErrHead)
		}
		end := 2 + int(binary.LittleEndian.Uint16(rest))
		out.Concepts = append(out.Concepts, string(rest[2:end]))
		rest = rest[end:]
	}
	outputs := int(n)
	if flags&flagNone != 0 {
		outputs++
	}
	if len(rest) != 4*outputs*(predict.Dim+1) {
		return fmt.Errorf("%d bytes of parameters: %w", len(rest), ErrHead)
	}
	out.Weights = floats(rest[:4*outputs*predict.Dim])
	out.Bias = floats(rest[4*outputs*predict.Dim:])
	if err := out.Check(); err != nil {
		return err
	}
	*h = out
	return nil
}

func appendFloats(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}
