package node

import (
	"flag"
	"testing"

	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txt from what is encoded now")

// TestGolden compares the count of calls and the age of keys with the bytes in existing stores.
func TestGolden(t *testing.T) {
	var g testkit.Golden
	var r record
	logtest.Set(&r)
	g.Add("calls", encodeRecord(nil, &r), func(data []byte) ([]byte, error) {
		r, err := decodeRecord(data)
		return encodeRecord(nil, &r), err
	})
	var a agedAt
	logtest.Set(&a)
	g.Add("age", encodeAgedAt(nil, &a), func(data []byte) ([]byte, error) {
		a, err := decodeAgedAt(data)
		return encodeAgedAt(nil, &a), err
	})
	g.Check(t, "testdata/golden.txt", *update)
}
