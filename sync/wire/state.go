package wire

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Manifest says what a snapshot of an application's state is made of. Its name is the SHA-256
// of its encoding.
type Manifest struct {
	App       string
	Partition uint32
	Epoch     log.Epoch
	Seq       uint64 // entry up to which the state was folded
	Chain     log.Chain
	Fold      uint32   // rules by which
	Digest    [32]byte // of the state
	Stable    uint64
	Horizon   log.HLC
	Chunks    []Chunk // in the order of their keys
	Objects   []Chunk // that the state names: version manifests and weights
	Seal      []byte  // of the log up to Seq, see [Entries]
	Extra     []byte
}

// Chunk is an object of a snapshot: its name and its length in bytes.
type Chunk struct {
	Hash blob.Hash
	Size uint64
}

// Encode returns the message.
func (m *Manifest) Encode() []byte {
	var e field.Encoder
	e.Text(1, m.App)
	e.Uint(2, uint64(m.Partition))
	e.Hash(3, m.Epoch[:])
	e.Uint(4, m.Seq)
	e.Hash(5, m.Chain[:])
	e.Uint(6, uint64(m.Fold))
	e.Hash(7, m.Digest[:])
	e.Uint(8, m.Stable)
	e.Fixed64(9, uint64(m.Horizon))
	encodeChunks(&e, 10, m.Chunks)
	encodeChunks(&e, 11, m.Objects)
	e.Raw(12, m.Seal)
	return e.Bytes(m.Extra)
}

// DecodeManifest reads a Manifest. Errors: ErrFormat.
func DecodeManifest(data []byte) (m Manifest, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.App = d.Text()
		case 2:
			m.Partition = d.Uint32()
		case 3:
			d.Hash(m.Epoch[:])
		case 4:
			m.Seq = d.Uint()
		case 5:
			d.Hash(m.Chain[:])
		case 6:
			m.Fold = d.Uint32()
		case 7:
			d.Hash(m.Digest[:])
		case 8:
			m.Stable = d.Uint()
		case 9:
			m.Horizon = log.HLC(d.Fixed64())
		case 10:
			m.Chunks = add(d, m.Chunks, maxChunks, decodeChunk(d.Message()))
		case 11:
			m.Objects = add(d, m.Objects, maxChunks, decodeChunk(d.Message()))
		case 12:
			m.Seal = d.Raw()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func encodeChunks(e *field.Encoder, number int, chunks []Chunk) {
	for i := range chunks {
		at := e.Open(number)
		e.Hash(1, chunks[i].Hash[:])
		e.Uint(2, chunks[i].Size)
		e.Close(at)
	}
}

func decodeChunk(d *field.Decoder) (c Chunk) {
	for d.Next() {
		switch d.Number {
		case 1:
			c.Hash = log.DecodeBlob(d)
		case 2:
			c.Size = d.Uint()
		}
	}
	return c
}

// Digests is one node of the tree of digests over the keys of an application's state, as of
// an entry. A key hangs below the hexadecimal digits of its SHA-256.
type Digests struct {
	Epoch  log.Epoch
	Seq    uint64
	Prefix string   // lower-case hexadecimal digits of the node; empty: the root
	Nodes  []Node   // its sixteen children, in order; none: it is a leaf
	Leaves []Digest // a leaf's keys, in the order of their hashes
	Extra  []byte
}

// Node is one child: how many keys are below it, and their digest.
type Node struct {
	Keys   uint64
	Digest [32]byte
}

// Digest is one key of the state, its prefix taken off, and its value. In a leaf that was asked
// for without values, Value is nil and Hash is the SHA-256 of it.
type Digest struct {
	Key   []byte
	Hash  [32]byte
	Value []byte
}

// Encode returns the message.
func (m *Digests) Encode() []byte {
	var e field.Encoder
	e.Hash(1, m.Epoch[:])
	e.Uint(2, m.Seq)
	e.Text(3, m.Prefix)
	for i := range m.Nodes {
		at := e.Open(4)
		e.Uint(1, m.Nodes[i].Keys)
		e.Hash(2, m.Nodes[i].Digest[:])
		e.Close(at)
	}
	for i := range m.Leaves {
		l := &m.Leaves[i]
		at := e.Open(5)
		e.Raw(1, l.Key)
		e.Hash(2, l.Hash[:])
		e.Raw(3, l.Value)
		e.Close(at)
	}
	return e.Bytes(m.Extra)
}

// DecodeDigests reads a Digests, whose keys and values borrow data. Errors: ErrFormat.
func DecodeDigests(data []byte) (m Digests, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			d.Hash(m.Epoch[:])
		case 2:
			m.Seq = d.Uint()
		case 3:
			m.Prefix = d.Text()
		case 4:
			m.Nodes = add(d, m.Nodes, 16, decodeNode(d.Message()))
		case 5:
			m.Leaves = add(d, m.Leaves, maxLeaves, decodeDigest(d.Message()))
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func decodeNode(d *field.Decoder) (n Node) {
	for d.Next() {
		switch d.Number {
		case 1:
			n.Keys = d.Uint()
		case 2:
			d.Hash(n.Digest[:])
		}
	}
	return n
}

func decodeDigest(d *field.Decoder) (l Digest) {
	for d.Next() {
		switch d.Number {
		case 1:
			l.Key = d.Raw()
		case 2:
			d.Hash(l.Hash[:])
		case 3:
			l.Value = d.Raw()
		}
	}
	return l
}

// Have asks which of these pictures the origin has.
type Have struct {
	App    string
	Hashes []blob.Hash
	Extra  []byte
}

// Encode returns the message.
func (m *Have) Encode() []byte {
	var e field.Encoder
	e.Text(1, m.App)
	putHashes(&e, 2, m.Hashes)
	return e.Bytes(m.Extra)
}

// DecodeHave reads a Have. Errors: ErrFormat.
func DecodeHave(data []byte) (m Have, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.App = d.Text()
		case 2:
			m.Hashes = getHashes(d)
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

// Had answers a Have: what the origin has whole, and of what it has the beginning.
type Had struct {
	Hashes []blob.Hash
	Begun  []Begun
	Extra  []byte
}

// Begun is a picture whose first Size bytes the origin has.
type Begun struct {
	Hash blob.Hash
	Size uint64
}

// Encode returns the message.
func (m *Had) Encode() []byte {
	var e field.Encoder
	putHashes(&e, 1, m.Hashes)
	for i := range m.Begun {
		at := e.Open(2)
		e.Hash(1, m.Begun[i].Hash[:])
		e.Uint(2, m.Begun[i].Size)
		e.Close(at)
	}
	return e.Bytes(m.Extra)
}

// DecodeHad reads a Had. Errors: ErrFormat.
func DecodeHad(data []byte) (m Had, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Hashes = getHashes(d)
		case 2:
			m.Begun = add(d, m.Begun, maxBegun, Begun(decodeChunk(d.Message())))
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func putHashes(e *field.Encoder, number int, list []blob.Hash) {
	var b []byte
	for i := range list {
		b = append(b, list[i][:]...)
	}
	e.Raw(number, b)
}

func getHashes(d *field.Decoder) []blob.Hash {
	b := d.Raw()
	if len(b)%len(blob.Hash{}) != 0 {
		d.Malformed("list of hashes")
		return nil
	}
	list := make([]blob.Hash, len(b)/len(blob.Hash{}))
	for i := range list {
		copy(list[i][:], b[i*len(list[i]):])
	}
	return list
}
