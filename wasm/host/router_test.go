package host

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestCount: the fleet counts each call with a valid credential, whatever its result, and answers 402 with the reason if the host allows
// no more calls. It does not count calls with invalid credentials, calls with App set by the host, and reads by our own pages.
func TestCount(t *testing.T) {
	counted, reason := 0, ""
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) {
		o.Services.Count = func(string) string {
			if reason == "" {
				counted++
			}
			return reason
		}
	})
	a := n.tenant()
	key := "Key " + a.key
	for _, tt := range []struct {
		name   string
		r      api.Request
		reason string
		status int
		counts int
	}{
		{"a read", api.Request{Method: "GET", Path: "/v2/concepts", Authorization: key}, "", 200, 1},
		{"what is not there", api.Request{Method: "GET", Path: "/v2/concepts/none", Authorization: key}, "", 404, 1},
		{"an unknown key", api.Request{Method: "GET", Path: "/v2/concepts", Authorization: "Key " + strings.Repeat("0", 32)}, "", 401, 0},
		{"a session", api.Request{Method: "GET", Path: "/v2/concepts", Session: "session"}, "", 401, 0},
		{"what the host asks", api.Request{Method: "GET", Path: "/v2/concepts", App: a.app}, "", 200, 0},
		{"what a page reads", api.Request{Method: "GET", Path: "/v2/concepts", Authorization: key, Page: true}, "", 200, 0},
		{"a call over the limit", api.Request{Method: "GET", Path: "/v2/concepts", Authorization: key}, "none before May", 402, 0},
		{"what a page reads over the limit", api.Request{Method: "GET", Path: "/v2/concepts", Authorization: key, Page: true}, "none before May", 200, 0},
	} {
		counted, reason = 0, tt.reason
		res := n.serve(&tt.r)
		if res.Status != tt.status || counted != tt.counts || tt.status == 402 && !bytes.Contains(res.Body, []byte(tt.reason)) {
			t.Errorf("%s = %d %s, and %d calls were counted; want %d and %d", tt.name, res.Status, res.Body, counted, tt.status, tt.counts)
		}
	}
}

// TestAdmit: the host refuses writing calls of one application. Reads, calls of other applications, and calls with
// App set by the host succeed.
func TestAdmit(t *testing.T) {
	suspendedApp := ""
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) {
		o.Admit = func(_ context.Context, app string, r *api.Request) error {
			if app == suspendedApp && api.Writes(r.Method, r.Path) {
				return auth.ErrWritesSuspended
			}
			return nil
		}
	})
	a, b := n.tenant(), n.tenant()
	suspendedApp = a.app
	body := []byte(`{"concepts":[{"id":"c"}]}`)
	for _, tt := range []struct {
		r    api.Request
		want int
	}{
		{api.Request{Method: "POST", Path: "/v2/concepts", Authorization: "Key " + a.key, Body: body}, 507},
		{api.Request{Method: "GET", Path: "/v2/concepts", Authorization: "Key " + a.key}, 200},
		{api.Request{Method: "POST", Path: "/v2/concepts", Authorization: "Key " + b.key, Body: body}, 200},
		{api.Request{Method: "POST", Path: "/v2/concepts", App: a.app, Body: body}, 200},
	} {
		res := n.serve(&tt.r)
		if res.Status != tt.want || tt.want == 507 && !bytes.Contains(res.Body, []byte(`"code":39998`)) {
			t.Errorf("%s %s = %d %s, want %d", tt.r.Method, tt.r.Path, res.Status, res.Body, tt.want)
		}
	}
}

// TestLearn: the fleet asks its host once about a credential that has no record, and looks it up again. It does not ask about a missing or
// malformed credential.
func TestLearn(t *testing.T) {
	asked, learned := 0, func() {}
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) {
		o.UnknownCredential = func(context.Context, *api.Request) {
			asked++
			learned()
		}
	})
	a := n.tenant()
	unknown := "Key " + strings.Repeat("0", 32)
	for _, tt := range []struct {
		name, authorization string
		learned             func()
		status, asked       int
	}{
		{"a known key", "Key " + a.key, func() {}, 200, 0},
		{"an unknown key", unknown, func() {}, 401, 1},
		{"no credential", "", func() {}, 401, 0},
		{"a malformed key", "Key 0", func() {}, 401, 0},
		{"an unknown token", "Bearer x", func() {}, 401, 1},
	} {
		asked, learned = 0, tt.learned
		res := n.serve(&api.Request{Method: "GET", Path: "/v2/concepts", Authorization: tt.authorization})
		if res.Status != tt.status || asked != tt.asked {
			t.Errorf("%s = %d, and the host was asked %d times; want %d and %d", tt.name, res.Status, asked, tt.status, tt.asked)
		}
	}
	r := api.Request{Method: "GET", Path: "/v2/concepts", Authorization: unknown}
	learned = func() { r.Authorization = "Key " + a.key } // keys are random, so the request gets one that has a record
	if res := n.serve(&r); res.Status != 200 {
		t.Errorf("a credential that the host has learned = %d %s", res.Status, res.Body)
	}
}

// TestNoTimeLeft: an analysis fails if the time of its caller is over.
func TestNoTimeLeft(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	picture := apitest.Picture("red.png")
	late, err := n.fleet.NewAnalyser([32]byte{}, raster.Limits{Expired: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := late.Analyse(picture, raster.Crop{}, apitest.Tiny(t).General().Want()); err == nil {
		t.Errorf("Analyse = %+v of a picture that there is no time for", a)
	}
}
