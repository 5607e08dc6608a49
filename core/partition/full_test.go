package partition_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestFullStoreAcceptsDeletions checks that nothing can be added to the full files of a browser, and that everything can be deleted.
func TestFullStoreAcceptsDeletions(t *testing.T) {
	d := journaltest.NewDisk()
	store, err := memkv.Open(memkv.Options{Files: &memkv.Files{Disk: d, Pair: [2]int{0, 1}, Reserve: 64 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, store)
	var dots []log.Dot
	d.SetQuota(d.Total() + 4000)
	for len(dots) < 200 {
		v, err := p.Submit(t.Context(), "key", []log.Body{create(fmt.Sprint(len(dots)))}, nil)
		if errors.Is(err, kv.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		dots = append(dots, v[0].Dot)
	}
	if len(dots) == 0 || len(dots) == 200 {
		t.Fatalf("%d inputs fit", len(dots))
	}
	for _, dot := range dots {
		submit(t, p, &log.InputDelete{Input: dot})
	}
	v := p.View()
	defer v.Close()
	if got := ids(t, v.Reader); len(got) > 0 {
		t.Errorf("inputs %v", got)
	}
	if _, err := v.InputByID("0"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("the first input: %v", err)
	}
}
