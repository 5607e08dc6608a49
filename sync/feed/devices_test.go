//go:build !wasip1

package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

const pageID = "0123456789abcdef0123456789abcdef"

// contacts returns what Options.Contact got since the last call, one line each.
func contacts(got *[]api.Device, w *world) (lines []string) {
	for _, d := range *got {
		line := fmt.Sprintf("%s %s %q at %d", d.Kind, d.ID[:4], d.Name, d.Position)
		if !d.KeysAsOf.IsZero() {
			line += " with keys"
		}
		if !d.Contact.Equal(w.options.Clock()) {
			line += " at another time"
		}
		lines = append(lines, line)
	}
	*got = nil
	return lines
}

// TestContacts: an edge, and a replica that names itself, are known with their name and their position after each session and each answer. A
// replica without a name, with a wrong one, or that the origin refuses is not.
func TestContacts(t *testing.T) {
	var got []api.Device
	w := newWorld(t, func(o *feed.Options) {
		o.Contact = func(_ string, d api.Device) { got = append(got, d) }
	})
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, contacts(&got, w)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	r := w.join(w.App, w.Key)
	session := func(r *replica, device, name string, at uint64) {
		m := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Name: name, Apps: []wire.Position{{App: r.app, Seq: at}}}
		r.must(200, "POST", "/v2/sync/session"+device, m.Encode())
	}
	head := w.partition(w.App).Log().Head()
	changes := "/v2/sync/changes?app=" + w.App + "&since=0"
	r.must(200, "GET", changes, nil)
	session(r, "", "Chrome", 0)
	for _, wrong := range []string{"edge-" + pageID, "page-0", "page-" + strings.ToUpper(pageID), "page", pageID, "origin-" + pageID} {
		session(r, "?device="+wrong, "Chrome", 0)
	}
	check()

	session(r, "?device=page-"+pageID, " Chrome\x00 (Linux)\n", 1)
	check(`page 0123 "Chrome (Linux)" at 1`)
	session(r, "?device=folder-"+pageID, strings.Repeat("é", 200), 0)
	check(`folder 0123 "` + strings.Repeat("é", 100) + `" at 0`)
	r.must(200, "GET", changes+"&device=page-"+pageID, nil)
	check(fmt.Sprintf(`page 0123 "" at %d`, head))

	e := w.enrolEdge(1)
	session(e, "?device=page-"+pageID, "another name", 1)
	check(fmt.Sprintf(`edge %s "shop" at 1`, e.edge[:4]))
	e.must(200, "GET", changes, nil)
	check(fmt.Sprintf(`edge %s "" at %d with keys`, e.edge[:4], head))

	other := w.NewTenant(t, "", "en").App
	m := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: other}}}
	e.must(200, "POST", "/v2/sync/session", m.Encode())
	check()
}

// TestContactLasts: each keepalive of a stream is a contact.
func TestContactLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []api.Device
		w := lively(t, func(o *feed.Options) {
			o.Contact = func(_ string, d api.Device) { got = append(got, d) }
		})
		x := w.join(w.App, w.Key).listen(t, "since=0&live=stream&device=page-"+pageID)
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		synctest.Wait()
		got = nil
		x.expect(wire.TypeKeepalive)
		synctest.Wait()
		want := []string{fmt.Sprintf(`page 0123 "" at %d`, w.partition(w.App).Log().Head())}
		if diff := cmp.Diff(want, contacts(&got, w)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		x.cancel()
		x.ends(wire.WhyShutdown)
	})
}
