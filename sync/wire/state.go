package wire

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Manifest lists the parts of a snapshot of an application's state. Its name is the SHA-256 of its encoding.
//
//field:message
type Manifest struct {
	App       string    `wire:"1"`                // id of the application
	Partition uint32    `wire:"2"`                // 0: an application has one
	Epoch     log.Epoch `wire:"3"`                // of the cursor of the state
	Seq       uint64    `wire:"4"`                // entry of the cursor: the last folded one
	Chain     log.Chain `wire:"5"`                // at that entry
	Fold      uint32    `wire:"6"`                // rules by which the origin folded it
	Digest    [32]byte  `wire:"7"`                // SHA-256 of the state: for each key in order, its length as a varint, it, the length of its value, the value
	Stable    uint64    `wire:"8"`                // last stable entry
	Horizon   log.HLC   `wire:"9,fixed"`          // clock below which writes of fields are refused
	Chunks    []Chunk   `wire:"10,max=maxChunks"` // in the order of their keys
	Objects   []Chunk   `wire:"11,max=maxChunks"` // manifests and weights that versions name; no chunk has them
	Seal      []byte    `wire:"12"`               // of the log up to `seq`, as of Entries
	Extra     []byte    `wire:"*"`
}

// Chunk is an object of a snapshot: its name and its length in bytes.
type Chunk struct {
	Hash blob.Hash `wire:"1"`
	Size uint64    `wire:"2"`
}

// Encode returns the message.
func (m *Manifest) Encode() []byte { return encodeManifest(nil, m) }

// DecodeManifest reads a Manifest. Errors: ErrFormat.
func DecodeManifest(data []byte) (Manifest, error) { return decodeManifest(data) }

// Digests is one node of the tree of digests over the keys of an application's state, as of
// an entry. A key hangs below the hexadecimal digits of its SHA-256.
//
//field:message
type Digests struct {
	Epoch  log.Epoch `wire:"1"`               // of the log of the state
	Seq    uint64    `wire:"2"`               // last entry of the state
	Prefix string    `wire:"3"`               // the node: 0 to 4 lower-case hexadecimal digits, with which the SHA-256 of a key begins
	Nodes  []Node    `wire:"4,max=16"`        // its sixteen children, in order; none below 4 digits
	Leaves []Digest  `wire:"5,max=maxLeaves"` // of a node of 4 digits: its keys in the order of their hashes, the SHA-256 of their values, with `values=1` the values
	Extra  []byte    `wire:"*"`
}

// Node is one child: how many keys are below it, and their digest.
type Node struct {
	Keys   uint64   `wire:"1"`
	Digest [32]byte `wire:"2"`
}

// Digest is one key of the state, its prefix taken off, and its value. In a leaf that was asked
// for without values, Value is nil and Hash is the SHA-256 of it.
type Digest struct {
	Key   []byte   `wire:"1"`
	Hash  [32]byte `wire:"2"`
	Value []byte   `wire:"3"`
}

// Encode returns the message.
func (m *Digests) Encode() []byte { return encodeDigests(nil, m) }

// DecodeDigests reads a Digests, whose keys and values borrow data. Errors: ErrFormat.
func DecodeDigests(data []byte) (Digests, error) { return decodeDigests(data) }

// HaveRequest asks which of these pictures the origin has.
//
//field:message
type HaveRequest struct {
	App    string      `wire:"1"`             // id of the application
	Hashes []blob.Hash `wire:"2,func=Hashes"` // hashes of 32 bytes each, at most 10,000
	Extra  []byte      `wire:"*"`
}

// Encode returns the message.
func (m *HaveRequest) Encode() []byte { return encodeHaveRequest(nil, m) }

// DecodeHaveRequest reads a Have. Errors: ErrFormat.
func DecodeHaveRequest(data []byte) (HaveRequest, error) { return decodeHaveRequest(data) }

// HaveReply answers a Have: the complete objects of the origin, and those of which it has the first bytes.
//
//field:message
type HaveReply struct {
	Hashes  []blob.Hash   `wire:"1,func=Hashes"`  // hashes of objects that the origin has, 32 bytes each
	Partial []PartialBlob `wire:"2,max=maxBegun"` // objects of which the origin has the first `size` bytes
	Extra   []byte        `wire:"*"`
}

// PartialBlob is a picture whose first Size bytes the origin has.
type PartialBlob struct {
	Hash blob.Hash `wire:"1"`
	Size uint64    `wire:"2"`
}

// Encode returns the message.
func (m *HaveReply) Encode() []byte { return encodeHaveReply(nil, m) }

// DecodeHaveReply reads a HaveReply. Errors: ErrFormat.
func DecodeHaveReply(data []byte) (HaveReply, error) { return decodeHaveReply(data) }

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
