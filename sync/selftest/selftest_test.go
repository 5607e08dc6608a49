package selftest_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/selftest"
	"github.com/sightline-dev/sightline/sync/wire"
)

// rules1 is what the rules of version 1 make of the log. It never changes: another digest is another
// version of the rules.
const rules1 = "f5c5cd3fe7b589c3e78c3d6c967f3c5e41045fadc571b6a3278b950410f02257"

// TestDigest holds the fold to what it has always made of the log.
func TestDigest(t *testing.T) {
	block := selftest.Log()
	got, err := selftest.Digest(block)
	if err != nil || hex.EncodeToString(got[:]) != rules1 {
		t.Errorf("digest %x, %v, want %s", got, err, rules1)
	}
	ops, err := wire.DecodeOps(block)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i := range ops {
		was := ops[i].Body
		ops[i].Body = &log.Refused{}
		other, err := selftest.Digest(wire.EncodeOps(ops))
		if err != nil {
			t.Fatal(err)
		}
		if other != got {
			kinds[fmt.Sprintf("%T", was)] = true
		}
		ops[i].Body = was
	}
	if len(kinds) < 18 {
		t.Errorf("operations of %d kinds matter: %v", len(kinds), kinds)
	}
	if _, err := selftest.Digest(block[:len(block)-1]); err == nil {
		t.Error("half a block has a digest")
	}
}
