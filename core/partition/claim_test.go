package partition_test

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestClaims follows the picture of an operation that turns out to be a duplicate: it is claimed while the operation
// waits, and while the conflict stands, under its name.
func TestClaims(t *testing.T) {
	origin := open(t, memkv.New())
	c := openReplica(t, memkv.New(), 2)
	mine, name := blob.Sum([]byte("mine")), [16]byte{7}
	holds := func(when string, claimed, disputed bool) {
		t.Helper()
		if got, err := partition.Claims(c.store, app, mine); got != claimed || err != nil {
			t.Errorf("%s: Claims = %v, %v, want %v", when, got, err, claimed)
		}
		p, err := partition.Disputed(c.store, app, name)
		if disputed && (err != nil || p.Hash != mine || p.ContentType != "image/png") || !disputed && !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s: Disputed = %+v, %v", when, p, err)
		}
		if got, err := partition.Claims(c.store, app, blob.Sum([]byte("another"))); got || err != nil {
			t.Errorf("%s: another picture is claimed: %v, %v", when, got, err)
		}
	}
	holds("at first", false, false)
	submit(t, origin, &log.InputCreate{ID: "twice", Blob: blob.Sum([]byte("theirs")), ContentType: "image/png"})
	submit(t, c.Partition, &log.InputCreate{ID: "twice", Blob: mine, ContentType: "image/png", Hosted: name})
	holds("alone", true, false)
	c.pull(t, origin, 99) // the id is another's now
	holds("not sent", true, false)
	c.push(t, origin, 99)
	c.pull(t, origin, 99)
	holds("in dispute", true, true)
	c = openReplica(t, c.store, c.site)
	holds("after a restart", true, true)
	if err := c.Dismiss(log.Dot{Site: 2, Seq: 1}); err != nil {
		t.Fatal(err)
	}
	holds("dismissed", false, false)

	submit(t, c.Partition, &log.InputCreate{ID: "url", URL: "https://example.org/1"})
	submit(t, c.Partition, &log.InputFetched{Input: log.Dot{Site: 2, Seq: 2}, Code: catalog.InputReady, Blob: mine, ContentType: "image/png"})
	holds("fetched alone", true, false)
	if got, err := partition.Claims(memkv.New(), app, mine); got || err != nil {
		t.Errorf("what is no copy claims: %v, %v", got, err)
	}
}

// TestClaimsOfDamage: what cannot be read is an error, so that nothing is dropped.
func TestClaimsOfDamage(t *testing.T) {
	c := openReplica(t, memkv.New(), 2)
	submit(t, c.Partition, &log.InputCreate{ID: "a", Blob: blob.Sum([]byte("a"))})
	prefix := app.LogPrefix()
	var b kv.Batch
	err := c.store.Scan(prefix, append(prefix[:len(prefix):len(prefix)], 0xff), func(key, _ []byte) bool {
		if key[len(prefix)] == 'e' {
			b.Put(key, []byte("damaged"))
		}
		return true
	})
	if err == nil {
		err = c.store.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := partition.Claims(c.store, app, blob.Sum([]byte("a"))); err == nil {
		t.Errorf("Claims of a damaged outbox = %v", got)
	}
}
