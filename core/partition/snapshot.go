package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// ErrChunk is returned for an invalid chunk of a snapshot, and for one that the snapshot lacks.
var ErrChunk = errors.New("chunk does not belong to the snapshot")

// Snapshot is the state of a log up to one entry. A replica that joins late installs it instead of pulling the log from its beginning:
//
//	Seq 1200 ─┬─ chunk 0   state: keys in the order of catalog's CopyTables, up to 1 MiB
//	          ├─ chunk 1
//	          ├─ chunk 2   derived records, if they were requested
//	          └─ objects   manifests of the versions, by hash
//
// The name of a chunk is the SHA-256 of its bytes. A chunk that is large enough ends where the hash of a key permits it. So unchanged
// keys are in the same chunks of the next snapshot, and an interrupted download needs only the missing chunks, even of another snapshot.
type Snapshot struct {
	Epoch   log.Epoch
	Seq     uint64
	Chain   log.Chain
	Stable  uint64   // last entry that the origin will never lose
	Fold    uint32   // version of the rules
	Digest  [32]byte // fold.Digest of the state
	Horizon log.HLC
	Chunks  []Chunk
	Objects []Chunk // objects of the versions; no chunk contains them
	Lacked  bool    // the log lacked the replica's place, so an ordinal may mean another input

	// Read returns the bytes of a chunk by its number, which have its hash.
	Read func(i int) ([]byte, error)

	// Placed reports that a chunk has only derived records, which the replica's store already contains; nil: no chunk is placed. Rebase
	// then reads the chunk only if the replica has inputs. See [PlacedKey].
	Placed func(i int) bool
}

func (s *Snapshot) isPlaced(i int) bool { return s.Placed != nil && s.Placed(i) }

// Chunk describes a chunk of a snapshot, or an object: the SHA-256 of its bytes and their number.
type Chunk struct {
	Hash blob.Hash
	Size uint64
}

// Sizes of chunks, in bytes. A chunk with a single large record may exceed maxChunk.
const (
	minChunk = 256 << 10
	maxChunk = 1 << 20
	cutEvery = 1 << 10 // keys, after minChunk
)

// Export is a snapshot for reading. It shows the state at one moment until it is closed. It is safe for concurrent use.
type Export struct {
	Snapshot
	view   *View
	base   [32]byte
	starts [][]byte // first keys of the chunks
}

// Export returns the whole state as a snapshot, with the derived records of the network base unless base is zero. The caller closes it
// once. Errors: those of the store.
func (p *Origin) Export(base [32]byte) (*Export, error) {
	x := &Export{view: p.View(), base: base}
	err := x.list(p.log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("snapshot: %w", err), x.Close())
	}
	x.Read = x.Chunk
	return x, nil
}

// list fills in the list of chunks and the facts about the state.
func (x *Export) list(l *log.Store) (err error) {
	h, err := x.view.Header()
	if err != nil {
		return err
	}
	x.Seq, x.Fold, x.Horizon, x.Epoch = h.Seq, h.Fold, h.Horizon, l.EpochOf(h.Seq).Epoch
	if x.Chain, err = l.Chain(h.Seq); err != nil {
		return err
	}
	digest := fold.NewDigester()
	c := cutter{done: func(start, data []byte) {
		x.starts = append(x.starts, start)
		x.Chunks = append(x.Chunks, Chunk{Hash: blob.Sum(data), Size: uint64(len(data))})
	}}
	err = x.view.CopyTables(x.base, nil, func(key, value []byte) bool {
		if catalog.IsStateKey(key) {
			digest.Add(key, value)
		}
		c.add(key, value)
		return true
	})
	if err != nil {
		return err
	}
	c.end()
	x.Digest = digest.Sum()
	return x.view.Objects(func(h blob.Hash, size int) bool {
		x.Objects = append(x.Objects, Chunk{Hash: h, Size: uint64(size)})
		return true
	})
}

// Chunk returns the bytes of a chunk by its number. The caller owns them. Errors: ErrChunk and those of the store.
func (x *Export) Chunk(i int) ([]byte, error) {
	if i < 0 || i >= len(x.Chunks) {
		return nil, fmt.Errorf("chunk %d of %d: %w", i, len(x.Chunks), ErrChunk)
	}
	var chunk []byte
	c := cutter{done: func(_, data []byte) {
		if chunk == nil {
			chunk = bytes.Clone(data)
		}
	}}
	err := x.view.CopyTables(x.base, x.starts[i], func(key, value []byte) bool {
		c.add(key, value)
		return chunk == nil
	})
	if c.end(); err == nil && (chunk == nil || blob.Sum(chunk) != x.Chunks[i].Hash) {
		err = fmt.Errorf("chunk %d has changed: %w", i, kv.ErrCorrupt)
	}
	return chunk, err
}

// Find returns the number of the chunk with a hash. It returns false if the snapshot has no such chunk.
func (x *Export) Find(h blob.Hash) (int, bool) {
	for i := range x.Chunks {
		if x.Chunks[i].Hash == h {
			return i, true
		}
	}
	return 0, false
}

// Close closes the view that the export reads.
func (x *Export) Close() error { return x.view.Close() }

// cutter makes chunks of keys and values. Each key and value follows its length, a varint.
type cutter struct {
	start []byte // first key of the current chunk
	data  []byte
	cut   bool // the chunk ends before the next key
	done  func(start, data []byte)
}

func (c *cutter) add(key, value []byte) {
	size := len(key) + len(value) + 2*binary.MaxVarintLen32
	if len(c.data) > 0 && (c.cut || len(c.data)+size > maxChunk) {
		c.end()
	}
	if len(c.data) == 0 {
		c.start = bytes.Clone(key)
	}
	c.data = append(binary.AppendUvarint(c.data, uint64(len(key))), key...)
	c.data = append(binary.AppendUvarint(c.data, uint64(len(value))), value...)
	if len(c.data) >= minChunk {
		h := fnv.New32a()
		h.Write(key)
		c.cut = h.Sum32()%cutEvery == 0
	}
}

// end ends the current chunk.
func (c *cutter) end() {
	if len(c.data) > 0 {
		c.done(c.start, c.data)
	}
	c.data, c.cut = c.data[:0], false
}

// Unpack yields the keys and values of a chunk, in the order of CopyTables. They are borrowed from the chunk. Keys belong to the state or
// to derived records and lack the application's ID. The error is ErrChunk.
func Unpack(chunk []byte, yield func(key, value []byte) bool) error {
	for len(chunk) > 0 {
		var key, value []byte
		var ok bool
		if key, chunk, ok = cutPart(chunk); ok {
			value, chunk, ok = cutPart(chunk)
		}
		if !ok || !catalog.IsStateKey(key) && !catalog.IsDerivedKey(key) {
			return fmt.Errorf("malformed: %w", ErrChunk)
		}
		if !yield(key, value) {
			return nil
		}
	}
	return nil
}

// cutPart removes a length and that number of bytes from the front of data.
func cutPart(data []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, false
	}
	data = data[size:]
	return data[:n:n], data[n:], true
}
