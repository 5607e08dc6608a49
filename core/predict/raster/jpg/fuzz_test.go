package jpg

import (
	"math/rand/v2"
	"testing"
)

// FuzzDecode compares Decode with image/jpeg at full size. At the other scales it checks that Decode does not panic and accepts every
// file that it accepts at full size.
func FuzzDecode(f *testing.F) {
	for i, s := range samplings {
		for _, marker := range kinds {
			r := rand.New(rand.NewPCG(uint64(i), uint64(marker)))
			f.Add(generate(r, s, marker, 24).encode(r))
		}
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ReadConfig(data); err == nil && (c.Width*c.Height > 1<<18 || c.Scans > 16) {
			return
		}
		accepted := against(t, &d, data)
		for _, scale := range []int{2, 4, 8} {
			for _, region := range []Rect{{}, {3, 3, 9, 12}} {
				if _, err := d.Decode(data, Options{Scale: scale, Region: region}); err != nil && accepted {
					t.Fatalf("Scale %d %v: %v", scale, region, err)
				}
			}
		}
	})
}
