package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Questions.
const (
	AskHosted     = "hosted"      // Name: a picture's public name; a HostedReply
	AskThumbnail  = "thumbnail"   // Name: likewise; the JPEG
	AskBlob       = "blob"        // Name: 32 bytes of hash; the bytes, where the guest has the blobs
	AskAppCreate  = "app.create"  // Name, Language; an AppReply
	AskAppList    = "app.list"    // an AppReply
	AskAppDefault = "app.default" // an AppReply of the open door's application alone
	AskClose      = "close"       // nothing may be called afterwards
	AskMemory     = "memory"      // a MemoryReply
	AskDigest     = "digest"      // of a copy's confirmed state; a DigestReply
	AskFilm       = "film"        // Film.Output: the first 4,096 bytes of a video; a FilmReply: run ffprobe. No args: analyse takes it
	AskFilmProbed = "film.probed" // Film.Output: ffprobe's; Film.Video; a FilmReply: run ffmpeg
	AskFilmFailed = "film.failed" // Film without Output; the error of its job
)

// Question is anything that is no request.
type Question struct {
	What     string
	Name     string
	Language string
	Film     Film
}

// Marshal returns the envelope.
func (q *Question) Marshal() []byte {
	e := encoder(nil)
	e.Text(1, q.What)
	e.Text(2, q.Name)
	e.Text(3, q.Language)
	q.Film.put(e, 4)
	return e.Bytes(nil)
}

// ParseQuestion reads an envelope.
func ParseQuestion(data []byte) (Question, error) {
	var q Question
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			q.What = d.Text()
		case 2:
			q.Name = d.Text()
		case 3:
			q.Language = d.Text()
		case 4:
			q.Film = getFilm(d.Message())
		}
	}
	return q, envelope("question", d)
}

// AppendReply writes a question's answer: err, or a value.
func AppendReply(buf, value []byte, err error) []byte {
	e := encoder(buf)
	putError(e, 1, err)
	if err != nil {
		return e.Bytes(nil)
	}
	return append(last(e.Bytes(nil), 2, len(value)), value...)
}

// ParseReply reads an answer. told is the guest's error, err that of the envelope; value is borrowed.
func ParseReply(data []byte) (value []byte, told, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			told = getError(d)
		case 2:
			value = d.Raw()
		}
	}
	return value, told, envelope("reply", d)
}

// HostedReply is what a public name stands for. Data is there where the guest has the blobs; without it, the
// picture of a copy is to be fetched first.
type HostedReply struct {
	ContentType string
	Data        []byte
	Expires     time.Time // whole milliseconds; zero: never
	Hash        blob.Hash
}

// Marshal returns the fields of the value.
func (h *HostedReply) Marshal() []byte {
	e := encoder(nil)
	e.Text(1, h.ContentType)
	e.Raw(2, h.Data)
	if !h.Expires.IsZero() {
		e.Uint(3, uint64(h.Expires.UnixMilli()))
	}
	e.Hash(4, h.Hash[:])
	return inner(e)
}

// ParseHosted reads the fields of a value. Its data is borrowed.
func ParseHosted(value []byte) (HostedReply, error) {
	var h HostedReply
	d := field.Fields(value)
	for d.Next() {
		switch d.Number {
		case 1:
			h.ContentType = d.Text()
		case 2:
			h.Data = d.Raw()
		case 3:
			h.Expires = time.UnixMilli(int64(d.Uint())).UTC()
		case 4:
			d.Hash(h.Hash[:])
		}
	}
	return h, envelope("hosted picture", d)
}

// App is an application as the questions about applications tell it.
type App struct {
	ID, Name, Language string
}

// MarshalApps returns the fields of a list: 1 app* {1 id, 2 name, 3 language}.
func MarshalApps(apps []App) []byte {
	e := encoder(nil)
	for _, a := range apps {
		at := e.Open(1)
		e.Text(1, a.ID)
		e.Text(2, a.Name)
		e.Text(3, a.Language)
		e.Close(at)
	}
	return inner(e)
}

// ParseApps reads the fields of a list.
func ParseApps(value []byte) ([]App, error) {
	var apps []App
	d := field.Fields(value)
	for d.Next() {
		if d.Number != 1 {
			continue
		}
		var a App
		m := d.Message()
		for m.Next() {
			switch m.Number {
			case 1:
				a.ID = m.Text()
			case 2:
				a.Name = m.Text()
			case 3:
				a.Language = m.Text()
			}
		}
		apps = append(apps, a)
	}
	return apps, envelope("applications", d)
}

// MemoryReply is what the guest's heap holds and what it has of the system, in bytes.
type MemoryReply struct{ Heap, System uint64 }

// Marshal returns the fields of the value.
func (m *MemoryReply) Marshal() []byte {
	e := encoder(nil)
	e.Uint(1, m.Heap)
	e.Uint(2, m.System)
	return inner(e)
}

// ParseMemory reads the fields of a value.
func ParseMemory(value []byte) (MemoryReply, error) {
	var m MemoryReply
	d := field.Fields(value)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Heap = d.Uint()
		case 2:
			m.System = d.Uint()
		}
	}
	return m, envelope("memory", d)
}

// DigestReply is the digest of what a copy has of its origin's log.
//
//field:fields put get
//field:pages get
type DigestReply struct {
	Epoch log.Epoch `wire:"1"` // of the log
	Seq   uint64    `wire:"2"` // last entry that was folded
	Root  [32]byte  `wire:"3"` // of the tree of digests, see `../sync/README.md`; absent: nothing was folded
}

// Marshal returns the fields of the value.
func (r *DigestReply) Marshal() []byte {
	e := encoder(nil)
	putDigestReply(e, r)
	return inner(e)
}

// ParseDigest reads the fields of a value.
func ParseDigest(value []byte) (r DigestReply, err error) {
	d := field.Fields(value)
	getDigestReply(d, &r)
	return r, envelope("digest", d)
}
