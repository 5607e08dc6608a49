package replica_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestManyDerivedRecords: more derived records come before an entry than a machine holds, as before a switch of the network with more than
// about 19,000 inputs. They are written before it.
func TestManyDerivedRecords(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}})
	r.settle()
	const frames = 17 // of 4 MB
	record := encodeDerived(t, create("a"), catalog.DerivedData{Embedding: make([]byte, 4<<20)})
	sent := false
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/changes" && !sent {
			sent = true
			var before []byte
			for i := range frames {
				d := wire.Derived{Base: [32]byte{8}, Records: []wire.DerivedRecord{{Blob: blob.Hash{byte(i)}, Record: record}}}
				before = wire.AppendFrame(before, wire.TypeDerived, d.Encode())
			}
			x.Body = append(before, x.Body...)
		}
		return true
	}
	r.origin.submit(create("a"))
	r.settle()
	r.agree()
	for i := range frames {
		if _, err := catalog.Read(r.store, app).DerivedRecord([32]byte{8}, blob.Hash{byte(i)}, raster.Crop{}); err != nil {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if s := r.status(); !sent || s.Problem != "" {
		t.Errorf("status %+v", s)
	}
}
