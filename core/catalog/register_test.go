package catalog_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// aRegister returns an app record with a value in each field.
func aRegister() catalog.AppRecord {
	id := catalog.AppID{1}.String()
	return catalog.AppRecord{
		Epoch: log.Epoch{9}, App: id,
		Record: catalog.App{Dot: log.Dot{Writer: 1, Seq: 1}, Seq: 1, ID: id, Name: "n", Language: "en", Owner: "o", Created: 3},
		Keys:   []catalog.Key{{Hash: [32]byte{1}, App: id, Scopes: []string{"All"}}, {Hash: [32]byte{2}, App: id, Description: "d"}},
		Client: catalog.Client{ID: "c", App: id, Secret: [32]byte{3}, Generation: 7},
		Edge:   catalog.Edge{ID: "e", Name: "attic", Apps: []string{id}, Key: [32]byte{4}, Site: 2, Created: 1, Enrolled: 2},
		Trust: catalog.Trust{
			Issuer: "https://origin.example", Keys: []log.PublicKey{{ID: "1", Key: [32]byte{5}}, {ID: "2", Key: [32]byte{6}}},
			Peers: []log.PublicKey{{ID: "f", Key: [32]byte{7}}},
		},
		Extra: protowire.AppendVarint(protowire.AppendTag(nil, 40, protowire.VarintType), 5),
	}
}

func TestRegisterBytes(t *testing.T) {
	revocation := catalog.AppRecord{Epoch: log.Epoch{1}, App: catalog.AppID{1}.String(), Revoked: catalog.ReasonRevoked}
	for _, want := range []catalog.AppRecord{aRegister(), revocation} {
		data := want.Encode()
		got, err := catalog.DecodeAppRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		clear(data)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the register keeps bytes that are not its own:\n%s", diff)
		}
	}
}

func FuzzDecodeRegister(f *testing.F) {
	x := aRegister()
	f.Add(x.Encode())
	x = catalog.AppRecord{App: x.App, Revoked: catalog.ReasonDeleted}
	f.Add(x.Encode())
	f.Add([]byte{1, 0x12, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := catalog.DecodeAppRecord(data)
		if err != nil {
			return
		}
		encoded := first.Encode()
		second, err := catalog.DecodeAppRecord(encoded)
		if err != nil {
			t.Fatalf("what was decoded cannot be read again: %v", err)
		}
		if again := second.Encode(); !bytes.Equal(again, encoded) {
			t.Fatalf("encoded %x, then %x", encoded, again)
		}
		tx := kv.NewOverlay(memkv.New())
		w := catalog.Write(tx, catalog.Control)
		if applied, err := w.ApplyAppRecord(&first, 1); err != nil || !applied {
			t.Fatalf("taken %v, %v", applied, err)
		}
		if applied, err := w.ApplyAppRecord(&first, 1); err != nil || applied {
			t.Fatalf("taken again %v, %v", applied, err)
		}
		if deleted, err := w.AppDeleted(first.App); err != nil || deleted != (first.Revoked != "") {
			t.Fatalf("gone %v, %v, want %q", deleted, err, first.Revoked)
		}
	})
}
