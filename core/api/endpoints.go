package api

import "github.com/sightline-dev/sightline/core/auth"

// Endpoint is one row of the route table, for documentation and tests.
type Endpoint struct {
	Method     string
	Path       string // after /v2: "/inputs/{input_id}"; paths of an application also exist after /v2/users/{user_id}/apps/{app_id}
	List       string // member with the list in every answer, errors included; empty: none
	Credential auth.Credential

	Required []string // required scopes, such as "Inputs_Get"
	Redacted []string // scopes without which the answer omits their data
	Patch    []string // scopes that replace the Add scopes
}

// Endpoints returns all rows of the route table, in the order of the interface's documentation.
func Endpoints() []Endpoint {
	all := make([]Endpoint, len(routes))
	for i := range routes {
		r := &routes[i]
		all[i] = Endpoint{
			Method: r.Method, Path: r.Path, List: r.List, Credential: r.Need.Credential,
			Required: r.Need.Refuse.Names(), Redacted: r.Need.Redact.Names(), Patch: r.Need.Patch.Names(),
		}
	}
	return all
}
