package instance

import "github.com/sightline-dev/sightline/core/api"

// standing is where the copy stands, for whoever asks the copy itself; false where its machine is no more.
func (i *Instance) standing(string) (api.Standing, bool) {
	if i.machine == nil {
		return api.Standing{}, false
	}
	s := i.machine.Status()
	return s.Standing(i.settings.Replica.Origin), true
}
