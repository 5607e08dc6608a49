package replica

import (
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
	g.Hold(t, "testdata/golden.txt", *update)
}
