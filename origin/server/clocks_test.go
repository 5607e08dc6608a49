package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestClocksAheadAreLogged: the log names only an application with operations from the future.
func TestClocksAheadAreLogged(t *testing.T) {
	store, now := memkv.New(), time.Unix(1_700_000_000, 0)
	apps := make([]catalog.App, 3)
	for i, ahead := range []time.Duration{0, maxBehind, 49 * time.Hour} {
		app := catalog.AppID{byte(i + 1)}
		apps[i].ID = app.String()
		p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: func() time.Time { return now.Add(ahead) }})
		if err == nil {
			_, err = p.Submit(context.Background(), "", []log.Body{&log.ConceptCreate{ID: "c", Name: "c"}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var logs bytes.Buffer
	if err := logClocks(store, apps, now, slog.New(slog.NewTextHandler(&logs, nil))); err != nil {
		t.Fatal(err)
	}
	if want := "app=" + apps[2].ID + " behind=49h0m0s\n"; strings.Count(logs.String(), "level=WARN") != 1 || !strings.HasSuffix(logs.String(), want) {
		t.Errorf("log: %s, want one line that ends in %s", &logs, want)
	}
}
