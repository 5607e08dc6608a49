package instance

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Ask answers a Query. The answer is a Reply.
func (i *Instance) Ask(data []byte) []byte {
	var value []byte
	q, err := abi.ParseQuery(data)
	if err == nil {
		i.guard("question", func() { value, err = i.ask(&q) }, func() { err = api.ErrInternal })
	}
	i.answer = abi.AppendReply(i.answer, value, err)
	return i.answer
}

func (i *Instance) ask(q *abi.Query) ([]byte, error) {
	switch q.What {
	case abi.AskMemory:
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return (&abi.MemoryReply{Heap: m.HeapAlloc, System: m.Sys}).Marshal(), nil
	case abi.AskSalvage:
		s := &i.salvaged
		return (&abi.SalvageReply{Records: uint64(s[0].Records), Lost: uint64(s[0].Lost), LostPictures: uint64(s[1].Lost)}).Marshal(), nil
	case abi.AskNetwork:
		return i.network[:], nil
	case abi.AskClose:
		return nil, i.shut()
	case abi.AskFilm:
		return filmOf(q.Film.Output)
	case abi.AskFilmProbed:
		return decodeCommand(&q.Film)
	case abi.AskFilmFailed:
		return nil, filmError(&q.Film)
	}
	if i.engine == nil {
		return nil, errNoEngine
	}
	switch q.What {
	case abi.AskHosted:
		return i.hostedPicture(q.Name)
	case abi.AskThumbnail:
		return i.engine.Register.Thumbnail(q.Name)
	case abi.AskBlob:
		if i.pictures == nil || len(q.Name) != len(blob.Hash{}) {
			return nil, blob.ErrNotFound
		}
		return i.pictures.blobs.Get(context.Background(), blob.Hash([]byte(q.Name)))
	case abi.AskDigest:
		return i.digest()
	}
	return nil, fmt.Errorf("%w: unknown question %q", errEnvelope, q.What)
}

// hostedPicture returns a HostedReply for a public name. The reply has the bytes if the instance stores the picture. If only the origin of
// a replica has them, the reply has none.
func (i *Instance) hostedPicture(name string) ([]byte, error) {
	p, err := i.engine.Register.HostedPicture(name)
	if err != nil {
		return nil, err
	}
	r := abi.HostedReply{ContentType: p.ContentType, Expires: p.Expires, Hash: p.Hash}
	if i.pictures != nil {
		r.Data, err = i.pictures.blobs.Get(context.Background(), p.Hash)
		if err != nil && (i.machine == nil || !errors.Is(err, blob.ErrNotFound)) {
			return nil, err
		}
	}
	return r.Marshal(), nil
}
