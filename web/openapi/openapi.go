// Package openapi embeds the OpenAPI 3.1 document of /v2, and answers requests for it. Package describe generates the document.
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

// file is the document, ready to send. gzip compresses it to a tenth of its size.
var file = func() *static.File {
	f := static.New(Path, document)
	f.AddGzip()
	return f
}()

// Serve answers a request for [Path]. Pages of every origin may read the answer. GET and HEAD get the document, or 304 if the header
// If-None-Match has its tag. Other methods except OPTIONS get 405. The body is compressed by gzip if the client accepts that. All answers
// share it, so the caller must not change it. The host omits the body of an answer to HEAD.
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

// envelope returns an answer that contains only a status.
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
