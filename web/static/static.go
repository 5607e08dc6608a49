// Package static answers requests with files from memory. It chooses an encoding that the client accepts, or answers 304 if the client
// already has the file.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"sync"

	"github.com/andybalholm/brotli"

	"github.com/sightline-dev/sightline/core/api"
)

// Values of Cache-Control. Immutable is for a file whose name contains a hash of its bytes, so it never changes. With Revalidate, a client
// asks each time whether the file has changed.
const (
	Immutable  = "public, max-age=31536000, immutable"
	Revalidate = "no-cache"
)

// File is a file with its headers, ready to send.
type File struct {
	Body        []byte // nil: the file is stored in its first encoding only, and unpacked for a client that does not accept it
	ContentType string // content type
	Tag         string // entity tag with its quotes; empty: the answer has no tag
	Cache       string
	Encodings   []Encoding // in order of preference, the best first
}

// Encoding is another form of a file's body.
type Encoding struct {
	Name string        // name in Accept-Encoding
	Body func() []byte // returns the encoded body; nil if the encoding gains nothing
}

// New returns a file with Cache-Control [Revalidate]. The content type depends on the ending of name, and the tag on the bytes. The file
// keeps body, so the caller must not change it.
func New(name string, body []byte) *File {
	sum := sha256.Sum256(body)
	return &File{Body: body, ContentType: ContentTypeOf(name), Tag: `"` + hex.EncodeToString(sum[:12]) + `"`, Cache: Revalidate}
}

// NewPacked is [New] for a file that is stored in one encoding only: gzip or br. It also returns the body without the encoding, and an error if
// packed is not in that encoding.
func NewPacked(name, encoding string, packed []byte) (f *File, plain []byte, err error) {
	f = New(name, packed)
	f.Body, f.Encodings = nil, []Encoding{{encoding, func() []byte { return packed }}}
	plain, err = f.Plain()
	return f, plain, err
}

// Plain returns the body without an encoding. If it is stored in an encoding, the caller owns the bytes.
func (f *File) Plain() ([]byte, error) {
	if f.Body != nil || f.Encodings == nil {
		return f.Body, nil
	}
	packed := bytes.NewReader(f.Encodings[0].Body())
	if f.Encodings[0].Name == "br" {
		return io.ReadAll(brotli.NewReader(packed))
	}
	r, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// AddGzip adds gzip to the encodings. The first request that accepts gzip compresses the file.
func (f *File) AddGzip() {
	f.Encodings = append(f.Encodings, Encoding{"gzip", sync.OnceValue(func() []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		plain, err := f.Plain()
		if err == nil {
			_, err = w.Write(plain)
		}
		if err != nil || w.Close() != nil || b.Len() > len(plain)*9/10 {
			return nil // gzip saves less than a tenth
		}
		return b.Bytes()
	})})
}

// kinds maps the ending of a name to a content type. The tables of operating systems differ, so the package does not use them.
var kinds = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".jpg":         "image/jpeg",
	".png":         "image/png",
	".json":        "application/json",
	".webmanifest": "application/manifest+json",
	".wasm":        "application/wasm",
	".txt":         "text/plain; charset=utf-8",
	".tsv":         "text/tab-separated-values; charset=utf-8",
}

// ContentTypeOf returns the content type for the ending of a file's name.
func ContentTypeOf(name string) string {
	if kind, ok := kinds[path.Ext(name)]; ok {
		return kind
	}
	return "application/octet-stream"
}

// Answer returns the answer to r: the file in the first encoding that the client accepts, or 304. The answer has the fields of header and
// those of the file. Answers share the body, so the caller must not change it.
func (f *File) Answer(r *api.Request, header ...api.Field) api.Response {
	header = append(header, api.Field{Name: "Cache-Control", Value: f.Cache})
	if f.Tag != "" {
		header = append(header, api.Field{Name: "ETag", Value: f.Tag})
	}
	if f.Encodings != nil {
		header = append(header, api.Field{Name: "Vary", Value: "Accept-Encoding"})
	}
	if f.Tag != "" && api.MatchesTag(Header(r, "If-None-Match"), f.Tag) {
		return api.Response{Status: 304, Header: header}
	}
	for _, e := range f.Encodings {
		if !api.AcceptsEncoding(Header(r, "Accept-Encoding"), e.Name) {
			continue
		}
		if body := e.Body(); body != nil {
			header = append(header, api.Field{Name: "Content-Encoding", Value: e.Name})
			return api.Response{Status: 200, ContentType: f.ContentType, Header: header, Body: body}
		}
	}
	body, _ := f.Plain() // NewPacked could unpack it
	return api.Response{Status: 200, ContentType: f.ContentType, Header: header, Body: body}
}

// Header returns a header of a request, or "" if the request does not have it.
func Header(r *api.Request, name string) string {
	if r.Header == nil {
		return ""
	}
	return r.Header(name)
}
