package wire_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/sync/wire"
)

func TestAgree(t *testing.T) {
	origin := wire.Support{Min: 2, Max: 4, Schema: 1, Features: []string{"columns", "seam", "behalf"}}
	tests := []struct {
		name     string
		session  wire.Session
		protocol uint32
		features []string
		refusal  *wire.Refusal
	}{
		{"the newest of both", wire.Session{Min: 1, Max: 9, Schema: 1}, 4, nil, nil},
		{"the newest of the replica's", wire.Session{Min: 1, Max: 3, Schema: 1}, 3, nil, nil},
		{"features that both know", wire.Session{Min: 4, Max: 4, Schema: 2, Require: []string{"seam"}, Features: []string{"later", "columns", "seam"}}, 4, []string{"seam", "columns"}, nil},
		{
			"too old",
			wire.Session{Min: 1, Max: 1, Schema: 1},
			0, nil,
			&wire.Refusal{Code: wire.RefusedProtocol, Detail: "versions 2 to 4 of the protocol are supported, not 1 to 1", Min: 2, Max: 4},
		},
		{
			"too new",
			wire.Session{Min: 5, Max: 6, Schema: 1},
			0, nil,
			&wire.Refusal{Code: wire.RefusedProtocol, Detail: "versions 2 to 4 of the protocol are supported, not 5 to 6", Min: 2, Max: 4},
		},
		{
			"versions that are none",
			wire.Session{Min: 3, Max: 2, Schema: 1},
			0, nil,
			&wire.Refusal{Code: wire.RefusedProtocol, Detail: "versions 2 to 4 of the protocol are supported, not 3 to 2", Min: 2, Max: 4},
		},
		{
			"required features",
			wire.Session{Min: 1, Max: 4, Schema: 1, Require: []string{"a", "seam", "b"}},
			0, nil,
			&wire.Refusal{Code: wire.RefusedFeatures, Detail: "unsupported features", Features: []string{"a", "b"}},
		},
		{
			"older records",
			wire.Session{Min: 1, Max: 4},
			0, nil,
			&wire.Refusal{Code: wire.RefusedFeatures, Detail: "unsupported newer records", Features: []string{"schema/1"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			protocol, features, err := tt.session.Agree(origin)
			var refusal *wire.Refusal
			if err != nil && !errors.As(err, &refusal) {
				t.Fatalf("Agree: %v, want a refusal", err)
			}
			if diff := cmp.Diff(tt.refusal, refusal); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.features, features); protocol != tt.protocol || diff != "" {
				t.Errorf("Agree = %d, %v, want %d, %v", protocol, features, tt.protocol, tt.features)
			}
		})
	}
}

func TestRefusalStatus(t *testing.T) {
	for code, want := range map[wire.RefusalCode]int{
		wire.RefusedFormat: 400, wire.RefusedProtocol: 426, wire.RefusedFeatures: 426, wire.RefusedFold: 426,
		wire.RefusedWriter: 403, wire.RefusedScope: 403, wire.RefusedEpoch: 409, wire.RefusedSequence: 409,
		wire.RefusedContent: 409, wire.RefusedLimit: 413, wire.RefusedQuota: 429, wire.RefusedBusy: 503,
		wire.RefusedGone: 410, wire.RefusedUnknown: 404, wire.RefusedBlobs: 409, 0: 400, 999: 400,
	} {
		r := wire.Refusal{Code: code}
		if got := r.Status(); got != want {
			t.Errorf("Status of code %d = %d, want %d", code, got, want)
		}
	}
	r := wire.Refusal{Detail: "unsupported features", Features: []string{"a", "b"}}
	if got, want := r.Error(), "unsupported features: a, b"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
}
