package log_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
)

func TestWriterText(t *testing.T) {
	for text, w := range map[string]log.Writer{"0": 0, "1": 1, "4294967295": 1<<32 - 1, "0000000100000000": 1 << 32, "41a0c8e2b7d93f50": 0x41a0c8e2b7d93f50} {
		if got := w.String(); got != text {
			t.Errorf("writer %d is %q, want %q", uint64(w), got, text)
		}
		if got, ok := log.ParseWriter(text); !ok || got != w {
			t.Errorf("%q is writer %d, %v; want %d", text, uint64(got), ok, uint64(w))
		}
	}
	for _, text := range []string{"", "-1", "01", "4294967296", "00000000ffffffff", "41A0C8E2B7D93F50", "41a0c8e2b7d93f500", "x"} {
		if w, ok := log.ParseWriter(text); ok {
			t.Errorf("%q is writer %d", text, uint64(w))
		}
	}
}

// TestDotKeys checks that the keys of a writer's dots are together and in the order of their numbers, and that a site has the keys of
// version 0.1.0: the site and a number of 8 bytes.
func TestDotKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := log.Dot{Writer: log.Writer(rapid.Uint64().Draw(t, "writer")), Seq: rapid.Uint64Max(log.MaxSeq).Draw(t, "seq")}
		key := d.AppendKey([]byte("k"))
		if got := log.KeyDot(key); got != d || len(key) != 13 || !bytes.HasPrefix(key, d.Writer.AppendKey([]byte("k"))) {
			t.Fatalf("key %x is of %v, want %v", key, got, d)
		}
		next := log.Dot{Writer: d.Writer, Seq: min(d.Seq+1, log.MaxSeq)}
		if bytes.Compare(key, next.AppendKey([]byte("k"))) > 0 {
			t.Fatalf("the key of %v comes before that of %v", next, d)
		}
		site := log.Dot{Writer: d.Writer & (1<<32 - 1), Seq: d.Seq}
		old := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(site.Writer)), site.Seq)
		if got := site.AppendKey(nil); !bytes.Equal(got, old) {
			t.Fatalf("key %x of %v, want %x", got, site, old)
		}
	})
}
