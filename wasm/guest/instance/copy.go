package instance

import "github.com/sightline-dev/sightline/core/api"

// standing returns the copy's status, for calls to the copy; false if its machine has ended.
func (i *Instance) standing(string) (api.Standing, bool) {
	if i.machine == nil {
		return api.Standing{}, false
	}
	s := i.machine.Status()
	return s.Standing(i.settings.Replica.Origin), true
}
