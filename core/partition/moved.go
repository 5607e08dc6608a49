package partition

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A replica whose site a restored log does not know takes another one, and sends what the log lacks of it again. Another replica may have pulled
// the same operations, and does not give them back:
//
//	moved/SITE        last operation that stays the site's

const movedName = "moved/"

func movedKey(app catalog.AppID, site log.Site) []byte {
	return binary.BigEndian.AppendUint32(app.LocalKey(movedName), uint32(site))
}

// Moves notes that a replica takes another site, and sends again all of the operations of this one that the log lacks. It returns the last
// one that the log has. Errors: ErrReplica and those of kv.
func (p *Partition) Moves(site log.Site) (last uint64, err error) {
	p.appending.Lock()
	defer p.appending.Unlock()
	if err := p.whyClosed(); err != nil {
		return 0, err
	}
	if p.replica != nil {
		return 0, ErrReplica
	}
	h, err := p.heard(site)
	if err != nil {
		return 0, err
	}
	var b kv.Batch
	b.Put(movedKey(p.o.App, site), binary.BigEndian.AppendUint64(nil, h.seq))
	wait, err := p.o.Store.Commit(&b)
	if err == nil {
		err = wait()
	}
	return h.seq, err
}

// moved returns the last operation that stays a site's whose replica has taken another one; false: it has not.
func (p *Partition) moved(site log.Site) (last uint64, moved bool, err error) {
	data, err := p.o.Store.Get(movedKey(p.o.App, site))
	switch {
	case isMissing(err):
		return 0, false, nil
	case err == nil && len(data) != 8:
		err = fmt.Errorf("%w: note of a site of %d bytes", kv.ErrCorrupt, len(data))
	}
	if err != nil {
		return 0, false, err
	}
	return binary.BigEndian.Uint64(data), true, nil
}

// sentAgain reports whether the log has an operation as that of another site, to which the replica has moved those after last.
func (p *Partition) sentAgain(op *log.Op, last uint64) (found bool, err error) {
	err = p.log.Read(p.log.Floor(), func(e log.Entry) bool {
		if e.Op.Dot.Site == op.Dot.Site || e.Op.Dot.Seq != op.Dot.Seq-last {
			return true
		}
		same, err := log.Decode(log.Encode(nil, op))
		if err != nil {
			return true
		}
		same.Dot, same.At = e.Op.Dot, e.Op.At
		log.Rename(same.Body, func(d log.Dot) log.Dot {
			if d.Site == op.Dot.Site && d.Seq > last {
				return log.Dot{Site: e.Op.Dot.Site, Seq: d.Seq - last}
			}
			return d
		})
		found = bytes.Equal(log.Encode(nil, &same), log.Encode(nil, &e.Op))
		return !found
	})
	return found, err
}
