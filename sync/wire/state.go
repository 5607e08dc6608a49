package wire

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Manifest lists the parts of a snapshot of an application's state. Its name is the SHA-256 of its encoding.
//
//field:message
//field:reserved 2
type Manifest struct {
	App     string    `wire:"1"`                // id of the application
	Epoch   log.Epoch `wire:"3"`                // epoch of the entry
	Seq     uint64    `wire:"4"`                // log entry of the cursor: the last one that the state contains
	Chain   log.Chain `wire:"5"`                // chain at that entry
	Fold    uint32    `wire:"6"`                // rules with which the origin folded the state
	Digest  [32]byte  `wire:"7"`                // SHA-256 of the keys in order, each followed by its value, both after their varint length
	Stable  uint64    `wire:"8"`                // last stable entry
	Horizon log.HLC   `wire:"9,fixed"`          // clock; the origin refuses older writes of fields
	Chunks  []Chunk   `wire:"10,max=maxChunks"` // chunks in the order of their keys
	Objects []Chunk   `wire:"11,max=maxChunks"` // manifests and weights that versions refer to; no chunk contains them
	Extra   []byte    `wire:"*"`
}

// Chunk is an object of a snapshot: the hash that names it, and its length in bytes.
type Chunk struct {
	Hash blob.Hash `wire:"1"`
	Size uint64    `wire:"2"`
}

// Encode returns the message.
func (m *Manifest) Encode() []byte { return encodeManifest(nil, m) }

// DecodeManifest reads a Manifest. Errors: ErrFormat.
func DecodeManifest(data []byte) (Manifest, error) { return decodeManifest(data) }

// Digest is the digest of an application's state at a log entry.
//
//field:message
type Digest struct {
	Epoch  log.Epoch `wire:"1"` // epoch of the state's log
	Seq    uint64    `wire:"2"` // last log entry of the state
	Digest [32]byte  `wire:"3"` // digest of the state, as in Manifest; absent: `at` is another entry
	Extra  []byte    `wire:"*"`
}

// Encode returns the message.
func (m *Digest) Encode() []byte { return encodeDigest(nil, m) }

// DecodeDigest reads a Digest. Errors: ErrFormat.
func DecodeDigest(data []byte) (Digest, error) { return decodeDigest(data) }

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

// DecodeHaveRequest reads a HaveRequest. Errors: ErrFormat.
func DecodeHaveRequest(data []byte) (HaveRequest, error) { return decodeHaveRequest(data) }

// HaveReply answers a HaveRequest. It has the objects that the origin has completely, and those of which it has only the first bytes.
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

// LinkDates is the link of an origin that answers a DatesRequest.
const LinkDates = "dates"

// DatesRequest asks for the dates of pictures whose derived records the replica has from an earlier release.
//
//field:message
type DatesRequest struct {
	App string `wire:"1"` // id of the application
	// names of derived records, 80 bytes each, at most 512: the picture's hash, the first 16 bytes of SHA-256 of its crop, or zeros for
	// the whole picture, and the base
	Names []byte `wire:"2"`
	Extra []byte `wire:"*"`
}

// Encode returns the message.
func (m *DatesRequest) Encode() []byte { return encodeDatesRequest(nil, m) }

// DecodeDatesRequest reads a DatesRequest, whose Names borrow data. Errors: ErrFormat.
func DecodeDatesRequest(data []byte) (DatesRequest, error) { return decodeDatesRequest(data) }

// Dates answers a DatesRequest, in its order.
//
//field:message
type Dates struct {
	Dates []Date `wire:"1,max=MaxDates"` // a date for each name
	Extra []byte `wire:"*"`
}

// Date is the date of a picture's file.
type Date struct {
	Read  uint32    `wire:"1"` // version of the reader of the file; absent: the origin has not read it yet, or lacks the record
	Taken exif.Time `wire:"2"` // absent: the file has no date
}

// Encode returns the message.
func (m *Dates) Encode() []byte { return encodeDates(nil, m) }

// DecodeDates reads a Dates. Errors: ErrFormat.
func DecodeDates(data []byte) (Dates, error) { return decodeDates(data) }

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
