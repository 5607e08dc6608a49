package httpd

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sightline-dev/sightline/core/api"
)

// minEncoded is the minimum length of a body that is worth compressing: a shorter one travels in one packet.
const minEncoded = 1400

// encode compresses a JSON answer of a mount with zstd or gzip, if the client accepts one of them. It is for answers to credentials that no
// browser sends by itself. In answers to cookies, the length of a compressed secret next to text of a stranger could reveal the secret.
func (m *Mount) encode(r *api.Request, res *api.Response) {
	if m.SameOrigin || len(res.Body) < minEncoded || !strings.HasPrefix(res.ContentType, "application/json") {
		return
	}
	vary := api.Field{Name: "Vary", Value: "Accept-Encoding"}
	if i := slices.IndexFunc(res.Header, func(f api.Field) bool { return f.Name == vary.Name }); i >= 0 {
		vary.Value += ", " + res.Header[i].Value
	}
	header := append(slices.Clone(res.Header), vary) // the last field of a name counts
	accepted := r.Header("Accept-Encoding")
	for _, c := range codings {
		if api.AcceptsEncoding(accepted, c.name) && r.Memory.Reserve(2*int64(len(res.Body))) {
			res.Body = c.encode(res.Body)
			header = append(header, api.Field{Name: "Content-Encoding", Value: c.name})
			break
		}
	}
	res.Header = header
}

// codings are the content codings of answers, the one with the smallest answers first.
var codings = []struct {
	name   string
	encode func(body []byte) []byte
}{{"zstd", encodeZstd}, {"gzip", encodeGzip}}

// zstdEncoder takes a third of the processor time of the sync's encoder, which makes smaller streams.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})

func encodeZstd(body []byte) []byte {
	return zstdEncoder().EncodeAll(body, make([]byte, 0, len(body)/4))
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func encodeGzip(body []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(body) / 4)
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&b)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer has no errors
	}
	return b.Bytes()
}
