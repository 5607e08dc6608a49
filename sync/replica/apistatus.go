package replica

import "github.com/sightline-dev/sightline/core/api"

// APIStatus returns the status in the form in which [api.Service] answers the calls GET /v2/sync/status, /v2/sync/outbox,
// /v2/sync/devices and /v2/sync/conflicts of a replica. origin is the URL of the origin, for people.
func (s *Status) APIStatus(origin string) api.SyncStatus {
	return api.SyncStatus{
		Origin: origin, Phase: s.Phase.String(), Head: s.Head, Contact: s.Contact, AsOf: s.AsOf,
		Accepted: s.Accepted, Folded: s.Folded, Denied: s.Denied, Problem: s.Problem, Limit: s.Limit, Retry: s.Retry,
	}
}
