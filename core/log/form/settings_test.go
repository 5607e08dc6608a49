package form

import "testing"

// TestPrecision reads the promised precision from hyper-parameters. Clients of other services send other texts in them.
func TestPrecision(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
		bad  bool
	}{
		{``, 0, false},
		{`custom_training`, 0, false},
		{`{"MAX_NITEMS": 1000000}`, 0, false},
		{`{"MAX_NITEMS": 1000000, "precision": 0.95}`, 0.95, false},
		{`{"precision": 1}`, 0, true},
		{`{"precision": 0.4}`, 0, true},
		{`{"precision": "high"}`, 0, true},
	} {
		if got, err := Precision(tt.text); got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%s: %v, %v", tt.text, got, err)
		}
	}
}
