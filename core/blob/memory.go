package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// Options limit a store. The zero value has the defaults.
type Options struct {
	MaxBytes int64 // maximum size of one blob; 0 means 64 MiB
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	return o
}

// Memory is a store of blobs in memory. It is safe for concurrent use.
type Memory struct {
	limit int64

	mu    sync.RWMutex
	blobs map[Hash][]byte
}

var _ Blobs = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(o Options) *Memory {
	return &Memory{limit: o.withDefaults().MaxBytes, blobs: map[Hash][]byte{}}
}

// Put implements [Blobs].
func (m *Memory) Put(ctx context.Context, r io.Reader, want Hash) (Hash, error) {
	var b bytes.Buffer
	h, err := Receive(ctx, &b, r, want, m.limit)
	if err != nil {
		return Hash{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[h]; !ok {
		m.blobs[h] = bytes.Clone(b.Bytes())
	}
	return h, nil
}

func (m *Memory) get(ctx context.Context, h Hash) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	data, ok := m.blobs[h]
	if !ok {
		return nil, fmt.Errorf("%v: %w", h, ErrNotFound)
	}
	return data, nil
}

// Get implements [Blobs].
func (m *Memory) Get(ctx context.Context, h Hash) ([]byte, error) {
	data, err := m.get(ctx, h)
	return slices.Clone(data), err
}

// Open implements [Blobs].
func (m *Memory) Open(ctx context.Context, h Hash) (io.ReadCloser, error) {
	data, err := m.get(ctx, h)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Has implements [Blobs].
func (m *Memory) Has(ctx context.Context, h Hash) (bool, error) {
	_, err := m.get(ctx, h)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Len implements [Blobs].
func (m *Memory) Len(ctx context.Context, h Hash) (int64, error) {
	data, err := m.get(ctx, h)
	return int64(len(data)), err
}

// Delete implements [Blobs].
func (m *Memory) Delete(ctx context.Context, h Hash) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, h)
	return nil
}

func compareHashes(a, b Hash) int { return bytes.Compare(a[:], b[:]) }

// Each implements [Blobs].
func (m *Memory) Each(ctx context.Context, from Hash, yield func(Hash) error) error {
	m.mu.RLock()
	hashes := slices.SortedFunc(maps.Keys(m.blobs), compareHashes)
	m.mu.RUnlock()
	first, _ := slices.BinarySearchFunc(hashes, from, compareHashes)
	for _, h := range hashes[first:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := yield(h); err != nil {
			return err
		}
	}
	return nil
}
