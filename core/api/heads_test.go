package api

import (
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
)

// TestHeadsBounded holds that heads in memory are bounded, and that those used last stay.
func TestHeadsBounded(t *testing.T) {
	var h heads
	key := func(i int) blob.Hash { return blob.Hash{byte(i), byte(i >> 8), 1} }
	const size = maxHeadBytes / 10
	for i := range 100 {
		h.keep(key(i), &loadedHead{bytes: size})
		h.keep(key(i), &loadedHead{bytes: size})
		if h.find(key(0)) == nil {
			t.Fatalf("the head in use is gone after %d others", i)
		}
	}
	kept := 0
	for i := range 100 {
		if h.find(key(i)) != nil {
			kept++
		}
	}
	if kept != 10 || h.bytes != 10*size || h.order.Len() != len(h.byKey) {
		t.Errorf("%d heads of %d bytes are kept, %d in order, %d by key; want 10", kept, h.bytes, h.order.Len(), len(h.byKey))
	}
	if h.find(key(98)) == nil || h.find(key(50)) != nil {
		t.Error("not those used last are kept")
	}
	// One that is larger than all may be together is kept while it is the last.
	h.keep(blob.Hash{9, 9, 9}, &loadedHead{bytes: 2 * maxHeadBytes})
	if h.find(blob.Hash{9, 9, 9}) == nil || h.order.Len() != 1 {
		t.Errorf("%d heads beside a very large one", h.order.Len()-1)
	}
}

// TestVersionStatuses holds that a version shows every code it may have with words.
func TestVersionStatuses(t *testing.T) {
	for code, want := range map[int]string{
		21100: "Model trained successfully", 21102: "Model not yet trained", 21103: "Custom model is in queue for training, waiting on inputs to process.",
		21111: "Model training had no positive examples.", 21199: "Model training had an unknown error.",
	} {
		if s := versionStatus(code); s.code != code || s.description != want {
			t.Errorf("%d is shown as %d %q", code, s.code, s.description)
		}
	}
}

// TestReservedIDs holds that no thing can be made whose path would be another endpoint's.
func TestReservedIDs(t *testing.T) {
	for _, r := range routes {
		parts := segments("/v2" + r.path)
		if len(parts) < 2 || parts[1][0] == '{' {
			continue
		}
		switch parts[0] {
		case "models", "concepts", "workflows", "inputs":
			if err := checkID(ErrModelQuery, "id", parts[1]); err == nil {
				t.Errorf("%s: %q can be an id", r.path, parts[1])
			}
		}
	}
}
