package instance

import "github.com/sightline-dev/sightline/core/api"

// syncStatus returns the replica's sync status for API calls. It returns false if the instance has no machine, for example after a panic
// of the machine.
func (i *Instance) syncStatus(string) (api.SyncStatus, bool) {
	if i.machine == nil {
		return api.SyncStatus{}, false
	}
	s := i.machine.Status()
	out := s.APIStatus(i.settings.Replica.Origin)
	out.Name, out.Kind = i.settings.Replica.Name, "page"
	if i.pictures == nil { // the store is the host's
		out.Kind, out.KeysAsOf = "edge", s.Heard
	}
	return out, true
}
