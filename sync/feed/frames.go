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
	runBytes   = 192 << 10 // maximum encoded bytes of the operations in one run, apart from the last
	frameBytes = 192 << 10 // bytes of derived records at which a frame is sent, and maximum bytes of a chunk of an object
)

// run is a sequence of log entries for a reader.
type run struct {
	ops   []log.Op
	rows  []byte
	epoch log.Epoch // of all entries
}

// take reads the entries of the next run after a cursor.
func (r *run) take(l *log.Store, after uint64) error {
	r.ops, r.rows = r.ops[:0], r.rows[:0]
	of := l.EpochOf(after + 1)
	r.epoch = of.Epoch
	var row []byte
	return l.Read(after+1, func(e log.Entry) bool {
		r.ops = append(r.ops, e.Op)
		row = log.Encode(row[:0], &e.Op)
		r.rows = log.AppendRow(r.rows, row)
		return len(r.ops) < wire.MaxOps && len(r.rows) < runBytes && e.Seq < of.To
	})
}

// needs sends what the entries of a run need: derived records and objects. An entry needs the records of the network that serves when the
// entry is folded. The view may be older than the entry, because take reads entries before they are folded.
func (x *reader) needs(r *run) error {
	v := x.p.View()
	defer v.Close()
	base, err := x.c.f.o.Engine.ServingBase(v.Reader)
	if err != nil {
		return err
	}
	if next, first := v.Seq()+1, x.cursor+1; next < first {
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
	for i := range r.ops {
		if err := x.needsOf(&d, r, i); err != nil {
			return err
		}
	}
	return d.flush()
}

// needsOf sends the derived records and objects that entry i needs.
func (x *reader) needsOf(d *derivedFrames, r *run, i int) error {
	switch b := r.ops[i].Body.(type) {
	case *log.InputCreate:
		if !b.Blob.IsZero() {
			return d.add(b.Blob, b.Crop)
		}
	case *log.InputFetched:
		if b.Blob.IsZero() {
			return nil
		}
		crop, isNew := cropIn(r.ops[:i], b.Input)
		if !isNew {
			in, err := d.from.InputByDot(b.Input)
			if errors.Is(err, catalog.ErrNotFound) {
				return nil // deleted
			}
			if err != nil {
				return err
			}
			crop = in.Crop
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
		return d.all(r.ops[i].At)
	}
	return nil
}

// derivedFrames collects derived records into frames.
type derivedFrames struct {
	x     *reader
	from  catalog.Reader
	out   wire.Derived
	bytes int
}

// add adds the derived record of a picture. If the record does not exist, a later entry deletes its input, or the replica
// derives it again.
func (d *derivedFrames) add(picture blob.Hash, crop raster.Crop) error {
	if d.x.vectors == wire.VectorsNone {
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

// all adds the derived records of all inputs that exist at a network switch. Records of later inputs precede their entries. A clock can be
// ahead of the log by the tolerance of log.Clock, which is less than the minute that all adds.
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

// flush sends the collected records.
func (d *derivedFrames) flush() error {
	if len(d.out.Records) == 0 {
		return nil
	}
	err := d.x.send(wire.TypeDerived, d.out.Encode())
	d.out.Records, d.bytes = d.out.Records[:0], 0
	return err
}

// object sends an object in chunks. If it does not exist, a later entry deletes its version.
func (x *reader) object(from catalog.Reader, h blob.Hash) error {
	if h.IsZero() {
		return nil
	}
	data, err := x.c.object(from, h, catchUpBytes)
	if x.c.r.Memory != nil {
		defer x.c.r.Memory.Settle(catchUpBytes)
	}
	var busy *wire.Refusal
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	case errors.As(err, &busy):
		return x.end(wire.WhyError, errSending, time.Second)
	}
	for at := 0; err == nil && at < max(len(data), 1); at += frameBytes {
		chunk := wire.Object{Hash: h, Size: uint64(len(data)), Offset: uint64(at), Data: data[at:min(at+frameBytes, len(data))]}
		err = x.send(wire.TypeObject, chunk.Encode())
	}
	return err
}
