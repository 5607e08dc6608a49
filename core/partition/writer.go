package partition

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// A writer is one opening of a store. The process draws it at its first own operation, and counts the operations in its memory. Nothing on
// a disk lets another process continue a writer, so no name is given twice, whatever happens to disks:
//
//	opening ─ draw W1 ─ W1 1, W1 2, W1 3 … ─ end
//	opening ─ draw W2 ─ W2 1, W2 2 …                the same image of the disk, opened twice, has two writers
//
// A replica shows the secret of a writer when it pushes operations. It stores, with the first operation of each writer:
//
//	writer/WRITER   the secret, and the position of the first operation in the outbox
//
// A machine that resumes from its memory continues the writer of the image. The own check finds that: the log has an operation of the
// writer that this process has not made. The process then draws another one.

// SecretSize is the number of bytes of a writer's secret.
const SecretSize = 16

// hashRounds makes it expensive to search for the secret of a writer.
const hashRounds = 4096

// WriterOf returns the writer with a secret in an application: a number in [1<<62, 1<<63).
func WriterOf(app catalog.AppID, secret []byte) log.Writer {
	sum := sha256.Sum256(append(app[:], secret...))
	for range hashRounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return log.Writer(binary.BigEndian.Uint64(sum[:])>>2 | 1<<62)
}

// opening is the writer of the process. The zero opening has not been drawn.
type opening struct {
	writer log.Writer
	secret [SecretSize]byte
	seq    uint64 // sequence number of the last operation
	drawn  uint64 // number of writers drawn by this process
}

// draw replaces the writer of the process. The clock is in the secret because machines that resume from one memory image have the same
// random bytes. The caller holds appending.
func (p *Partition) draw() {
	o := &p.own
	random := cmp.Or(p.o.Random, [16]byte(p.o.Epoch))
	b := append(append(random[:], p.o.Secret[:]...), p.o.App[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.o.Clock().UnixNano()))
	o.drawn++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, o.drawn))
	*o = opening{secret: [SecretSize]byte(sum[:]), drawn: o.drawn}
	o.writer = WriterOf(p.o.App, o.secret[:])
	p.drawn.Store(uint64(o.writer))
}

// Image is the part of a process that an image of a machine's memory preserves: its writer, and the one that the log has spoiled.
type Image struct {
	own     opening
	spoiled uint64
}

// Image returns the image of the process now.
func (p *Partition) Image() Image {
	defer p.locks.take(appending).unlock()
	return Image{p.own, p.spoiled.Load()}
}

// Resume makes the process continue that of an image, as a machine does which is set back with its memory. Only tests do that.
func (p *Partition) Resume(x Image) {
	defer p.locks.take(appending).unlock()
	p.own = x.own
	p.drawn.Store(uint64(x.own.writer))
	p.spoiled.Store(x.spoiled)
}

// name names operations that are appended next. It draws a writer if the process has none, if the log has operations of it that the
// process has not made, or if too few numbers are left. The caller holds appending.
func (p *Partition) name(ops []log.Op) {
	if o := &p.own; o.writer == 0 || p.spoiled.Load() == uint64(o.writer) || o.seq+uint64(len(ops)) > log.MaxSeq {
		p.draw()
	}
	for i := range ops {
		ops[i].Dot = log.Dot{Writer: p.own.writer, Seq: p.own.seq + 1 + uint64(i)}
	}
}

// spoil makes the process draw another writer before its next operation, if w is its present one.
func (p *Partition) spoil(w log.Writer) {
	if w == log.Writer(p.drawn.Load()) {
		p.spoiled.Store(uint64(w))
	}
}

// made records that operations were appended, the first one as entry first. last is the sequence number of the last one. The caller holds
// appending.
func (p *Partition) made(last, first uint64) {
	if p.own.seq == 0 {
		lock := p.locks.take(showing)
		p.writers = append(p.writers, outboxWriter{p.own.writer, writerRecord{bytes.Clone(p.own.secret[:]), first}})
		lock.unlock()
	}
	p.own.seq = last
}

// outboxWriters returns the writers of a replica's outbox, or the last ones of an origin.
func (p *Partition) outboxWriters() outboxWriters {
	defer p.locks.take(reading).unlock()
	return p.writers
}
