package hnsw

import "testing"

func TestPlan(t *testing.T) {
	tests := []struct {
		name              string
		matches, live, ef int
		wide              int
		scan              bool
	}{
		{"few", 1000, 100_000, 64, 3264, true},
		{"a tenth", 10_000, 100_000, 64, 384, true},
		{"half", 50_000, 100_000, 64, 128, false},
		{"all", 100_000, 100_000, 64, 96, false},
		{"narrow walks are widened", 100_000, 100_000, 10, 96, false},
		{"a tenth of many", 100_000, 1_000_000, 64, 384, false},
		{"a hundredth of many", 10_000, 1_000_000, 64, 3264, true},
		{"more than live", 100, 10, 64, 67, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if wide, scan := plan(tt.matches, tt.live, tt.ef); wide != tt.wide || scan != tt.scan {
				t.Errorf("plan = %d, %v, want %d, %v", wide, scan, tt.wide, tt.scan)
			}
		})
	}
}
