package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sightline-dev/sightline/core/kv"
)

const (
	headerBytes = 64
	sealedBytes = 28 // part of the header that seal writes, with its CRC
	markBytes   = 16
	frameBytes  = 16
	bufferBytes = 256 << 10 // bytes gathered before a write
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// tape is one of the two files. README.md specifies its layout.
type tape struct {
	files      Files
	file       int
	generation uint64
	chain      uint32
	written    int64  // bytes of the file
	buffer     []byte // bytes that follow, not written yet
	base       int64  // number of bytes that were synced before the header was
	durable    int64  // number of synced bytes
	mark       int    // index of the next mark to write
}

func newTape(files Files, file int, generation uint64) *tape {
	t := &tape{files: files, file: file, generation: generation, buffer: make([]byte, headerBytes)}
	t.chain = t.seed()
	return t
}

// seed returns the chain before the first frame.
func (t *tape) seed() uint32 { return crc(binary.LittleEndian.AppendUint64(nil, t.generation)) }

func (t *tape) end() int64 { return t.written + int64(len(t.buffer)) }

// readHeader reads a file's header. It returns nil if there is no valid header.
func readHeader(files Files, file int, size int64, magic [8]byte) (*tape, error) {
	if size < headerBytes {
		return nil, nil
	}
	var h [headerBytes]byte
	if err := files.Read(file, 0, h[:]); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(h[24:]) != crc(h[:24]) {
		return nil, nil
	}
	if [8]byte(h[:8]) != magic {
		return nil, fmt.Errorf("%w: journal begins with %q, want %q", kv.ErrForeign, h[:8], magic[:])
	}
	t := &tape{files: files, file: file, generation: binary.LittleEndian.Uint64(h[8:]), written: size}
	t.base = int64(binary.LittleEndian.Uint64(h[16:]))
	for i := range 2 {
		m := h[32+i*markBytes:]
		length := int64(binary.LittleEndian.Uint64(m))
		if [markBytes]byte(m) == t.markOf(length) && length > t.durable {
			t.durable, t.mark = length, 1-i
		}
	}
	if t.durable == 0 { // otherwise a mark below base is that of a cut
		t.durable = t.base
	}
	t.chain = t.seed()
	return t, nil
}

// markOf returns the mark of a length.
func (t *tape) markOf(length int64) (m [markBytes]byte) {
	binary.LittleEndian.PutUint64(m[:], uint64(length))
	binary.LittleEndian.PutUint32(m[8:], crc(append(binary.LittleEndian.AppendUint64(nil, t.generation), m[:8]...)))
	return m
}

// append adds a frame to the buffer and returns the offset of its body.
func (t *tape) append(head, body []byte) (int64, error) {
	var f [frameBytes]byte
	binary.LittleEndian.PutUint32(f[:], uint32(len(head)))
	binary.LittleEndian.PutUint32(f[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(f[8:], crc(body))
	t.chain = chain(t.chain, f[:12], head)
	binary.LittleEndian.PutUint32(f[12:], t.chain)
	t.buffer = append(append(t.buffer, f[:]...), head...)
	at := t.end()
	if len(t.buffer)+len(body) <= bufferBytes {
		t.buffer = append(t.buffer, body...)
		return at, nil
	}
	if err := t.flush(); err != nil || len(body) == 0 {
		return at, err
	}
	if err := t.files.Write(t.file, t.written, body); err != nil {
		return 0, err
	}
	t.written += int64(len(body))
	return at, nil
}

func chain(c uint32, lengths, head []byte) uint32 {
	return crc32.Update(crc32.Update(c, castagnoli, lengths), castagnoli, head)
}

// flush writes the buffer.
func (t *tape) flush() error {
	if len(t.buffer) == 0 {
		return nil
	}
	if err := t.files.Write(t.file, t.written, t.buffer); err != nil {
		return err
	}
	t.written += int64(len(t.buffer))
	t.buffer = t.buffer[:0]
	return nil
}

// rewind removes the frames appended after end, and what a failed write left in the file. chain is the chain at end. It syncs, because a
// crash must not restore a refused record.
func (t *tape) rewind(end int64, chain uint32) error {
	t.buffer = t.buffer[:max(0, end-t.written)]
	t.written, t.chain = min(t.written, end), chain
	if err := t.files.Truncate(t.file, t.written); err != nil {
		return err
	}
	return t.files.Sync(t.file)
}

// settle makes all written bytes durable. It also compares the size of the file: files of browsers can report success for a write that
// they drop.
func (t *tape) settle() error {
	if err := t.files.Sync(t.file); err != nil {
		return err
	}
	size, err := t.files.Size(t.file)
	if err == nil && size < t.written {
		err = fmt.Errorf("the file has %d of %d bytes that were written", size, t.written)
	}
	return err
}

// sync makes all frames in the file durable, and writes a mark.
func (t *tape) sync() error {
	if err := t.settle(); err != nil {
		return err
	}
	t.durable = t.written
	m := t.markOf(t.durable)
	if err := t.files.Write(t.file, int64(32+t.mark*markBytes), m[:]); err != nil {
		return err
	}
	t.mark = 1 - t.mark
	return nil
}

// seal makes the frames durable and then writes the header, which makes the file valid.
func (t *tape) seal(magic [8]byte) error {
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.settle(); err != nil {
		return err
	}
	var h [sealedBytes]byte
	copy(h[:], magic[:])
	binary.LittleEndian.PutUint64(h[8:], t.generation)
	binary.LittleEndian.PutUint64(h[16:], uint64(t.written))
	binary.LittleEndian.PutUint32(h[24:], crc(h[:24]))
	if err := t.files.Write(t.file, 0, h[:]); err != nil {
		return err
	}
	if err := t.files.Sync(t.file); err != nil {
		return err
	}
	t.durable = t.written
	return nil
}

// cut removes the damaged frames at an offset and after it. If it is interrupted, the damage remains, or all of them are removed.
func (t *tape) cut(at int64) error {
	if err := t.files.Truncate(t.file, at); err != nil {
		return err
	}
	t.written = at
	for range 2 { // both marks include removed frames
		if err := t.sync(); err != nil {
			return err
		}
	}
	return t.files.Sync(t.file)
}

// replay calls yield with each frame, and cuts off a torn tail. With s it cuts off damage, too.
func (t *tape) replay(yield Yield, s *Salvage) error {
	w := window{files: t.files, file: t.file, size: t.written}
	unread := t.durable
	if s != nil && !s.Any { // damage of a frame can begin in the body of the frame before
		unread = t.base
	}
	at := int64(headerBytes)
	for at < w.size {
		f, ok, err := t.frame(&w, at, unread)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := yield(f.head, f.body, f.n); err != nil {
			return err
		}
		t.chain, at = f.chain, f.body+int64(f.n)
		if s != nil {
			s.Records++
		}
	}
	if at < t.durable {
		if s != nil && (s.Any || at > headerBytes && at >= t.base) {
			s.Lost = t.durable - at
			return t.cut(at)
		}
		return fmt.Errorf("%w: journal at byte %d of %d that were synced", kv.ErrCorrupt, at, t.durable)
	}
	if at < w.size {
		if err := t.files.Truncate(t.file, at); err != nil {
			return err
		}
		t.written = at
	}
	return nil
}

// frame is a frame in the file.
type frame struct {
	head  []byte // borrowed from the window
	body  int64  // offset of the body
	n     int    // bytes of the body
	chain uint32
}

// frame reads the frame at an offset. ok is false if there is no valid frame. It does not read a body that ends at unread or before.
func (t *tape) frame(w *window, at, unread int64) (f frame, ok bool, err error) {
	if at+frameBytes > w.size {
		return f, false, nil
	}
	h, err := w.bytes(at, frameBytes)
	if err != nil {
		return f, false, err
	}
	head, body := int64(binary.LittleEndian.Uint32(h)), int64(binary.LittleEndian.Uint32(h[4:]))
	end := at + frameBytes + head + body
	if head+body == 0 || end > w.size {
		return f, false, nil
	}
	if h, err = w.bytes(at, int(frameBytes+head)); err != nil {
		return f, false, err
	}
	f = frame{head: h[frameBytes:], body: at + frameBytes + head, n: int(body)}
	f.chain = chain(t.chain, h[:12], f.head)
	if f.chain != binary.LittleEndian.Uint32(h[12:]) {
		return f, false, nil
	}
	if end <= unread || body == 0 {
		return f, true, nil
	}
	want := binary.LittleEndian.Uint32(h[8:])
	if h, err = w.bytes(at, int(end-at)); err != nil {
		return f, false, err
	}
	f.head = h[frameBytes : frameBytes+head]
	return f, crc(h[frameBytes+head:]) == want, nil
}

// window reads a file ahead. It reads more and more at once while reads are in order.
type window struct {
	files Files
	file  int
	size  int64
	from  int64
	data  []byte
	ahead int
}

const (
	leastAhead = 4 << 10
	maxAhead   = 1 << 20
)

// bytes returns n bytes at an offset of the file, valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	end := w.from + int64(len(w.data))
	if at >= w.from && at+int64(n) <= end {
		return w.data[at-w.from:][:n], nil
	}
	w.ahead = min(2*w.ahead, maxAhead)
	if at < w.from || at > end || w.ahead == 0 {
		w.ahead = leastAhead
	}
	size := int(min(max(int64(n), int64(w.ahead)), w.size-at))
	if cap(w.data) < size {
		w.data = make([]byte, size)
	}
	w.from, w.data = at, w.data[:size]
	if err := w.files.Read(w.file, at, w.data); err != nil {
		w.data = w.data[:0]
		return nil, err
	}
	return w.data[:n], nil
}
