package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/sightline-dev/sightline/core/kv"
)

// A record is the value of the log's key:
//
//	version of the form, 1 byte
//	kind, 1 byte
//	term of its primary, uvarint
//	part and number of parts, two uvarints, for kindPart only
//	a batch, or the part of one
//
// A batch that is larger than a record comes in parts, with nothing between them. The last part applies all.
const (
	recordVersion = 1

	kindBatch  = 1 // a batch
	kindPacked = 2 // a batch, compressed with zstd
	kindPart   = 3 // a part of a compressed batch
)

const (
	// recordSize is the default of Options.RecordSize. etcd refuses requests above 1.5 MB.
	recordSize = 256 << 10
	// packedFrom is the size of a batch from which it is compressed.
	packedFrom = 4 << 10
	// maxBatch is the maximum size of a batch.
	maxBatch = 1 << 30
)

// ErrRecord is returned for a record that this program cannot read: a newer program has written it, or it is damaged.
var ErrRecord = errors.New("the record of the cluster is unknown: update this node's program")

var packer = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBatch))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

// encode returns the records of a batch in a term: one, or its parts, which have at most size bytes of the batch.
func encode(b *kv.Batch, term int64, size int) [][]byte {
	head := func(kind byte) []byte { return binary.AppendUvarint([]byte{recordVersion, kind}, uint64(term)) }
	data := b.Bytes()
	if len(data) < packedFrom {
		return [][]byte{append(head(kindBatch), data...)}
	}
	packed := packer().EncodeAll(data, nil)
	if len(packed) <= size {
		return [][]byte{append(head(kindPacked), packed...)}
	}
	n := (len(packed) + size - 1) / size
	parts := make([][]byte, n)
	for i := range parts {
		part := binary.AppendUvarint(head(kindPart), uint64(i))
		part = binary.AppendUvarint(part, uint64(n))
		parts[i] = append(part, packed[i*size:min((i+1)*size, len(packed))]...)
	}
	return parts
}

// parts are the parts of a batch that have come. The caller sets them to zero at a claim, and when the watch starts again.
type parts struct {
	data []byte
	come uint64
}

// take takes the next record, which must be of a term. It returns its batch, which may share memory with the record; nil: a part is missing.
// Errors: ErrRecord, and ErrGap for a record of another term.
func (p *parts) take(record []byte, term int64) (*kv.Batch, error) {
	if len(record) < 2 || record[0] != recordVersion {
		return nil, fmt.Errorf("%w: version %x", ErrRecord, record[:min(1, len(record))])
	}
	of, n := binary.Uvarint(record[2:])
	if n <= 0 {
		return nil, fmt.Errorf("%w: it has no term", ErrRecord)
	}
	if int64(of) != term {
		return nil, fmt.Errorf("record of term %d in term %d: %w", of, term, ErrGap)
	}
	kind, data := record[1], record[2+n:]
	if kind == kindPart {
		part, n := binary.Uvarint(data)
		of, m := binary.Uvarint(data[max(n, 0):])
		switch {
		case n <= 0 || m <= 0 || part >= of:
			return nil, fmt.Errorf("%w: part %d of %d", ErrRecord, part, of)
		case part != p.come:
			return nil, fmt.Errorf("%w: part %d of %d after %d", ErrRecord, part, of, p.come)
		}
		p.data, p.come = append(p.data, data[n+m:]...), part+1
		if p.come < of {
			return nil, nil
		}
		kind, data = kindPacked, p.data
	}
	*p = parts{}
	switch kind {
	case kindBatch:
	case kindPacked:
		var err error
		if data, err = unpacker().DecodeAll(data, nil); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRecord, err)
		}
	default:
		return nil, fmt.Errorf("%w: kind %d", ErrRecord, kind)
	}
	b, err := kv.BorrowBatch(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return b, nil
}
