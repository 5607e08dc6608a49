package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestBearer(t *testing.T) {
	tests := []struct {
		header, token string
		ok            bool
	}{
		{"Bearer a.b.c", "a.b.c", true},
		{"bearer  a.b.c ", "a.b.c", true},
		{"Bearer " + strings.Repeat("a", maxTokenBytes), strings.Repeat("a", maxTokenBytes), true},
		{"Bearer " + strings.Repeat("a", maxTokenBytes+1), "", true},
		{"Bearer", "", false},
		{"Key a", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		if token, ok := Bearer(tt.header); ok != tt.ok || ok && token != tt.token {
			t.Errorf("Bearer(%.20q) = %.20q, %v", tt.header, token, ok)
		}
	}
}

func TestBasic(t *testing.T) {
	pair := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := []struct {
		header, id, secret string
		ok                 bool
	}{
		{"Basic " + pair("id:secret"), "id", "secret", true},
		{"basic " + pair("id:a:b"), "id", "a:b", true},
		{"Basic " + pair("id"), "id", "", true},
		{"Basic " + pair(":"), "", "", true},
		{"Basic ***", "", "", true},
		{"Basic " + pair(strings.Repeat("x", maxBasicBytes)), "", "", true},
		{"Basic", "", "", false},
		{"Key " + pair("id:secret"), "", "", false},
	}
	for _, tt := range tests {
		id, secret, ok := Basic(tt.header)
		if ok != tt.ok || ok && (id != tt.id || secret != HashKey(tt.secret)) {
			t.Errorf("Basic(%q) = %q, %x, %v", tt.header, id, secret, ok)
		}
	}
}

// FuzzAuthorization: at most one scheme accepts a header. A key can be parsed from its written form. No error contains bytes of the header.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"", "Key", "Key 0123456789abcdef0123456789abcdef", "KEY  0123456789abcdef0123456789abcdef", "Bearer a.b.c", "Bearer ", "Basic aWQ6c2VjcmV0",
		"Basic a", "Digest x", "Key 0123456789ABCDEF0123456789ABCDEF", "Key\t0123456789abcdef0123456789abcdef", "Key 0123456789abcdef 0123456789abcde",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		hash, err := Key(header)
		_, bearer := Bearer(header)
		id, _, basic := Basic(header)
		read := 0
		for _, ok := range []bool{err == nil || errors.Is(err, ErrKeyUnknown), bearer, basic} {
			if ok {
				read++
			}
		}
		if read > 1 {
			t.Fatalf("%q is read by %d schemes", header, read)
		}
		if len(id) > maxBasicBytes {
			t.Fatalf("an id of %d bytes", len(id))
		}
		if err == nil {
			_, key, _ := strings.Cut(strings.TrimSpace(header), " ")
			if again, err := Key("Key " + strings.TrimSpace(key)); err != nil || again != hash {
				t.Fatalf("%q: %x and %x, %v", header, hash, again, err)
			}
			return
		}
		if fresh, _ := Key("Key x"); fresh != (Hash{}) {
			t.Fatal("a refused key has a hash")
		}
		if text := fmt.Sprint(err); len(header) > 12 && strings.Contains(text, header) {
			t.Fatalf("%q repeats what was sent", text)
		}
	})
}
