//go:build !wasip1

package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/register"
)

// BenchmarkWrongSecrets measures refusals that must not reveal existence: of a client with a wrong secret and an unknown one, and of a
// deleted key and an unknown one, in turns on Pebble. It reports the median of each and the interquartile range (iqr) of one kind. Only a
// difference above that range would be visible.
func BenchmarkWrongSecrets(b *testing.B) {
	store, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	w := apitest.NewWorld(b, store, apitest.Tiny(b), nil, nil)
	for i := range 200 {
		w.NewTenant(b, fmt.Sprint("account ", i), "en")
	}
	deletedKey := w.NewKey(b, apitest.Tenant{App: w.App}, auth.All)
	hash, err := auth.Key("Key " + deletedKey)
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Engine.Register.DeleteKey(b.Context(), register.Caller{}, w.App, hash); err != nil {
		b.Fatal(err)
	}
	wrong, unknown := w.Client, w.Client
	wrong.Secret, unknown.ID = strings.Repeat("0", 64), strings.Repeat("0", 32)
	for _, pair := range []struct {
		name   string
		one    api.Request
		names  [2]string
		others string
	}{
		{"client", api.Request{Method: "POST", Path: "/v2/token", Authorization: apitest.Basic(wrong)}, [2]string{"wrong", "unknown"}, apitest.Basic(unknown)},
		{"key", api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + deletedKey}, [2]string{"deleted", "unknown"}, "Key " + strings.Repeat("0", 32)},
	} {
		b.Run(pair.name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				for kind := range took {
					w.Now = w.Now.Add(time.Minute) // otherwise the rate limit refuses them
					r := pair.one
					if kind == 1 {
						r.Authorization = pair.others
					}
					began := time.Now()
					if got := w.Serve(b, r); got.Status != 401 {
						b.Fatalf("%d %s", got.Status, got.Body)
					}
					took[kind] = append(took[kind], time.Since(began))
				}
			}
			for kind, name := range pair.names {
				slices.Sort(took[kind])
				n := len(took[kind])
				b.ReportMetric(float64(took[kind][n/2]), name+"-ns")
				b.ReportMetric(float64(took[kind][n*3/4]-took[kind][n/4]), name+"-iqr-ns")
			}
		})
	}
}
