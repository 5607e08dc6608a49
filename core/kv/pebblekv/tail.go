//go:build !wasip1

package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

// Every chunk of a log contains the durable length of the log at the time of the write. Pebble takes a damaged chunk for the end of a log
// that a crash cut off, unless a later chunk disproves it. But Pebble looks for a later chunk only from the next block of 32 KB. So damage
// in the last block would drop everything after it without an error. Therefore, after a crash the store first checks every byte of the logs
// after the first bad chunk.
//
//	chunk  0 CRC-32C, masked · 4 length · 6 kind · 7 number of the log · 11 durable up to · 19 payload
const (
	logBlock    = 32 << 10
	chunkHeader = 19
	chunkFirst  = 9 // kinds of chunks: full record, first, middle and last part of a record
	chunkLast   = 12
)

// checkTails returns kv.ErrCorrupt for a log with an end that a crash alone cannot cause.
func checkTails(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		digits, _, _ := strings.Cut(strings.TrimSuffix(name, ".log"), "-")
		number, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue // Pebble will report it
		}
		data, err := readLog(fsys, fsys.PathJoin(dir, name))
		if err != nil {
			return err
		}
		if at, ok := checkTail(data, uint32(number)); !ok {
			return fmt.Errorf("%w: %s: damaged bytes at %d, in data that was durable", kv.ErrCorrupt, name, at)
		}
	}
	return nil
}

func readLog(fsys vfs.FS, name string) (data []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

// checkTail follows the chunks of a log to the first bad one, at offset at. ok is false if a later chunk shows that the bad one had been
// durable.
func checkTail(data []byte, number uint32) (at int, ok bool) {
	for {
		if rest := logBlock - at%logBlock; rest < chunkHeader {
			at += rest // too short for a chunk
		}
		_, size, good := chunkAt(data, at, number)
		if !good {
			break
		}
		at += size
	}
	for p := at + 1; p+chunkHeader <= len(data); p++ {
		if durable, _, good := chunkAt(data, p, number); good && durable > uint64(at) {
			return at, false
		}
	}
	return at, true
}

// chunkAt reads the chunk at offset p: the durable length in it, and its size.
func chunkAt(data []byte, p int, number uint32) (durable uint64, size int, good bool) {
	if p+chunkHeader > len(data) {
		return 0, 0, false
	}
	h := data[p:]
	if h[6] < chunkFirst || h[6] > chunkLast || binary.LittleEndian.Uint32(h[7:]) != number {
		return 0, 0, false
	}
	size = chunkHeader + int(binary.LittleEndian.Uint16(h[4:]))
	if size > len(h) || p%logBlock+size > logBlock {
		return 0, 0, false
	}
	sum := crc32.Checksum(h[6:size], castagnoli)
	if sum = (sum>>15 | sum<<17) + 0xa282ead8; binary.LittleEndian.Uint32(h) != sum {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(h[11:]), size, true
}
