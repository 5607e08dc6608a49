package host

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
)

// TestNetworks finds networks by their base, in the newest bundles and in older ones, and loads each once.
func TestNetworks(t *testing.T) {
	tables, err := predict.LoadTables(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	base := tables.Base()
	requests := 0
	older := func(files fs.FS, err error) func([32]byte) (fs.FS, error) {
		return func([32]byte) (fs.FS, error) {
			requests++
			return files, err
		}
	}
	var n networks
	for _, tt := range []struct {
		name     string
		services Services
		base     [32]byte
		want     bool
	}{
		{"no services", Services{}, base, false},
		{"bundles that are none", Services{Bundles: fstest.MapFS{}}, base, false},
		{"no older ones", Services{Bundles: models.FS}, [32]byte{1}, false},
		{"not among the older", Services{Older: older(nil, fs.ErrNotExist)}, base, false},
		{"older bundles that are none", Services{Older: older(fstest.MapFS{}, nil)}, base, false},
		{"older bundles of another base", Services{Older: older(models.FS, nil)}, [32]byte{1}, false},
		{"older", Services{Older: older(models.FS, nil)}, base, true},
		{"known", Services{Older: older(models.FS, nil)}, base, true},
	} {
		if set := n.network(&tt.services, tt.base); (set != nil) != tt.want || set != nil && set.Base() != tt.base {
			t.Errorf("%s: network = %v, want one: %v", tt.name, set, tt.want)
		}
	}
	if requests != 4 {
		t.Errorf("older bundles were asked for %d times, want 4: what is known is not read again", requests)
	}
	var newest networks
	if set := newest.network(&Services{Bundles: models.FS}, base); set == nil {
		t.Error("the network of the newest bundles is not found")
	}
}
