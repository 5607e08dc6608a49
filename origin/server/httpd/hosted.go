package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// Picture is a hosted picture or video to send.
type Picture struct {
	ContentType string
	Tag         string // entity tag of the bytes, in quotes; empty: no tag
	Size        int64  // number of bytes

	// Open returns a reader of the bytes from ≤ i < to, which the caller closes. A Read of a damaged part returns an error and none of its
	// bytes. Open may wait, and stops when ctx ends or the client of r disconnects. It takes the reader's memory from r.Memory. If it
	// waits too long or finds no memory, the error wraps api.ErrBusy. If the picture is damaged, the error wraps blob.ErrCorrupt.
	Open func(ctx context.Context, r *api.Request, from, to int64) (io.ReadCloser, error)
}

// hostedCache lets any cache store a picture. The cache must ask before each use, because a picture can be deleted. If it sends the current
// tag, the server answers 304 without the bytes.
const hostedCache = "public, no-cache"

// serveHostedFile answers with a picture or a video, a part of it, or 304 to a cache that stores it. Browsers display only raster pictures
// and videos.
func (s *Server) serveHostedFile(ctx *fasthttp.RequestCtx, id string, r *api.Request, name string) int {
	refuse := func(err error) int {
		res := s.refuse(r, err)
		return s.write(ctx, id, &res)
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		return refuse(errReads)
	}
	if err := s.hosted.take(r.Remote, s.now()); err != nil {
		return refuse(err)
	}
	c := connOf(ctx)
	c.answer = &share{of: s.answers, caller: func() string { return "network " + r.Remote }}
	r.Memory, r.Watch = c.answer, c.watch
	p, err := s.o.Hosted(s.ctx, r, name)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return refuse(errPath)
	case errors.Is(err, context.Canceled): // the client has left
		return refuse(errSending)
	case errors.Is(err, blob.ErrUnavailable):
		return refuse(errPictures)
	}
	if err != nil {
		panic(fmt.Errorf("hosted picture: %w", err)) // the server answers and counts it like a bug
	}
	if p.Tag != "" && api.MatchesTag(r.Known, p.Tag) {
		return s.describeHosted(ctx, id, &p, fasthttp.StatusNotModified)
	}
	part, status := partOf(r, &p)
	var body io.ReadCloser = http.NoBody
	if r.Method == "GET" && status != fasthttp.StatusRequestedRangeNotSatisfiable {
		if body, err = s.openHosted(r, &p, part); err != nil {
			return refuse(err)
		}
	}
	s.describeHosted(ctx, id, &p, status)
	h := &ctx.Response.Header
	h.Set("Accept-Ranges", "bytes")
	switch status {
	case fasthttp.StatusRequestedRangeNotSatisfiable:
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", p.Size))
		return status
	case fasthttp.StatusPartialContent:
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.From, part.End-1, p.Size))
	}
	h.SetContentType("application/octet-stream")
	if isRenderable(p.ContentType) {
		h.SetContentType(p.ContentType)
	} else {
		h.Set("Content-Disposition", "attachment")
	}
	ctx.Response.SetBodyStream(body, int(part.End-part.From))
	return status
}

// partOf returns the part of a picture that a request asks for, and the status of the answer.
func partOf(r *api.Request, p *Picture) (part api.Span, status int) {
	header := r.Header("Range")
	if header == "" || r.Method != "GET" || !matchesIfRange(r.Header("If-Range"), p.Tag) {
		return api.Span{End: p.Size}, fasthttp.StatusOK
	}
	part, partial, ok := api.RangeOf(header, p.Size)
	switch {
	case !ok:
		return api.Span{}, fasthttp.StatusRequestedRangeNotSatisfiable
	case partial:
		return part, fasthttp.StatusPartialContent
	}
	return part, fasthttp.StatusOK
}

// describeHosted sets the status and the headers that every answer about a picture has. It returns the status.
func (s *Server) describeHosted(ctx *fasthttp.RequestCtx, id string, p *Picture, status int) int {
	h := &ctx.Response.Header
	s.common(ctx, id)
	h.Set("Cache-Control", hostedCache)
	if p.Tag != "" {
		h.Set("ETag", p.Tag)
	}
	h.Set("Content-Security-Policy", hostedPolicy)
	if isRenderable(p.ContentType) && strings.HasPrefix(p.ContentType, "video/") {
		h.Set("Content-Security-Policy", videoPolicy)
	}
	ctx.SetStatusCode(status)
	return status
}

// openHosted returns a reader of a part of a picture, or a refusal. A damaged picture arrives short, which every client notices.
func (s *Server) openHosted(r *api.Request, p *Picture, part api.Span) (io.ReadCloser, error) {
	if err := s.hosted.takeBytes(r.Remote, part.End-part.From, s.now()); err != nil {
		return nil, err
	}
	body, err := p.Open(s.ctx, r, part.From, part.End)
	switch {
	case errors.Is(err, blob.ErrCorrupt):
		s.o.Log.Error("hosted picture", "error", err)
		return failedBody{err}, nil
	case errors.Is(err, blob.ErrNotFound): // deleted meanwhile
		return nil, errPath
	case errors.Is(err, api.ErrBusy), errors.Is(err, context.Canceled):
		return nil, errSending
	case errors.Is(err, blob.ErrUnavailable):
		return nil, errPictures
	case err != nil:
		panic(fmt.Errorf("hosted picture: %w", err))
	}
	return body, nil
}

// matchesIfRange reports whether an If-Range header permits a partial answer: it is absent or equals the tag. A weak tag never equals it.
func matchesIfRange(header, tag string) bool { return header == "" || header == tag && tag != "" }

// isRenderable reports whether a browser may display a type. Raster pictures and videos are allowed. SVG is not, because it can contain
// scripts.
func isRenderable(contentType string) bool {
	switch strings.ToLower(contentType) {
	case "image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/tiff",
		"video/mp4", "video/quicktime", "video/3gpp", "video/3gpp2", "video/webm", "video/x-matroska", "video/x-msvideo", "video/x-ms-wmv":
		return true
	}
	return false
}

// failedBody is a body of which nothing can be sent.
type failedBody struct{ err error }

// Read implements [io.Reader].
func (f failedBody) Read([]byte) (int, error) { return 0, f.err }

// Close implements [io.Closer].
func (f failedBody) Close() error { return nil }
