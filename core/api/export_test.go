package api

import "github.com/sightline-dev/sightline/core/api/call"

// IsKnownStatus reports whether an answer is one that the table of statuses can give.
func IsKnownStatus(http, code int, description string) bool {
	for _, s := range call.Statuses() {
		if s.HTTP == http && s.Code == code && s.Description == description {
			return true
		}
	}
	return false
}

// ListOf is the list that every answer to a request has; empty for none.
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
