package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	haveBytes   = 1 << 20
	maxHashes   = 10_000    // hashes of one have request
	maxBuffered = 256 << 10 // maximum size of a part of a picture that is answered without a stream
)

// canRead reports whether the origin has the bytes of a hash and the application has access to them: one of its inputs has the picture, or
// one of its replicas uploaded it.
func (f *Feed) canRead(ctx context.Context, app string, r catalog.Reader, h blob.Hash) (bool, error) {
	if f.uploads.has(app, h, f.o.Clock()) {
		return true, nil
	}
	refers := false
	err := r.ByBlob(h, func(uint32) bool {
		refers = true
		return false
	})
	if err != nil || !refers {
		return false, err
	}
	return f.o.Blobs.Has(ctx, h)
}

// have answers which pictures and objects the replica need not send.
func (c *call) have() (api.Response, error) {
	m, err := read(c, haveBytes, "HaveBytes", wire.DecodeHaveRequest)
	if err != nil {
		return api.Response{}, err
	}
	if len(m.Hashes) > maxHashes {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many hashes", Limit: "Hashes", Value: maxHashes}
	}
	p, err := c.open(m.App)
	if err != nil {
		return api.Response{}, err
	}
	v := p.View()
	defer v.Close()
	var out wire.HaveReply
	for _, h := range m.Hashes {
		available, err := c.f.canRead(c.ctx, c.app, v.Reader, h)
		if err == nil && !available {
			available, err = v.HasObject(h)
		}
		if err != nil {
			return api.Response{}, err
		}
		if available {
			out.Hashes = append(out.Hashes, h)
		} else if n := c.f.uploads.receivedBytes(c.app, h); n > 0 {
			out.Partial = append(out.Partial, wire.PartialBlob{Hash: h, Size: n})
		}
	}
	return message(out.Encode()), nil
}

// reserve counts memory in bytes for the caller, or returns a refusal.
func (c *call) reserve(bytes int64) error {
	if m := c.r.Memory; m != nil && !m.Reserve(bytes) {
		return &wire.Refusal{Code: wire.RefusedBusy, Detail: errSending, WaitMillis: 1000}
	}
	return nil
}

// object returns an object of the application. The memory of the object, and of other bytes, counts for the caller.
func (c *call) object(r catalog.Reader, h blob.Hash, other int64) ([]byte, error) {
	size, err := r.ObjectSize(h)
	if err == nil {
		err = c.reserve(other + size)
	}
	if err != nil {
		return nil, err
	}
	return r.Object(h)
}

// blob answers with a picture or an object, or a part of it.
func (c *call) blob() (api.Response, error) {
	c.keeps = true
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	v := p.View()
	defer v.Close()
	available, err := c.f.canRead(c.ctx, c.app, v.Reader, c.hash)
	if err != nil {
		return api.Response{}, err
	}
	if !available {
		return c.objectPart(v.Reader, "no such picture or object")
	}
	size, err := c.f.o.Blobs.Len(c.ctx, c.hash)
	if errors.Is(err, blob.ErrNotFound) { // deleted meanwhile
		return api.Response{}, unknown("no such picture or object")
	}
	if err != nil {
		return api.Response{}, err
	}
	return c.part(size, func(from, to int64) (api.Response, error) { return c.picture(from, to, size) })
}

// picture answers with the bytes from ≤ i < to of a picture of the given size.
func (c *call) picture(from, to, size int64) (api.Response, error) {
	write := func(w io.Writer) error {
		r, err := c.openPicture(from, to, size)
		if err != nil {
			return err
		}
		_, err = io.CopyN(w, r, to-from) // a damaged picture ends early
		return errors.Join(err, r.Close())
	}
	if to-from > maxBuffered {
		return api.Response{Length: to - from, Stream: write}, nil
	}
	var buf bytes.Buffer
	if err := write(&buf); err != nil {
		return api.Response{}, err
	}
	return api.Response{Body: buf.Bytes()}, nil
}

// openPicture returns a reader that begins with the bytes from ≤ i < to of a picture.
func (c *call) openPicture(from, to, size int64) (io.ReadCloser, error) {
	if c.f.o.Part != nil && to-from < size {
		return c.f.o.Part(c.ctx, c.r, c.caller(), c.hash, from, to)
	}
	r, err := c.f.o.Blobs.Open(c.ctx, c.hash)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, from); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// part answers with the range that the request asks for. size is the number of all bytes; read returns a range.
func (c *call) part(size int64, read func(from, to int64) (api.Response, error)) (api.Response, error) {
	if err := c.f.meters.frames.take(c, 0, c.now, "bytes"); err != nil {
		return api.Response{}, err
	}
	part, partial, ok := api.RangeOf(c.header("Range"), size)
	headers := []api.Field{
		{Name: "Accept-Ranges", Value: "bytes"},
		{Name: "ETag", Value: `"` + c.hash.String() + `"`},
		{Name: "Vary", Value: "Authorization, X-Clarifai-Session-Token"},
		exposed,
	}
	cacheControl := "no-store"
	if c.keeps && ok {
		cacheControl = "private, max-age=31536000, immutable"
	}
	headers = append(headers, api.Field{Name: "Cache-Control", Value: cacheControl})
	if !ok {
		return api.Response{Status: 416, Header: append(headers, api.Field{Name: "Content-Range", Value: fmt.Sprintf("bytes */%d", size)})}, nil
	}
	res, err := read(part.From, part.End)
	if err != nil {
		return api.Response{}, err
	}
	_ = c.f.meters.frames.take(c, uint64(part.End-part.From), c.now, "bytes") // over the quota, the next request is refused
	res.Status, res.ContentType, res.Header = 200, "application/octet-stream", headers
	if partial {
		res.Status = 206
		res.Header = append(res.Header, api.Field{Name: "Content-Range", Value: fmt.Sprintf("bytes %d-%d/%d", part.From, part.End-1, size)})
	}
	return res, nil
}

// upload accepts a picture or an object, or a part of it.
func (c *call) upload() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	limit := c.f.o.Limits.BlobSize
	body, err := c.body(limit, "BlobSize")
	if err != nil {
		return api.Response{}, err
	}
	x, err := parseChunk(c.header("Content-Range"), body)
	if err != nil {
		return api.Response{}, err
	}
	if x.at == 0 { // the rest of an upload follows its start
		limit = min(limit, uint64(raster.SizeLimit(x.data)))
	}
	if x.size > limit {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: fmt.Sprintf("at most %d bytes are allowed", limit), Limit: "BlobSize", Value: limit}
	}
	x.uploadKey, x.account = uploadKey{c.app, c.hash}, c.account
	v := p.View()
	available, err := c.f.canRead(c.ctx, c.app, v.Reader, c.hash)
	if err = errors.Join(err, v.Close()); err != nil {
		return api.Response{}, err
	}
	if available {
		return c.uploadReply(200, x.size), nil
	}
	if err := c.sends(uint64(len(body)), true); err != nil {
		return api.Response{}, err
	}
	received, err := c.f.uploads.add(c.ctx, x, c.now)
	status := 202
	switch {
	case errors.Is(err, errPlace):
		status = 409
	case err != nil:
		return api.Response{}, err
	case received == x.size:
		status = 201
	}
	return c.uploadReply(status, received), nil
}

// sends counts n bytes against the daily quotas of the application and its account. It counts bytes of operations only if the account's
// storage is limited, because the log keeps them.
func (c *call) sends(n uint64, picture bool) error {
	all := accountShare * c.f.o.Limits.BlobBytes
	limit := all
	if c.f.o.Storage != nil {
		l, err := c.f.o.Storage(c.app)
		if err != nil {
			return err
		}
		if l > 0 {
			limit = min(limit, uint64(l))
		}
	}
	if limit == all && !picture {
		return nil
	}
	err := c.f.meters.blobs.takeScaled(c, n, uint64(float64(n)*float64(all)/float64(limit)), c.now, "bytes of pictures")
	var no *wire.Refusal
	if limit < all && errors.As(err, &no) && no.Value == all {
		no.Detail, no.Value = fmt.Sprintf("too many bytes: the account may send %d a day", limit), limit
	}
	return err
}

// uploadReply returns the answer about an upload: complete with the status 200 or 201, otherwise with the number of received bytes.
func (c *call) uploadReply(status int, received uint64) api.Response {
	var m wire.HaveReply
	switch {
	case status <= 201:
		m.Hashes = []blob.Hash{c.hash}
	case received > 0:
		m.Partial = []wire.PartialBlob{{Hash: c.hash, Size: received}}
	}
	res := message(m.Encode())
	res.Status = status
	return res
}

// parseChunk parses a Content-Range such as "bytes 0-1048575/20000000". Without one the body is the complete blob.
func parseChunk(text string, body []byte) (uploadChunk, error) {
	if len(body) == 0 {
		return uploadChunk{}, malformedError("a picture or an object has at least one byte")
	}
	if text == "" {
		return uploadChunk{data: body, size: uint64(len(body))}, nil
	}
	spec, isBytes := strings.CutPrefix(text, "bytes ")
	place, size, hasSize := strings.Cut(spec, "/")
	first, last, isRange := strings.Cut(place, "-")
	a, errA := strconv.ParseUint(first, 10, 62)
	b, errB := strconv.ParseUint(last, 10, 62)
	n, errN := strconv.ParseUint(size, 10, 62)
	if !isBytes || !hasSize || !isRange || errors.Join(errA, errB, errN) != nil || b < a || b >= n || b-a+1 != uint64(len(body)) {
		return uploadChunk{}, malformedError("Content-Range does not match the body")
	}
	return uploadChunk{data: body, at: a, size: n}, nil
}
