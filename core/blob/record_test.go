package blob

import (
	"bytes"
	"testing"
	"time"
)

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(nil, &Picture{}))
	f.Add(appendRecord(nil, &Picture{Hash: Sum(nil), ContentType: "image/jpeg", Expires: time.UnixMilli(1).UTC()}))
	f.Add(appendRecord(nil, &Picture{Expires: time.UnixMilli(-1 << 62).UTC()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseRecord(b)
		if err == nil && !bytes.Equal(appendRecord(nil, &p), b) {
			t.Errorf("parseRecord(%x) = %v, which is written otherwise", b, p)
		}
	})
}

func TestRecordDetectsEveryFlip(t *testing.T) {
	good := appendRecord(nil, &Picture{Hash: Sum([]byte("x")), ContentType: "image/png", Expires: time.UnixMilli(1e12).UTC()})
	if _, err := parseRecord(good); err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := parseRecord(bad); err == nil {
			t.Errorf("flipping bit %d goes unseen", bit)
		}
	}
	for n := range good {
		if _, err := parseRecord(good[:n]); err == nil {
			t.Errorf("a record cut to %d bytes is accepted", n)
		}
	}
}
