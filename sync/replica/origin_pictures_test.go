package replica_test

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

func (o *origin) snapshot(name string, q url.Values) ([]byte, error) {
	if name == "" {
		if err := o.queryOpening(q); err != nil {
			return nil, err
		}
		least, _ := strconv.ParseUint(q.Get("least"), 10, 64)
		return o.manifest(least), nil
	}
	h := hashOf(name)
	if o.export != nil {
		if i, ok := o.export.Find(h); ok {
			return o.export.Chunk(i)
		}
	}
	if data, err := catalog.Read(o.store, app).Object(h); err == nil {
		return data, nil
	}
	return nil, &wire.Refusal{Code: wire.RefusedUnknown}
}

// manifest returns the manifest of a new snapshot, or while o.old is set, of the last one if it has the entry least.
func (o *origin) manifest(least uint64) []byte {
	o.Helper()
	x, err := o.export, error(nil)
	if !o.old || x.Seq < least {
		if x, err = o.part.Export(o.base); err == nil && o.export != nil {
			err = o.export.Close()
		}
	}
	if err != nil {
		o.Fatal(err)
	}
	o.export = x
	f := wire.Manifest{
		App: app.String(), Epoch: x.Epoch, Seq: x.Seq, Chain: x.Chain, Fold: x.Fold, Digest: x.Digest, Horizon: x.Horizon,
		Stable: min(o.stableAt(), x.Seq),
	}
	for _, c := range x.Chunks {
		f.Chunks = append(f.Chunks, wire.Chunk(c))
	}
	for _, c := range x.Objects {
		f.Objects = append(f.Objects, wire.Chunk(c))
	}
	return f.Encode()
}

func (o *origin) digest() ([]byte, error) {
	l := o.part.Log()
	sum, err := fold.Digest(o.store, app)
	d := wire.Digest{Epoch: l.EpochOf(l.Head()).Epoch, Seq: l.Head(), Digest: sum}
	return d.Encode(), err
}

func (o *origin) have(body []byte) ([]byte, error) {
	h, err := wire.DecodeHaveRequest(body)
	if err != nil {
		return nil, err
	}
	var out wire.HaveReply
	for _, x := range h.Hashes {
		if _, ok := o.blobs[x]; ok {
			out.Hashes = append(out.Hashes, x)
		} else if n := len(o.begun[x]); n > 0 {
			out.Partial = append(out.Partial, wire.PartialBlob{Hash: x, Size: uint64(n)})
		}
	}
	return out.Encode(), nil
}

func (o *origin) put(name string, a *replica.Ask) (status int, body []byte, err error) {
	h := hashOf(name)
	var from, last, size int
	for _, f := range a.Header {
		if f.Name == "Content-Range" && f.Value == "bytes */0" {
			last = -1
		} else if f.Name == "Content-Range" {
			if _, err := fmt.Sscanf(f.Value, "bytes %d-%d/%d", &from, &last, &size); err != nil {
				return 0, nil, err
			}
		}
	}
	o.putBytes += len(a.Body)
	if from == 0 {
		o.begun[h] = nil
	}
	if from != len(o.begun[h]) || last-from+1 != len(a.Body) {
		return 409, nil, nil
	}
	o.begun[h] = append(o.begun[h], a.Body...)
	if len(o.begun[h]) < size {
		return 202, nil, nil
	}
	data := o.begun[h]
	delete(o.begun, h)
	if blob.Sum(data) != h {
		return 0, nil, &wire.Refusal{Code: wire.RefusedContent, Detail: "another hash"}
	}
	o.blobs[h] = data
	return 201, nil, nil
}

func (o *origin) get(name string, a *replica.Ask) (status int, body []byte, err error) {
	data, ok := o.blobs[hashOf(name)]
	if !ok {
		return 0, nil, &wire.Refusal{Code: wire.RefusedUnknown}
	}
	from := 0
	for _, f := range a.Header {
		if f.Name == "Range" {
			if _, err := fmt.Sscanf(f.Value, "bytes=%d-", &from); err != nil {
				return 0, nil, err
			}
		}
	}
	if from > 0 {
		return 206, data[from:], nil
	}
	return 200, data, nil
}
