package partition_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// claims returns the pictures that the replica in a store claims. It also checks that NeededPictures ends when its function returns false.
func claims(r kv.Reader) (map[blob.Hash]bool, error) {
	all := map[blob.Hash]bool{}
	err := partition.NeededPictures(r, app, func(h blob.Hash) bool {
		all[h] = true
		return true
	})
	first := 0
	firstErr := partition.NeededPictures(r, app, func(blob.Hash) bool {
		first++
		return false
	})
	if first != min(1, len(all)) {
		firstErr = fmt.Errorf("%d claims until the first of %d", first, len(all))
	}
	return all, errors.Join(err, firstErr)
}

// TestClaimsOfDuplicate follows the picture of an operation that turns out to be a duplicate: it is claimed while the operation waits, and
// while the conflict stands, under its name.
func TestClaimsOfDuplicate(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	hash, name := blob.Sum([]byte("mine")), [16]byte{7}
	checkClaims := func(when string, claimed, disputed bool) {
		t.Helper()
		want := map[blob.Hash]bool{}
		if claimed {
			want[hash] = true
		}
		if got, err := claims(c.store); !maps.Equal(got, want) || err != nil {
			t.Errorf("%s: Claims = %v, %v, want %v", when, got, err, want)
		}
		p, err := partition.ConflictPicture(c.store, app, name)
		if disputed && (err != nil || p.Hash != hash || p.App != app || p.ContentType != "image/png") || !disputed && !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s: Disputed = %+v, %v", when, p, err)
		}
	}
	checkClaims("at first", false, false)
	submit(t, origin, &log.InputCreate{ID: "twice", Blob: blob.Sum([]byte("theirs")), ContentType: "image/png"})
	_, span, err := c.SubmitSpan(t.Context(), partition.Caller{}, []log.Body{&log.InputCreate{ID: "twice", Blob: hash, ContentType: "image/png", Hosted: name}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkClaims("alone", true, false)
	c.pull(t, origin, 99) // the id is another's now
	checkClaims("not sent", true, false)
	c.push(t, origin, 99)
	c.pull(t, origin, 99)
	checkClaims("in dispute", true, true)
	c = openReplica(t, c.store)
	checkClaims("after a restart", true, true)
	if err := c.Dismiss(log.Dot{Writer: span.Writer, Seq: span.First}); err != nil {
		t.Fatal(err)
	}
	checkClaims("dismissed", false, false)

	url := submit(t, c.Replica, &log.InputCreate{ID: "url", URL: "https://example.org/1"})[0].Dot
	submit(t, c.Replica, &log.InputFetched{Input: url, Code: catalog.InputReady, Blob: hash, ContentType: "image/png"})
	checkClaims("fetched alone", true, false)
	if got, err := claims(kvtest.OrLate(t, memkv.New())); len(got) > 0 || err != nil {
		t.Errorf("what is no copy claims: %v, %v", got, err)
	}
}

// TestClaimsOfLostPictures has the origin refuse a create whose picture the copy does not have, as after a restore of the origin that makes
// the copy send operations again. The copy claims no picture that it cannot have.
func TestClaimsOfLostPictures(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	submit(t, c.Replica, &log.InputCreate{ID: "a", Blob: blob.Sum([]byte("a")), ContentType: "image/png"})
	ops := []log.Op{}
	if err := c.Pending(0, func(_ uint64, op log.Op) bool {
		partition.Refuse(&op, "blob: the origin did not receive the picture")
		ops = append(ops, op)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := origin.Accept(t.Context(), ops, nil); err != nil {
		t.Fatal(err)
	}
	c.pull(t, origin, 99)
	conflicts := 0
	if err := c.Conflicts(func(x partition.Conflict) bool {
		conflicts++
		return true
	}); err != nil || conflicts != 1 {
		t.Errorf("%d conflicts, %v, want 1", conflicts, err)
	}
	if got, err := claims(c.store); len(got) > 0 || err != nil {
		t.Errorf("Claims = %v, %v, want none", got, err)
	}
}

// TestUnsentOperationOfDeletedInput: a pending operation whose input was deleted, here or by an entry that was pulled, may be without its
// picture. The copy claims the picture, so that it can send the picture if it has it.
func TestUnsentOperationOfDeletedInput(t *testing.T) {
	origin := sealing(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	want := map[blob.Hash]bool{}
	var dots []log.Dot
	for _, id := range []string{"deleted here", "deleted elsewhere", "lives"} {
		picture := blob.Sum([]byte(id))
		dots = append(dots, submit(t, c.Replica, &log.InputCreate{ID: id, Blob: picture, ContentType: "image/png"})[0].Dot)
		if id == "lives" {
			want[picture] = true
		}
	}
	submit(t, c.Replica, &log.InputDelete{Input: dots[0]})
	submit(t, origin, &log.InputDelete{Input: dots[1]}) // of the log before a restore
	pullSealed(t, c.Replica, origin)
	got := map[blob.Hash]bool{}
	if err := partition.UnsentPictures(c.store, app, func(h blob.Hash) bool {
		got[h] = true
		return true
	}); err != nil || !maps.Equal(got, want) {
		t.Errorf("Unsent = %v, %v, want %v", got, err, want)
	}
	if all, err := claims(c.store); len(all) != 3 || err != nil {
		t.Errorf("Claims = %v, %v, want 3", all, err)
	}
}

// TestUnreadableClaimsAreErrors: what cannot be read is an error, so that nothing is dropped.
func TestUnreadableClaimsAreErrors(t *testing.T) {
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	submit(t, c.Replica, &log.InputCreate{ID: "a", Blob: blob.Sum([]byte("a")), ContentType: "image/png"})
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
	if got, err := claims(c.store); err == nil {
		t.Errorf("Claims of a damaged outbox = %v", got)
	}
}
