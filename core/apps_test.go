package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/lang"
)

func status(e *core.Engine, authorization string) (int, string) {
	call := e.Begin(context.Background(), &api.Request{Method: "GET", Path: "/v2/models", Authorization: authorization})
	return call.Response().Status, string(call.Response().Body)
}

// TestKeys holds who is let in, and what those who are not are told.
func TestKeys(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	tests := []struct {
		name, authorization string
		http                int
		want                string
	}{
		{"good", "Key " + l.key, 200, `"code":10000`},
		{"none", "", 401, `{"status":{"code":11102,"description":"Invalid request","details":"` + strings.ReplaceAll(auth.ErrNoCredentials.Error(), `"`, `\"`) + `"},"models":[]}`},
		{"unknown", "Key " + strings.Repeat("0", 32), 401, `{"status":{"code":11009,"description":"API key not found","details":"invalid key"},"models":[]}`},
		{"malformed", "Key 123", 401, `{"status":{"code":11008,"description":"Invalid API key or Invalid API key/application pair","details":"Invalid format of key."},"models":[]}`},
		{"token", "Bearer abcdefghij", 401, `"code":11001`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, body := status(e, tt.authorization); got != tt.http || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %d %s", got, body, tt.http, tt.want)
			}
		})
	}
	call := e.Begin(context.Background(), &api.Request{Method: "OPTIONS", Path: "/v2/models"})
	if got := call.Response(); got.Status != 200 {
		t.Errorf("OPTIONS without a key = %d %s", got.Status, got.Body)
	}
}

func TestCreateRefuses(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := context.Background()
	for _, name := range []string{"", " ", "a\nb", strings.Repeat("x", 257)} {
		if _, _, err := e.CreateApp(ctx, "", core.NewApp{Name: name, Language: "en"}); !errors.Is(err, core.ErrName) {
			t.Errorf("CreateApp(%q) = %v, want %v", name, err, core.ErrName)
		}
	}
	if _, _, err := e.CreateApp(ctx, "", core.NewApp{Name: "a", Language: "xx"}); !errors.Is(err, lang.ErrUnknown) {
		t.Errorf("CreateApp in xx = %v, want %v", err, lang.ErrUnknown)
	}
	apps, err := e.Apps()
	if err != nil || len(apps) != 1 || apps[0].Name != "test" || apps[0].Language != "en" {
		t.Fatalf("Apps = %+v, %v", apps, err)
	}
	for _, id := range []string{"", "main", strings.Repeat("0", 32), " " + apps[0].ID, strings.Repeat("a", 32)} {
		if _, _, err := e.CreateKey(ctx, "", core.NewKey{App: id, Scopes: []string{"All"}}); !errors.Is(err, core.ErrApplication) {
			t.Errorf("CreateKey(%q) = %v, want %v", id, err, core.ErrApplication)
		}
	}
	if _, _, err := e.CreateKey(ctx, "", core.NewKey{App: apps[0].ID, Scopes: []string{"Everything"}}); !errors.Is(err, auth.ErrScope) {
		t.Errorf("CreateKey with a scope that is none = %v, want %v", err, auth.ErrScope)
	}
	if _, _, err := e.CreateKey(ctx, "", core.NewKey{App: apps[0].ID, Scopes: []string{"All"}, Description: "a\x00"}); !errors.Is(err, core.ErrName) {
		t.Errorf("CreateKey with a control character = %v, want %v", err, core.ErrName)
	}
}

// TestEngineReopens holds that applications and keys outlive the engine, and that the store
// has no key in the clear.
func TestEngineReopens(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	err := l.o.Store.Scan(nil, nil, func(key, value []byte) bool {
		if strings.Contains(string(key)+string(value), l.key) {
			t.Errorf("%x holds the key", key)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := core.Open(l.o)
	if err != nil {
		t.Fatal(err)
	}
	if got, body := status(again, "Key "+l.key); got != 200 {
		t.Errorf("after opening again: %d %s", got, body)
	}
}
