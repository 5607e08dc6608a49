package feed

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	runBytes   = 192 << 10 // of the operations of one run, as the log has them
	frameBytes = 192 << 10 // of derived records in one frame, and of a piece of an object
)

// run is some entries of a log for a reader, with the records that the reader needs before them.
type run struct {
	entries []log.Entry
	bytes   int
}

// take reads the entries after a cursor that make one run.
func (r *run) take(l log.Log, after uint64) error {
	r.entries, r.bytes = r.entries[:0], 0
	return l.Read(after+1, func(e log.Entry) bool {
		r.entries = append(r.entries, e)
		r.bytes += len(log.Encode(nil, &e.Op))
		return len(r.entries) < wire.MaxOps && r.bytes < runBytes
	})
}

// needs sends what the entries of a run need: derived records and objects. The records of an entry are those of the network that serves
// with it. An entry is read once it is in the log, and the state may get it later.
func (x *reader) needs(r *run) error {
	v := x.p.View()
	defer v.Close()
	base, err := x.c.f.o.Engine.Serving(v.Reader)
	if err != nil {
		return err
	}
	if next, first := v.Seq()+1, r.entries[0].Seq; next < first {
		err := x.p.Log().Read(next, func(e log.Entry) bool {
			if s, ok := e.Op.Body.(*log.NetworkSwitch); ok && e.Seq < first {
				base = s.Base
			}
			return e.Seq+1 < first
		})
		if err != nil {
			return err
		}
	}
	d := derivedFrames{x: x, from: v.Reader, out: wire.Derived{Base: base}}
	for i := range r.entries {
		if err := x.needsOf(&d, r, i); err != nil {
			return err
		}
	}
	return d.flush()
}

// needsOf sends what one entry needs.
func (x *reader) needsOf(d *derivedFrames, r *run, i int) error {
	switch b := r.entries[i].Op.Body.(type) {
	case *log.InputCreate:
		if !b.Blob.IsZero() {
			return d.add(b.Blob, b.Crop)
		}
	case *log.InputFetched:
		if b.Blob.IsZero() {
			return nil
		}
		crop, ok, err := r.cropOf(b.Input, d.from, i)
		if err != nil || !ok {
			return err
		}
		return d.add(b.Blob, crop)
	case *log.VersionResult:
		return x.object(d.from, b.Manifest)
	case *log.NetworkSwitch:
		for _, v := range b.Versions {
			if err := x.object(d.from, v.Manifest); err != nil {
				return err
			}
		}
		if err := d.flush(); err != nil {
			return err
		}
		d.out.Base = b.Base
		return d.all(r.entries[i].Op.At)
	}
	return nil
}

// cropOf returns the crop of an input: of its record, or of a create in the run that was not folded yet. A deleted input needs no record.
func (r *run) cropOf(input log.Dot, from catalog.Reader, before int) (raster.Crop, bool, error) {
	in, err := from.InputByDot(input)
	if err == nil {
		return in.Crop, true, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return raster.Crop{}, false, err
	}
	for i := range r.entries[:before] {
		if create, ok := r.entries[i].Op.Body.(*log.InputCreate); ok && r.entries[i].Op.Dot == input {
			return create.Crop, true, nil
		}
	}
	return raster.Crop{}, false, nil
}

// derivedFrames gathers derived records into frames.
type derivedFrames struct {
	x     *reader
	from  catalog.Reader
	out   wire.Derived
	bytes int
}

// add adds the record of a picture. One that is not there any more belonged to an input whose deletion
// follows in the log, or is made again by the replica.
func (d *derivedFrames) add(picture blob.Hash, crop raster.Crop) error {
	if d.x.wants.Vectors == wire.VectorsNone {
		return nil
	}
	record, err := d.from.DerivedRecord(d.out.Base, picture, crop)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	d.out.Records = append(d.out.Records, wire.DerivedRecord{Blob: picture, Crop: crop, Record: record})
	if d.bytes += len(record) + 80; d.bytes < frameBytes {
		return nil
	}
	return d.flush()
}

// all adds the derived records of the inputs that existed at a time, since another network serves from there. Those of later inputs come
// with their entries. A clock may be ahead of the log by the tolerance of log.Clock; a minute is more than that.
func (d *derivedFrames) all(at log.HLC) error {
	var failed error
	latest := at.Time().Add(time.Minute)
	err := d.from.Inputs(0, func(in catalog.Input) bool {
		if !in.Blob.IsZero() && !in.Created.Time().After(latest) {
			failed = d.add(in.Blob, in.Crop)
		}
		return failed == nil
	})
	return errors.Join(failed, err)
}

// flush sends what was gathered.
func (d *derivedFrames) flush() error {
	if len(d.out.Records) == 0 {
		return nil
	}
	err := d.x.send(wire.TypeDerived, d.out.Encode())
	d.out.Records, d.bytes = d.out.Records[:0], 0
	return err
}

// object sends an object in pieces. One that is not there belonged to a version whose deletion
// follows in the log.
func (x *reader) object(from catalog.Reader, h blob.Hash) error {
	if h.IsZero() {
		return nil
	}
	data, err := from.Object(h)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	for at := 0; err == nil && at < max(len(data), 1); at += frameBytes {
		piece := wire.Object{Hash: h, Size: uint64(len(data)), Offset: uint64(at), Data: data[at:min(at+frameBytes, len(data))]}
		err = x.send(wire.TypeObject, piece.Encode())
	}
	return err
}
