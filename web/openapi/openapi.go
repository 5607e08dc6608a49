// Package openapi holds the description of /v2, an OpenAPI 3.1 document, and answers requests for
// it. Package describe writes it; what a server embeds is the file.
package openapi

import (
	_ "embed"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/web/static"
)

//go:generate go run generate.go

//go:embed openapi.json
var document []byte

// Path is the URL path at which a host serves the document.
const Path = "/openapi.json"

// file is the document, with gzip's form, a tenth of its size.
var file = func() *static.File {
	f := static.New(Path, document)
	f.Zipped()
	return f
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
	return file.Answer(r, allowOrigin)
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
