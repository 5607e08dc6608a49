package feed

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// vectorsOf reads the query's parameter for derived records.
func vectorsOf(q query) (wire.Vectors, error) {
	switch q.Get("vectors") {
	case "", "none":
		return wire.VectorsNone, nil
	case "q16":
		return wire.VectorsQ16, nil
	}
	return 0, malformedError("vectors must be none or q16")
}

// snapshot answers with the manifest of the named snapshot, or of a new one. least is an entry that it must include.
func (c *call) snapshot() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	vectors, err := vectorsOf(c.query)
	if err != nil {
		return api.Response{}, err
	}
	if err := c.namesOpening(p); err != nil {
		return api.Response{}, err
	}
	name, _ := blob.ParseHash(c.query.Get("name")) // an invalid name matches no snapshot
	head, floor := p.Log().Head(), p.Log().Floor() // a trimmed log does not continue from an earlier snapshot
	least, _ := strconv.ParseUint(c.query.Get("least"), 10, 64)
	x, err := c.f.exports.get(c, group{c.app, vectors}, func(x *export) bool {
		has, err := p.HasPlace(log.Mark{Epoch: x.Epoch, To: x.Seq}, x.Chain)
		return err == nil && has && x.Seq+1 >= floor && x.Seq >= min(least, head) &&
			(x.name == name || x.Seq == head || c.now.Sub(x.createdAt).Abs() < freshExport)
	}, func() (*export, error) { return c.export(p, vectors) })
	if err != nil {
		return api.Response{}, err
	}
	res := message(x.manifest)
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, c.f.exports.release(x)
}

// namesOpening returns a refusal if the query has another opening than the log.
func (c *call) namesOpening(p *partition.Origin) error {
	var opening log.Epoch
	if err := c.query.name("opening", opening[:]); err != nil || c.query.Get("opening") == "" {
		return err
	}
	return c.checkOpening(p, opening)
}

// export creates a snapshot of the current state.
func (c *call) export(p *partition.Origin, vectors wire.Vectors) (*export, error) {
	var base [32]byte
	if vectors != wire.VectorsNone {
		v := p.View()
		var err error
		base, err = c.f.o.Engine.ServingBase(v.Reader)
		if err = errors.Join(err, v.Close()); err != nil {
			return nil, err
		}
	}
	snapshot, err := p.Export(base)
	if err != nil {
		return nil, err
	}
	m := wire.Manifest{
		App: c.app, Epoch: snapshot.Epoch, Seq: snapshot.Seq, Chain: snapshot.Chain, Fold: snapshot.Fold, Digest: snapshot.Digest,
		Stable: c.f.o.Stable(c.app, snapshot.Seq), Horizon: snapshot.Horizon, Chunks: chunks(snapshot.Chunks), Objects: chunks(snapshot.Objects),
	}
	manifest := m.Encode()
	return &export{Export: snapshot, manifest: manifest, name: blob.Sum(manifest)}, nil
}

func chunks(list []partition.Chunk) []wire.Chunk {
	out := make([]wire.Chunk, len(list))
	for i, chunk := range list {
		out[i] = wire.Chunk{Hash: chunk.Hash, Size: chunk.Size}
	}
	return out
}

// chunk answers with a chunk of an open snapshot, or with an object.
func (c *call) chunk() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	number := 0
	x := c.f.exports.find(c.now, func(x *export) bool {
		if x.group.app != c.app {
			return false
		}
		var ok bool
		number, ok = x.Find(c.hash)
		return ok
	})
	if x == nil {
		v := p.View()
		defer v.Close()
		return c.objectPart(v.Reader, "no such chunk; download the newest snapshot")
	}
	c.state = true
	var data []byte
	err = c.reserve(int64(x.Chunks[number].Size))
	if err == nil {
		data, err = x.Chunk(number)
	}
	if err = errors.Join(err, c.f.exports.release(x)); err != nil {
		return api.Response{}, err
	}
	return c.bytes(data)
}

// objectPart answers with an object of the application, or a part of it. missing is the text of the refusal if it does not exist.
func (c *call) objectPart(r catalog.Reader, missing string) (api.Response, error) {
	data, err := c.object(r, c.hash, 0)
	if errors.Is(err, catalog.ErrNotFound) {
		return api.Response{}, unknown(missing)
	}
	if err != nil {
		return api.Response{}, err
	}
	return c.bytes(data)
}

// bytes answers with content-addressed bytes, or a part of them. A part is a copy, so that the rest does not stay in memory until the client
// has taken the part.
func (c *call) bytes(data []byte) (api.Response, error) {
	return c.part(int64(len(data)), func(from, to int64) (api.Response, error) {
		if to-from < int64(len(data)) {
			return api.Response{Body: bytes.Clone(data[from:to])}, nil
		}
		return api.Response{Body: data}, nil
	})
}
