package log_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
)

// TestKindNames checks that each kind is named after its body's type, and that no other names exist.
func TestKindNames(t *testing.T) {
	inner := regexp.MustCompile(`([a-z])([A-Z])`)
	kinds := map[log.Kind]bool{}
	for _, b := range logtest.Bodies() {
		kind := log.KindOf(b)
		kinds[kind] = true
		want := strings.ToLower(inner.ReplaceAllString(strings.TrimPrefix(fmt.Sprintf("%T", b), "*log."), "${1}_$2"))
		if got := kind.String(); got != want {
			t.Errorf("%T is called %q, want %q", b, got, want)
		}
	}
	for k := range log.Kind(256) {
		if name := k.String(); name != "unknown" && !kinds[k] {
			t.Errorf("kind %d, %s: logtest.Bodies has no body of it", k, name)
		}
	}
	if kind := log.KindOf(&log.Unknown{Kind: 200}); kind != 200 || kind.String() != "unknown" {
		t.Errorf("a kind of a later version is %d, %s", kind, kind)
	}
}
