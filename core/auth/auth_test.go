package auth

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	tests := []struct {
		header string
		err    error
	}{
		{"Key " + key, nil},
		{"key  " + key + " ", nil},
		{"", ErrNoCredentials},
		{key, ErrNoCredentials},
		{"Key", ErrNoCredentials},
		{"Basic " + key, ErrNoCredentials},
		{"Bearer " + key, ErrNoCredentials},
		{"Key " + key[1:], ErrKeyUnknown},
		{"Key " + key + "0", ErrKeyUnknown},
		{"Key " + strings.ToUpper(key), ErrKeyUnknown},
		{"Key " + strings.Repeat("g", 32), ErrKeyUnknown},
		{"Key " + key[:16] + " " + key[:15], ErrKeyUnknown},
	}
	for _, tt := range tests {
		h, err := Key(tt.header)
		if !errors.Is(err, tt.err) || err == nil && h != HashKey(key) {
			t.Errorf("Key(%q) = %x, %v, want %v", tt.header, h, err, tt.err)
		}
	}
}

func TestNewKey(t *testing.T) {
	key, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{0xab}, 16)))
	if err != nil || key != strings.Repeat("ab", 16) {
		t.Errorf("NewKey = %q, %v", key, err)
	}
	if h, err := Key("Key " + key); err != nil || h != HashKey(key) || len(ByKey(h)) != 16 {
		t.Errorf("a new key is read as %x, %v", h, err)
	}
	if _, err := NewKey(bytes.NewReader(nil)); err == nil {
		t.Error("a key came from no random bits")
	}
}

func TestScopes(t *testing.T) {
	got, err := NormaliseScopes([]string{"Predict", "Inputs:Get", " Inputs_Get"})
	if err != nil || !slices.Equal(got, []string{"Predict", "Inputs_Get"}) {
		t.Errorf("Scopes = %q, %v", got, err)
	}
	for _, bad := range [][]string{nil, {"all"}, {"All", ""}} {
		if _, err := NormaliseScopes(bad); !errors.Is(err, ErrScope) {
			t.Errorf("Scopes(%q): %v, want %v", bad, err, ErrScope)
		}
	}
}
