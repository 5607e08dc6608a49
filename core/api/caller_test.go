package api_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestApplicationsOfAccountAreOneCaller checks the caller of requests: all applications of an account are one caller, and each application
// of the operator is a separate one.
func TestApplicationsOfAccountAreOneCaller(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	first, second, own := w.NewTenant(t, "anna", "en"), w.NewTenant(t, "anna", "en"), w.NewTenant(t, "", "en")
	for _, tt := range []struct {
		tenant apitest.Tenant
		want   string
	}{{first, "anna"}, {second, "anna"}, {own, own.App}} {
		r := &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + w.NewKey(t, tt.tenant, auth.All)}
		if got, err := w.Engine.Caller(t.Context(), r); got != tt.want || err != nil {
			t.Errorf("Caller of an application of %q = %q, %v, want %q", tt.tenant.Owner, got, err, tt.want)
		}
		if p, _, err := w.Engine.Identify(t.Context(), r); p.Caller != tt.want || err != nil {
			t.Errorf("Identify of an application of %q: caller %q, %v, want %q", tt.tenant.Owner, p.Caller, err, tt.want)
		}
	}
}
