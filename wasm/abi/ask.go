package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
)

// Questions.
const (
	AskHosted     = "hosted"      // Name: a picture's public name; a HostedReply
	AskThumbnail  = "thumbnail"   // Name: likewise; the JPEG
	AskBlob       = "blob"        // Name: 32 bytes of hash; the bytes, where the guest has the blobs
	AskClose      = "close"       // nothing may be called afterwards
	AskMemory     = "memory"      // a MemoryReply
	AskNetwork    = "network"     // 32 bytes: the base of the network that analyses new inputs
	AskDigest     = "digest"      // of a copy's confirmed state; a DigestReply
	AskFilm       = "film"        // Film.Output: the first 4,096 bytes of a video; a FilmReply: run ffprobe. No args: analyse takes it
	AskFilmProbed = "film.probed" // Film.Output: ffprobe's; Film.Video; a FilmReply: run ffmpeg
	AskFilmFailed = "film.failed" // Film without Output; the error of its job
)

// Query is a question to a guest that is not a request.
//
//field:message envelope of question
//field:pages put
type Query struct {
	What string `wire:"1"`       // one of the questions below
	Name string `wire:"2,bytes"` // of a picture, or the 32 bytes of a hash
	Film Film   `wire:"4"`       // see *Films*. 3 is unused
}

// Marshal returns the envelope.
func (q *Query) Marshal() []byte { return encodeQuery(nil, q) }

// ParseQuestion reads an envelope.
func ParseQuestion(data []byte) (Query, error) { return decodeQuery(data) }

// reply is a question's answer.
//
//field:message envelope of reply
//field:pages get
type reply struct {
	Error *fault `wire:"1"`
	Value []byte `wire:"2,view"` // without an error
}

// AppendReply writes a question's answer: err, or a value.
func AppendReply(buf, value []byte, err error) []byte {
	if err != nil || len(value) == 0 {
		value = nil
	}
	return encodeReply(buf, &reply{faultOf(err), value})
}

// ParseReply reads an answer. told is the guest's error, err that of the envelope; value is borrowed.
func ParseReply(data []byte) (value []byte, told, err error) {
	r, err := decodeReply(data)
	return r.Value, r.Error.err(), err
}

// HostedReply is the picture of a public name. Data is present if the guest has the blobs. Without it, the host must fetch the picture of
// a copy first.
//
//field:fields put get
//field:pages get
type HostedReply struct {
	ContentType string    `wire:"1"`
	Data        []byte    `wire:"2"`    // where the guest has the blobs; absent: the picture of a copy is at its origin alone
	Expires     time.Time `wire:"3,ms"` // milliseconds since 1970; absent: never
	Hash        blob.Hash `wire:"4"`    // of the picture
}

// Marshal returns the fields of the value.
func (h *HostedReply) Marshal() []byte { return inner(h, putHostedReply) }

// ParseHosted reads the fields of a value. Its data is borrowed.
func ParseHosted(value []byte) (HostedReply, error) {
	return fields("hosted picture", value, getHostedReply)
}

// MemoryReply has the sizes of the guest's heap and of its memory from the system, in bytes.
//
//field:fields put get
//field:pages get
type MemoryReply struct {
	Heap   uint64 `wire:"1"` // bytes that the guest's heap holds
	System uint64 `wire:"2"` // bytes that it has of the system
}

// Marshal returns the fields of the value.
func (m *MemoryReply) Marshal() []byte { return inner(m, putMemoryReply) }

// ParseMemory reads the fields of a value.
func ParseMemory(value []byte) (MemoryReply, error) { return fields("memory", value, getMemoryReply) }

// DigestReply is the digest of a copy's part of its origin's log.
//
//field:fields put get
//field:pages get
type DigestReply struct {
	Epoch log.Epoch `wire:"1"` // of the log
	Seq   uint64    `wire:"2"` // last entry that was folded
	Root  [32]byte  `wire:"3"` // of the tree of digests, see `../sync/README.md`; absent: nothing was folded
}

// Marshal returns the fields of the value.
func (r *DigestReply) Marshal() []byte { return inner(r, putDigestReply) }

// ParseDigest reads the fields of a value.
func ParseDigest(value []byte) (DigestReply, error) { return fields("digest", value, getDigestReply) }
