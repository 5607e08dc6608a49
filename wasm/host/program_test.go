package host

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/api/apitest/program"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// programResult is the result of a program: every answer, and the content of the store.
type programResult struct {
	trace   []string
	answers [][]byte
	store   [sha256.Size]byte
	records int
}

// run runs the random program of a seed in a world.
func run(t *testing.T, w *apitest.World, seed uint64) programResult {
	t.Helper()
	var got programResult
	p := program.New(t, w, seed)
	p.Answered = func(r *api.Request, a api.Response) {
		got.trace = append(got.trace, fmt.Sprintf("%s %s?%s %s", r.Method, r.Path, r.Query, r.Body))
		got.answers = append(got.answers, fmt.Appendf(nil, "%d %s %v %s", a.Status, a.ContentType, a.Header, a.Body))
	}
	for range 12 {
		if p.Step(); t.Failed() {
			t.Fatalf("seed %d, the program so far:\n%s", seed, p.Trace())
		}
	}
	got.store, got.records = digest(t, w.Store)
	return got
}

// digest returns a hash of all keys and values in a store, and their number.
func digest(t *testing.T, store kv.Store) (sum [sha256.Size]byte, records int) {
	t.Helper()
	h := sha256.New()
	err := store.Scan(nil, nil, func(key, value []byte) bool {
		fmt.Fprintf(h, "%d %d ", len(key), len(value))
		h.Write(key)
		h.Write(value)
		records++
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Sum(sum[:0])
	return sum, records
}

// TestSameInModule runs random programs natively and on the module. All answers are the same, and so are all
// bytes in the store afterwards. Both also agree with the reference model of TestPrograms.
func TestSameInModule(t *testing.T) {
	set := apitest.Tiny(t)
	open := elsewhere(t, apitest.TinyBundles(t))
	for seed := range testkit.Seeds(t, 200, 20_000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := apitest.NewWorld(t, memkv.New(), set, nil, nil)
			w.Separate()
			native := run(t, w, seed)
			module := run(t, apitest.NewGuestWorld(t, memkv.New(), set, nil, nil, open), seed)
			for i, want := range native.answers {
				if got := module.answers[i]; !bytes.Equal(got, want) {
					t.Fatalf("seed %d: %s\n\nmodule\n%s\n\nnative\n%s", seed, native.trace[i], got, want)
				}
			}
			if module.store != native.store || module.records != native.records {
				t.Errorf("seed %d: the stores differ after the same %d answers: %d records, natively %d", seed, len(native.answers), module.records, native.records)
			}
		})
	}
}
