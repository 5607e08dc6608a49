// Package openapi holds the description of /v2, an OpenAPI 3.1 document, and answers requests for
// it. Package describe writes it; what a server embeds is the file.
package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
)

//go:generate go run generate.go

//go:embed openapi.json
var document []byte

// Path is where a host serves the document.
const Path = "/openapi.json"

// etag is the entity tag of the document: strong, quoted, and another for each other document.
var etag = func() string {
	sum := sha256.Sum256(document)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}()

// Serve answers a request for [Path]: the document to GET and HEAD, or 304 where the header
// If-None-Match has its tag, from whatever page the request comes. Other methods but OPTIONS are
// refused with 405. The body is shared, and gzip's where that is taken; a host leaves it out of an answer to HEAD.
func Serve(r *api.Request) api.Response {
	switch r.Method {
	case "GET", "HEAD":
	case "OPTIONS":
		return envelope(200, `{"status":{"code":10000,"description":"Ok"}}`, allowMethods, allowHeaders)
	default:
		return envelope(405, `{"status":{"code":11103,"description":"Method not allowed","details":"Allowed methods: `+methods+`."}}`,
			api.Field{Name: "Allow", Value: methods})
	}
	header := []api.Field{allowOrigin, {Name: "ETag", Value: etag}, {Name: "Cache-Control", Value: "no-cache"}, {Name: "Vary", Value: "Accept-Encoding"}}
	asked := func(name string) string {
		if r.Header == nil {
			return ""
		}
		return r.Header(name)
	}
	if matches(asked("If-None-Match")) {
		return api.Response{Status: 304, Header: header}
	}
	body := document
	if unzips(asked("Accept-Encoding")) {
		header = append(header, api.Field{Name: "Content-Encoding", Value: "gzip"})
		body = zipped()
	}
	return api.Response{Status: 200, ContentType: contentType, Header: header, Body: body}
}

// zipped is the document in gzip's form, a tenth of its size.
var zipped = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(document)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // into memory
	}
	return b.Bytes()
})

// unzips reports whether an Accept-Encoding takes gzip, and not with the weight 0.
func unzips(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.TrimSpace(name) == "gzip" {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// envelope is an answer with a status alone.
func envelope(status int, body string, header ...api.Field) api.Response {
	return api.Response{Status: status, ContentType: contentType, Header: append([]api.Field{allowOrigin}, header...), Body: []byte(body)}
}

const (
	contentType = "application/json"
	methods     = "GET, HEAD, OPTIONS"
)

var (
	allowOrigin  = api.Field{Name: "Access-Control-Allow-Origin", Value: "*"}
	allowMethods = api.Field{Name: "Access-Control-Allow-Methods", Value: methods}
	allowHeaders = api.Field{Name: "Access-Control-Allow-Headers", Value: "authorization, content-type, if-none-match"}
)

// matches reports whether an If-None-Match names the tag. Weak ones do, too (RFC 9110, 13.1.2).
func matches(header string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}
