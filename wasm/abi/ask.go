package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
)

// The questions. Each line names the fields that the host sets, and then the value of the reply.
const (
	AskHosted     = "hosted"      // Name: a picture's public name. Reply: a HostedReply
	AskThumbnail  = "thumbnail"   // Name: a picture's public name. Reply: the JPEG of the thumbnail
	AskBlob       = "blob"        // Name: the 32 bytes of a hash. Reply: the picture's bytes, if the guest stores the pictures
	AskClose      = "close"       // Reply: none. The host must not call the guest afterwards
	AskMemory     = "memory"      // Reply: a MemoryReply
	AskSalvage    = "salvage"     // Reply: a SalvageReply
	AskNetwork    = "network"     // Reply: the 32 bytes of the base of the network that analyses new inputs
	AskDigest     = "digest"      // Reply: a DigestReply of a replica's confirmed state
	AskFilm       = "film"        // Film.Output: first 4,096 bytes of a video. Reply: a FilmReply for ffprobe; without Args, use analyse
	AskFilmProbed = "film.probed" // Film.Output: the output of ffprobe; Film.Video. Reply: a FilmReply for ffmpeg
	AskFilmFailed = "film.failed" // Film without Output. Reply: the error of the video's job
)

// Query is a question to a guest that is not a request.
//
//field:message envelope of question
//field:pages put
type Query struct {
	What string `wire:"1"`       // name of the question
	Name string `wire:"2,bytes"` // name of a picture, or the 32 bytes of a hash
	Film Film   `wire:"4"`       // state of a video, see *Films*. Field 3 is unused
}

// Marshal returns the envelope.
func (q *Query) Marshal() []byte { return encodeQuery(nil, q) }

// ParseQuery reads an envelope.
func ParseQuery(data []byte) (Query, error) { return decodeQuery(data) }

// reply is the answer to a question.
//
//field:message envelope of reply
//field:pages get
type reply struct {
	Error *fault `wire:"1"`
	Value []byte `wire:"2,view"` // value, if there is no error
}

// AppendReply writes the answer to a question: err, or a value.
func AppendReply(buf, value []byte, err error) []byte {
	if err != nil || len(value) == 0 {
		value = nil
	}
	return encodeReply(buf, &reply{faultOf(err), value})
}

// ParseReply reads an answer. guestErr is the guest's error, and err is an error of the envelope. value borrows data.
func ParseReply(data []byte) (value []byte, guestErr, err error) {
	r, err := decodeReply(data)
	return r.Value, r.Error.err(), err
}

// HostedReply is the picture with a public name. Data is present if the guest stores the pictures. Otherwise the host must first fetch
// the picture of a replica from its origin.
//
//field:fields put get
//field:pages get
type HostedReply struct {
	ContentType string    `wire:"1"`
	Data        []byte    `wire:"2"`    // bytes of the picture, if the guest stores it; absent: only the replica's origin has it
	Expires     time.Time `wire:"3,ms"` // milliseconds since 1970; absent: never
	Hash        blob.Hash `wire:"4"`    // hash of the picture
}

// Marshal returns the fields of the value.
func (h *HostedReply) Marshal() []byte { return inner(h, putHostedReply) }

// ParseHosted reads the fields of a value. The result borrows value.
func ParseHosted(value []byte) (HostedReply, error) {
	return fields("hosted picture", value, getHostedReply)
}

// MemoryReply has the sizes of the guest's heap and of its memory from the system, in bytes.
//
//field:fields put get
//field:pages get
type MemoryReply struct {
	Heap   uint64 `wire:"1"` // bytes in use on the guest's heap
	System uint64 `wire:"2"` // bytes that the guest has obtained from the system
}

// Marshal returns the fields of the value.
func (m *MemoryReply) Marshal() []byte { return inner(m, putMemoryReply) }

// ParseMemory reads the fields of a value.
func ParseMemory(value []byte) (MemoryReply, error) { return fields("memory", value, getMemoryReply) }

// SalvageReply is the result of opening the files with Settings.Salvage.
//
//field:fields put get
//field:pages get
type SalvageReply struct {
	Records      uint64 `wire:"1"` // number of records that were read
	Lost         uint64 `wire:"2"` // bytes of synced records that were cut
	LostPictures uint64 `wire:"3"` // bytes of synced pictures that were cut
}

// Marshal returns the fields of the value.
func (r *SalvageReply) Marshal() []byte { return inner(r, putSalvageReply) }

// ParseSalvage reads the fields of a value.
func ParseSalvage(value []byte) (SalvageReply, error) {
	return fields("salvage", value, getSalvageReply)
}

// DigestReply is the digest of the state that a replica has folded from its origin's log.
//
//field:fields put get
//field:pages get
type DigestReply struct {
	Epoch  log.Epoch `wire:"1"` // epoch of the log
	Seq    uint64    `wire:"2"` // last entry that was folded
	Digest [32]byte  `wire:"3"` // digest of the state, as `../sync/README.md` defines it
}

// Marshal returns the fields of the value.
func (r *DigestReply) Marshal() []byte { return inner(r, putDigestReply) }

// ParseDigest reads the fields of a value.
func ParseDigest(value []byte) (DigestReply, error) { return fields("digest", value, getDigestReply) }
