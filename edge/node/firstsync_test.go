package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/sync/replica"
)

// TestFirstSync checks that the log reports the steps of a first sync, with the time that it took.
func TestFirstSync(t *testing.T) {
	now := day
	c := lone(t, memkv.New(), &now)
	var text bytes.Buffer
	c.log = slog.New(slog.NewTextHandler(&text, nil))
	f := c.newFirstSync(anApp)
	for _, s := range []replica.Status{
		{Phase: replica.Connecting}, {Phase: replica.Rebasing}, {Phase: replica.Rebasing, Chunks: 4, ChunksDone: 1}, {Phase: replica.Pulling, Cursor: 9, Head: 10},
	} {
		if f.report(&s) {
			t.Errorf("%v ends the first sync", s.Phase)
		}
	}
	now = now.Add(3 * time.Second)
	if !f.report(&replica.Status{Phase: replica.Current}) {
		t.Error("the first sync has no end")
	}
	for _, want := range []string{`"joined application, fetching its data"`, "percent=25", "seconds=3"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log lacks %s: %s", want, text.String())
		}
	}
}
