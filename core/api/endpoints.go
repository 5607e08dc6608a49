package api

import "github.com/sightline-dev/sightline/core/auth"

// Endpoint is one row of the route table, for documents and for tests.
type Endpoint struct {
	Method string
	Path   string // after /v2: "/inputs/{input_id}"; an application's also stand after /v2/users/{user_id}/apps/{app_id}
	List   string // the list that is in every answer, errors included; empty: none
	Asks   auth.Credential

	Required []string // scopes, as "Inputs_Get", without one of which a call is refused
	Redacted []string // without one of these scopes the answer omits the data of its kind
	Instead  []string // with these, no Add is required
}

// Endpoints are all rows of the route table, in the order of the interface's documentation.
func Endpoints() []Endpoint {
	all := make([]Endpoint, len(routes))
	for i := range routes {
		r := &routes[i]
		all[i] = Endpoint{
			Method: r.Method, Path: r.Path, List: r.List, Asks: r.Need.Asks,
			Required: r.Need.Refuse.Names(), Redacted: r.Need.Redact.Names(), Instead: r.Need.Patch.Names(),
		}
	}
	return all
}
