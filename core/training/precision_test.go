package training

import (
	"encoding/json"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/train"
)

// TestVersionPromisesItsPrecision trains with a precision of 0.6, which six pictures support, and with the default.
func TestVersionPromisesItsPrecision(t *testing.T) {
	for _, tt := range []struct {
		settings  []log.Setting
		want      float64
		supported bool
	}{
		{nil, train.DefaultPrecision, false},
		{[]log.Setting{{Name: settingHyper, JSON: []byte(`"{\"precision\":0.6}"`)}}, 0.6, true},
		{[]log.Setting{{Name: settingHyper, JSON: []byte(`{"precision":0.6,"MAX_NITEMS":1000000}`)}}, 0.6, true},
	} {
		w := newWorld(t)
		w.make([]string{"cat", "dog"}, tt.settings...)
		for i := range 12 {
			w.add(i%2, []string{"cat", "dog"}[i%2])
		}
		v := w.train("v")
		if v.Code != catalog.VersionTrained {
			t.Fatalf("version %+v", v)
		}
		view := w.p.View()
		manifest, err := view.Manifest(&v)
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		var m train.Metrics
		if err := json.Unmarshal(manifest.Metrics, &m); err != nil {
			t.Fatal(err)
		}
		if c := &m.Concepts[0]; m.Precision != tt.want || c.Supported >= m.Precision != tt.supported {
			t.Errorf("%v promised and %v supported, want %v and kept %v", m.Precision, c.Supported, tt.want, tt.supported)
		}
	}
}
