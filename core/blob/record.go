package blob

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// The record of a hosted name, little-endian:
//
//	offset  bytes  what
//	0       4      "SLHN"
//	4       1      version: 1, or 2 with an application
//	5       1      n, length of the content type
//	6       2      zero
//	8       8      expiry, milliseconds since 1970 UTC; 0: never
//	16      32     SHA-256 of the blob
//	48      a      id of the application, not zero; version 1: a = 0, version 2: a = 16
//	48+a    n      content type
//	48+a+n  4      CRC-32C of all bytes before
//
// Sightline 0.1.0 reads version 1 only, and deletes a record of version 2 as damaged.
const (
	recordMagic = "SLHN"
	recordFixed = 48
	maxRecord   = recordFixed + appBytes + maxContentType + 4

	appBytes       = 16 // length of an AppID
	maxContentType = 255
)

// Versions of the record.
const (
	recordPlain = 1 // without an application
	recordOfApp = 2
)

// AppID is the id of an application; zero: none.
type AppID = [16]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Picture is the picture that a hosted name refers to.
type Picture struct {
	Hash        Hash
	App         AppID     // application that the picture belongs to; zero: unknown
	ContentType string    // as given to HostedNames.Add
	Expires     time.Time // UTC, in milliseconds; zero: never
}

// isExpired reports whether the picture has expired at the time now.
func (p *Picture) isExpired(now time.Time) bool {
	return !p.Expires.IsZero() && !now.Before(p.Expires)
}

func appendRecord(b []byte, p *Picture) []byte {
	from := len(b)
	b = append(b, recordMagic...)
	version := byte(recordPlain)
	if p.App != (AppID{}) {
		version = recordOfApp
	}
	b = append(b, version, byte(len(p.ContentType)), 0, 0)
	ms := int64(0)
	if !p.Expires.IsZero() {
		ms = p.Expires.UnixMilli()
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(ms))
	b = append(b, p.Hash[:]...)
	if version == recordOfApp {
		b = append(b, p.App[:]...)
	}
	b = append(b, p.ContentType...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

func parseRecord(b []byte) (Picture, error) {
	fixed := recordFixed
	if len(b) > recordFixed && b[4] == recordOfApp {
		fixed += appBytes
	}
	if len(b) < fixed+4 || len(b) != fixed+int(b[5])+4 {
		return Picture{}, fmt.Errorf("name record of %d bytes: %w", len(b), ErrCorrupt)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum || string(b[:4]) != recordMagic ||
		b[4] != recordPlain && b[4] != recordOfApp || b[6] != 0 || b[7] != 0 {
		return Picture{}, fmt.Errorf("name record: %w", ErrCorrupt)
	}
	p := Picture{Hash: Hash(b[16:48]), ContentType: string(body[fixed:])}
	if copy(p.App[:], body[recordFixed:fixed]) > 0 && p.App == (AppID{}) {
		return Picture{}, fmt.Errorf("name record without an application: %w", ErrCorrupt)
	}
	if ms := int64(binary.LittleEndian.Uint64(b[8:])); ms != 0 {
		p.Expires = time.UnixMilli(ms).UTC()
	}
	return p, checkContentType(p.ContentType)
}

// checkContentType checks that a content type is valid in a header line.
func checkContentType(s string) error {
	ok := len(s) <= maxContentType
	for i := range len(s) {
		ok = ok && ' ' <= s[i] && s[i] <= '~'
	}
	if !ok {
		return fmt.Errorf("content type %.40q: %w", s, ErrContentType)
	}
	return nil
}
