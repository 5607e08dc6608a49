// Package compress compresses the streams of frames and the bodies of the sync protocol with the HTTP content coding zstd (RFC 8878).
//
//	Write ──▶ zstd frame ┐
//	Write ──▶ zstd frame ├──▶ the body's bytes: a decoder joins them
//	Write ──▶ zstd frame ┘
//
// Every Write makes one complete zstd frame, with an encoder that all streams share. So Write delays no bytes, and a waiting stream needs
// no memory for compression.
//
// Browsers decompress by themselves, other replicas with [NewReader].
package compress

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Encoding is the content coding's name.
const Encoding = "zstd"

// maxWindow is the maximum distance in bytes that a decoder must look back. The length of a frame is enough.
const maxWindow = 1 << 20

// MinBytes is the minimum length of a body that is worth compressing.
const MinBytes = 256

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(maxWindow))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})

// Bytes returns the compressed body. It takes no more memory than its length.
func Bytes(body []byte) []byte {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	*b = encoder().EncodeAll(body, (*b)[:0])
	return bytes.Clone(*b)
}

// Writer compresses a stream. It is not safe for concurrent use.
type Writer struct{ w io.Writer }

// NewWriter returns a Writer over w. It need not be closed.
func NewWriter(w io.Writer) *Writer { return &Writer{w} }

// buffers are scratch buffers for compressed frames.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Write writes p as one zstd frame. Its errors are those of the underlying writer.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	*b = encoder().EncodeAll(p, (*b)[:0])
	if _, err := w.w.Write(*b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// NewReader returns a reader that decompresses the output of a Writer or [Bytes] from r. It returns the bytes of a zstd frame once it is
// complete, and starts no goroutine. An end inside a zstd frame is io.ErrUnexpectedEOF. The caller must close the reader.
func NewReader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("compressed stream: %w", err)
	}
	return d.IOReadCloser(), nil
}
