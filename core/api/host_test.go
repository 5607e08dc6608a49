package api

import "testing"

// TestAcceptsEncoding: a coding counts if the header names it with a weight above 0.
func TestAcceptsEncoding(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": false, "zstd": true, "gzip, deflate, br, zstd": true, "gzip;q=1, ZSTD ; q=0.5": true,
		"zstd;q=0": false, "zstd; q=0.000": false, "zstd;q=0.001": true, "*": false, "xzstd": false,
	} {
		if got := AcceptsEncoding(header, "zstd"); got != want {
			t.Errorf("AcceptsEncoding(%q) = %v, want %v", header, got, want)
		}
	}
}
