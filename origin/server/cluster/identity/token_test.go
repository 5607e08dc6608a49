package identity

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	f := create(t, "[fd00::5]:7000")
	token, err := f.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := token.Text()
	if text != url.PathEscape(text) || !strings.HasPrefix(text, "sightline-join-") {
		t.Errorf("the token is %q", text)
	}
	for _, text := range []string{text, " " + text + "\r\n"} {
		if got, err := ParseToken(text); err != nil || got != token {
			t.Errorf("ParseToken(%q) = %v, %v, want %v", text, got, err, token)
		}
	}
	other, err := f.NewToken(rand.Reader)
	if err != nil || other.Secret == token.Secret || other.Secret.Hash() == token.Secret.Hash() {
		t.Errorf("a second token: %v, %v", other, err)
	}
	if _, err := f.NewToken(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("created a token with 31 random bytes")
	}
	secret := fmt.Sprintf("%x", token.Secret[:])
	bare := base64.StdEncoding.EncodeToString(token.Secret[:])
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(format, token); strings.Contains(got, secret) || strings.Contains(got, bare) {
			t.Errorf("%s prints the secret: %s", format, got)
		}
	}
}

// TestTokenMistyped changes, removes and swaps each character of a token.
func TestTokenMistyped(t *testing.T) {
	token, err := create(t, "node10.example:7000").NewToken(rand.Reader) // the last character has bits without a meaning
	if err != nil {
		t.Fatal(err)
	}
	text := token.Text()
	for i := range text {
		wrong := []string{text[:i], text[i+1:], text[:i] + text[i+1:], text[:i] + "~" + text[i+1:], text[:i] + "\n" + text[i:], text[:i] + "A" + text[i:]}
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if byte(c) != text[i] {
				wrong = append(wrong, text[:i]+string(c)+text[i+1:])
			}
		}
		if i > 0 && text[i-1] != text[i] {
			wrong = append(wrong, text[:i-1]+text[i:i+1]+text[i-1:i]+text[i+1:])
		}
		for _, wrong := range wrong {
			if strings.TrimSpace(wrong) == text {
				continue
			}
			if got, err := ParseToken(wrong); !errors.Is(err, ErrToken) || got != (Token{}) {
				t.Fatalf("ParseToken(%q) = %v, %v, want ErrToken", wrong, got, err)
			}
		}
	}
}

// TestTokenOfAnotherProgram parses texts with a correct checksum and other content.
func TestTokenOfAnotherProgram(t *testing.T) {
	token, err := create(t, "node1.example:7000").NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Concat([]byte{tokenVersion}, token.Authority[:], token.Secret[:])
	sealed := func(b []byte) string {
		return tokenPrefix + base64.RawURLEncoding.EncodeToString(slices.Concat(b, sumOf(b)))
	}
	newer := slices.Clone(body)
	newer[0] = 2
	if _, err := ParseToken(sealed(newer)); err == nil || errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a token of version 2: %v, want that the version is named", err)
	}
	for _, host := range []string{"", "a", "A:1", "0.0.0.0:1", "a:65534", "a:01", "[::ffff:10.0.0.1]:1", strings.Repeat("a", 400) + ":1"} {
		if got, err := ParseToken(sealed(append(slices.Clone(body), host...))); !errors.Is(err, ErrToken) {
			t.Errorf("a token with address %q: %v, %v, want ErrToken", host, got, err)
		}
	}
	for n := range body {
		if got, err := ParseToken(sealed(body[:n])); err == nil {
			t.Errorf("a token of %d bytes: %v", n, got)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	token := Token{Address: Address{"10.0.0.5", 7000}, Authority: Fingerprint{1}, Secret: Secret{2}}
	f.Add(token.Text())
	f.Add(token.Text()[:40])
	f.Add(tokenPrefix)
	f.Add(tokenPrefix + "AA")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			if token != (Token{}) {
				t.Errorf("ParseToken(%q) = %v with %v", text, token, err)
			}
			return
		}
		if token.Text() != strings.TrimSpace(text) {
			t.Errorf("ParseToken(%q).Text() = %q", text, token.Text())
		}
	})
}

// FuzzTokenBody gives ParseToken bodies that have the right checksum.
func FuzzTokenBody(f *testing.F) {
	f.Add(slices.Concat([]byte{tokenVersion}, make([]byte, 64), []byte("10.0.0.5:7000")))
	f.Add([]byte{tokenVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		text := tokenPrefix + base64.RawURLEncoding.EncodeToString(slices.Concat(b, sumOf(b)))
		if token, err := ParseToken(text); err == nil && token.Text() != text {
			t.Errorf("ParseToken(%q).Text() = %q", text, token.Text())
		}
	})
}
