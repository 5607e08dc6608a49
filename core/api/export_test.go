package api

import "github.com/sightline-dev/sightline/core/api/call"

// IsKnownStatus reports whether the table of statuses has a status.
func IsKnownStatus(http, code int, description string) bool {
	for _, s := range call.Statuses() {
		if s.HTTP == http && s.Code == code && s.Description == description {
			return true
		}
	}
	return false
}

// ListOf returns the name of the list in every answer to a request, or "" if the answer has none.
func ListOf(method, path string) string {
	if method == "OPTIONS" && segments(path) != nil {
		return ""
	}
	if method == "HEAD" {
		method = "GET"
	}
	r, _, _, _ := resolve(method, path)
	if r == nil {
		return ""
	}
	return r.List
}

// EndpointOf returns the method and the path of the route of a request, such as "GET /models/{model_id}", or "" for an unknown path.
func EndpointOf(method, path string) string {
	if method == "HEAD" {
		method = "GET"
	}
	r, _, _, err := resolve(method, path)
	if err != nil {
		return ""
	}
	return r.Method + " " + r.Path
}
