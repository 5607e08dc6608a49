package instance

import "github.com/sightline-dev/sightline/core/api"

// syncStatus returns the copy's status, for calls to the copy; false if its machine has ended.
func (i *Instance) syncStatus(string) (api.SyncStatus, bool) {
	if i.machine == nil {
		return api.SyncStatus{}, false
	}
	s := i.machine.Status()
	return s.APIStatus(i.settings.Replica.Origin), true
}
