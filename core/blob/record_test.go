package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"
)

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(nil, &Picture{}))
	f.Add(appendRecord(nil, &Picture{Hash: Sum(nil), ContentType: "image/jpeg", Expires: time.UnixMilli(1).UTC()}))
	f.Add(appendRecord(nil, &Picture{Expires: time.UnixMilli(-1 << 62).UTC()}))
	f.Add(appendRecord(nil, &Picture{Hash: Sum(nil), App: AppID{1, 15: 2}, ContentType: "video/mp4", Expires: time.UnixMilli(1).UTC()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseRecord(b)
		if err == nil && !bytes.Equal(appendRecord(nil, &p), b) {
			t.Errorf("parseRecord(%x) = %v, which is written otherwise", b, p)
		}
	})
}

func TestRecordDetectsEveryFlip(t *testing.T) {
	for _, app := range []AppID{{}, {7, 15: 9}} {
		want := Picture{Hash: Sum([]byte("x")), App: app, ContentType: "image/png", Expires: time.UnixMilli(1e12).UTC()}
		good := appendRecord(nil, &want)
		if got, err := parseRecord(good); got != want || err != nil {
			t.Fatalf("parseRecord = %v, %v, want %v", got, err, want)
		}
		for bit := range 8 * len(good) {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := parseRecord(bad); err == nil {
				t.Errorf("application %x: flipping bit %d goes unseen", app, bit)
			}
		}
		for n := range good {
			if _, err := parseRecord(good[:n]); err == nil {
				t.Errorf("application %x: a record cut to %d bytes is accepted", app, n)
			}
		}
	}
}

// TestRecordOfVersion1 reads a record that Sightline 0.1.0 wrote. A record of version 2 without an application is damaged.
func TestRecordOfVersion1(t *testing.T) {
	want := Picture{Hash: Sum([]byte("x")), ContentType: "image/png", Expires: time.UnixMilli(1e12).UTC()}
	old := append([]byte("SLHN\x01\x09\x00\x00\x00\x10\xa5\xd4\xe8\x00\x00\x00"), want.Hash[:]...)
	old = append(old, "image/png"...)
	old = binary.LittleEndian.AppendUint32(old, crc32.Checksum(old, castagnoli))
	if got, err := parseRecord(old); got != want || err != nil {
		t.Errorf("parseRecord of version 1 = %v, %v, want %v", got, err, want)
	}
	empty := append([]byte("SLHN\x02\x00\x00\x00"), make([]byte, 56)...)
	empty = binary.LittleEndian.AppendUint32(empty, crc32.Checksum(empty, castagnoli))
	if p, err := parseRecord(empty); !errors.Is(err, ErrCorrupt) {
		t.Errorf("parseRecord of version 2 without an application = %v, %v, want ErrCorrupt", p, err)
	}
}
