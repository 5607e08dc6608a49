package node

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
)

// TestNetworksThatServe checks which networks serve the applications of an edge: the program's own, and those that an application's state
// names.
func TestNetworksThatServe(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	store := memkv.New()
	r, err := register.Open(register.Options{Store: store, Models: next, Hosted: struct{ register.Pictures }{}, Clock: time.Now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := r.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "test", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	app, err := catalog.ParseAppID(record.ID)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{Register: r, store: store, base: next.Base()}
	for _, serving := range [][32]byte{old.Base(), next.Base()} {
		tx := kv.NewOverlay(store)
		catalog.Write(tx, app).PutHeader(&catalog.Header{Base: serving})
		if err := store.Apply(tx.Batch()); err != nil {
			t.Fatal(err)
		}
		if !e.Serves(next.Base()) || e.Serves(old.Base()) != (serving == old.Base()) || e.Serves([32]byte{9}) {
			t.Errorf("an application with network %x: the old one serves %v, an unknown one %v", serving[:4], e.Serves(old.Base()), e.Serves([32]byte{9}))
		}
	}
}
