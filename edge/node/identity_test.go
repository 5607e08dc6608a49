package node

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// TestEdgesSignHeads: an edge signs the head of each request with a body, at the time of its other signature.
func TestEdgesSignHeads(t *testing.T) {
	i := &identity{Seed: bytes.Repeat([]byte{1}, ed25519.SeedSize), ID: "e"}
	public := i.key().Public().(ed25519.PublicKey)
	for body, want := range map[string]string{"": "", "twelve bytes": "sightline edge head 1\nPOST\n/v2/sync/push?app=x\n%s\n12"} {
		header, err := i.authorize("POST", "/v2/sync/push", "app=x", []byte(body))
		if err != nil || len(header) == 0 || header[0].Name != "Authorization" {
			t.Fatalf("%q: %v, %v", body, header, err)
		}
		if want == "" {
			if len(header) != 1 {
				t.Errorf("without a body: %v", header)
			}
			continue
		}
		text := fmt.Sprintf(want, strings.Fields(header[0].Value)[2])
		if len(header) != 2 || header[1].Name != "Sync-Head" || !isSigned(public, text, header[1]) {
			t.Errorf("%q: %v, want a signature of %q", body, header, text)
		}
	}
}

// isSigned reports whether a header has the signature of a text in hexadecimal digits.
func isSigned(key ed25519.PublicKey, text string, header api.Field) bool {
	signature, err := hex.DecodeString(header.Value)
	return err == nil && ed25519.Verify(key, []byte(text), signature)
}
