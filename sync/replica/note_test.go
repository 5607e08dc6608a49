package replica

import (
	"encoding/hex"
	"flag"
	"testing"

	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txt from what is encoded now")

// TestGolden compares the encoded state of a machine with the bytes in existing stores.
func TestGolden(t *testing.T) {
	var g testkit.Golden
	var n persistedState
	logtest.Set(&n)
	g.Add("note", encodePersistedState(nil, &n), func(data []byte) ([]byte, error) {
		n, err := decodePersistedState(data)
		return encodePersistedState(nil, &n), err
	})
	g.Check(t, "testdata/golden.txt", *update)
}

// TestNoteOfOldVersion reads the note of a machine of version 0.1.0 with all of its fields.
func TestNoteOfOldVersion(t *testing.T) {
	data, err := hex.DecodeString("010a076279746573203210031a076279746573203422067465787420392a10060708090a0b0c0d0e0f1011121314152a100708090a0b0c0d0e0f101112131415163008")
	if err != nil {
		t.Fatal(err)
	}
	n, err := decodePersistedState(data)
	m := Machine{note: n}
	if err != nil || string(m.secretOf(2)) != "bytes 2" || string(m.secretOf(3)) != "bytes 4" || n.dated != 8 {
		t.Errorf("read %+v, %v", n, err)
	}
}
