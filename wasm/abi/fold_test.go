package abi_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/sightline-dev/sightline/sync/selftest"
)

// foldFile holds a log and what it folds to, for the hosts that are written in other languages: a module answers
// the question `fold` about the one with the other.
const foldFile = "testdata/fold.json"

// TestFold holds testdata to the log of a self-test, and to the state that this target folds it to.
func TestFold(t *testing.T) {
	log := selftest.Log()
	digest, err := selftest.Digest(log)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"log": hex.EncodeToString(log), "digest": hex.EncodeToString(digest[:])}
	if *update {
		data, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(foldFile, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(foldFile)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || got["log"] != want["log"] || got["digest"] != want["digest"] {
		t.Errorf("%s has a log of %d digits with digest %s, want %d and %s", foldFile, len(got["log"]), got["digest"], len(want["log"]), want["digest"])
	}
}
