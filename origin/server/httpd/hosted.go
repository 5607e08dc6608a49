package httpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/web/static"
)

// Picture is a hosted picture or video to send.
type Picture struct {
	ContentType string
	Tag         string        // entity tag of the bytes, in quotes; empty: no tag
	Size        int64         // number of bytes of Body
	Body        io.ReadCloser // returns an error instead of io.EOF if the bytes are damaged
}

// hostedCache lets any cache store a picture. The cache must ask before each use, because a picture can be deleted. If it sends the current
// tag, the server answers 304 without the bytes.
const hostedCache = "public, no-cache"

// serveHostedFile answers with a picture or a video, a part of it, or 304 to a cache that stores it. Browsers display only raster pictures
// and videos.
func (s *Server) serveHostedFile(ctx *fasthttp.RequestCtx, id string, r *api.Request, name string) int {
	if r.Method != "GET" && r.Method != "HEAD" {
		res := s.refuse(r, errMethod)
		return s.write(ctx, id, &res)
	}
	p, err := s.o.Hosted(s.ctx, name)
	if errors.Is(err, blob.ErrNotFound) {
		res := s.refuse(r, errPath)
		return s.write(ctx, id, &res)
	}
	if err != nil {
		panic(fmt.Errorf("hosted picture: %w", err)) // the server answers and counts it like a bug
	}
	h := &ctx.Response.Header
	s.common(ctx, id)
	h.Set("Cache-Control", hostedCache)
	if p.Tag != "" {
		h.Set("ETag", p.Tag)
	}
	unsent := func(status int) int {
		if err := p.Body.Close(); err != nil {
			s.o.Log.Warn("hosted picture", "error", err)
		}
		ctx.SetStatusCode(status)
		return status
	}
	if p.Tag != "" && static.Matches(r.Header("If-None-Match"), p.Tag) {
		return unsent(fasthttp.StatusNotModified)
	}
	part, status := span{0, p.Size}, fasthttp.StatusOK
	if rangeHeader := r.Header("Range"); rangeHeader != "" && r.Method == "GET" && matchesIfRange(r.Header("If-Range"), p.Tag) {
		switch wanted, partial, ok := rangeOf(rangeHeader, p.Size); {
		case !ok:
			part, status = span{}, fasthttp.StatusRequestedRangeNotSatisfiable
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", p.Size))
		case partial:
			part, status = wanted, fasthttp.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, part.end-1, p.Size))
		}
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Security-Policy", hostedPolicy)
	if isRenderable(p.ContentType) && strings.HasPrefix(p.ContentType, "video/") {
		h.Set("Content-Security-Policy", videoPolicy)
	}
	if status == fasthttp.StatusRequestedRangeNotSatisfiable {
		return unsent(status)
	}
	ctx.SetStatusCode(status)
	h.SetContentType("application/octet-stream")
	if isRenderable(p.ContentType) {
		h.SetContentType(p.ContentType)
	} else {
		h.Set("Content-Disposition", "attachment")
	}
	body := p.Body
	if status == fasthttp.StatusPartialContent {
		body = &section{body, part.from, part.end - part.from}
	}
	ctx.Response.SetBodyStream(newCompleteBody(body), int(part.end-part.from))
	return status
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

// completeBody delays the last byte until the source has confirmed all bytes. So a damaged picture arrives incomplete, which every client
// notices.
type completeBody struct {
	io.Closer
	from *bufio.Reader
}

func newCompleteBody(from io.ReadCloser) completeBody {
	return completeBody{from, bufio.NewReader(from)}
}

func (w completeBody) Read(p []byte) (int, error) {
	switch _, err := w.from.Peek(2); {
	case err == nil:
		return w.from.Read(p[:min(len(p), w.from.Buffered()-1)])
	case errors.Is(err, io.EOF):
		return w.from.Read(p)
	default:
		return 0, err
	}
}
