package film

import (
	"errors"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestFaults checks the error texts for films that cannot be decoded: the kind of the error, and how much of the film is undamaged.
func TestFaults(t *testing.T) {
	ask := api.Video{SampleMS: 500}
	for _, tt := range []struct {
		err  error
		is   error
		want string
	}{
		{ProbeError(), raster.ErrCorrupt, "video damaged: its index is missing or cannot be read"},
		{DecodeError(0, ask), raster.ErrCorrupt, "video damaged from its beginning"},
		{DecodeError(4, ask), raster.ErrCorrupt, "video damaged after 1.5 s"},
		{TimeoutError(2*time.Minute, 0, ask), raster.ErrTooLarge, "video takes more than 2m0s to decode: nothing of it was decoded"},
		{TimeoutError(2*time.Minute, 3, ask), raster.ErrTooLarge, "video takes more than 2m0s to decode: 1 s of it was decoded"},
		{MemoryError(), raster.ErrTooLarge, "video takes more than 512 MB of memory to decode"},
	} {
		if !errors.Is(tt.err, tt.is) || tt.err.Error() != tt.want {
			t.Errorf("error %q, want %q, which is %v", tt.err, tt.want, tt.is)
		}
	}
}
