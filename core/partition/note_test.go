package partition

import (
	"flag"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "rewrite testdata from what is encoded now")

// goldenOf adds a note with all of its fields. x can have some of them already.
func goldenOf[T any](g *testkit.Golden, name string, x *T, encode func([]byte, *T) []byte, decode func([]byte) (T, error)) {
	logtest.Set(x)
	g.Add(name, encode(nil, x), func(data []byte) ([]byte, error) {
		x, err := decode(data)
		return encode(nil, &x), err
	})
}

// TestGolden compares the notes of a partition with the bytes in existing stores.
func TestGolden(t *testing.T) {
	var g testkit.Golden
	goldenOf(&g, "token", &Token{}, encodeToken, decodeToken)
	goldenOf(&g, "note", &replicaState{}, encodeReplicaState, decodeReplicaState)
	goldenOf(&g, "conflict", &Conflict{Op: log.Op{Body: &log.InputDelete{}}}, encodeConflict, readConflict)
	goldenOf(&g, "kept entry", &keptEntry{}, encodeKeptEntry, decodeKeptEntry)
	goldenOf(&g, "frame", &Frame{}, encodeFrame, decodeFrame)
	goldenOf(&g, "marks", &trimMarks{}, encodeTrimMarks, decodeTrimMarks)
	goldenOf(&g, "writer", &writerRecord{}, encodeWriterRecord, decodeWriterRecord)
	g.Check(t, "testdata/golden.txt", *update)
}
