package core_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/register"
)

// TestLocalOnly creates an application as local only, and changes the setting both ways. Changes of other fields keep it.
func TestLocalOnly(t *testing.T) {
	e := newFixture(t).open(t)
	app, _, err := e.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "kept here", Language: "en", LocalOnly: true})
	if err != nil || !app.LocalOnly {
		t.Fatalf("made %+v, %v", app, err)
	}
	yes, no, name := true, false, "another"
	for _, tt := range []struct {
		change register.AppChange
		want   bool
	}{
		{register.AppChange{Name: &name}, true},
		{register.AppChange{LocalOnly: &no}, false},
		{register.AppChange{Name: &name}, false},
		{register.AppChange{LocalOnly: &yes}, true},
	} {
		if got, err := e.Register.ChangeApp(t.Context(), register.Caller{}, app.ID, tt.change); err != nil || got.LocalOnly != tt.want {
			t.Errorf("%+v: %+v, %v", tt.change, got, err)
		}
	}
}
