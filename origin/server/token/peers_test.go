package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
)

// fakePeers are the peers and delegates that a test defines.
type fakePeers struct {
	signers   map[string]Signer
	delegates map[string]Delegate
}

func (k *fakePeers) Signer(kid string) (Signer, bool) {
	s, ok := k.signers[kid]
	return s, ok
}

func (k *fakePeers) Delegate(app string) (Delegate, bool) {
	d, ok := k.delegates[app]
	return d, ok
}

const anEdge = "00112233445566778899aabbccddeeff"

// holds returns a function that reports whether an application is one of apps.
func holds(apps ...string) func(string) bool {
	return func(app string) bool { return slices.Contains(apps, app) }
}

// TestPeersVerifyTokens: an origin and an edge issue tokens of an application that both have, and each verifies the other's tokens without
// a request. It checks application, issuer and end of such a token as for its own tokens. It rejects the tokens that the other issued to
// pages.
func TestPeersVerifyTokens(t *testing.T) {
	w, v := newWorld(t, 31), newWorld(t, 32)
	origin, edge := w.open(t, nil), v.open(t, func(o *Options) { o.Issuer = "https://edge.example" })
	issue(t, origin)
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)

	atEdge := &fakePeers{
		signers:   map[string]Signer{anEdge: {Public: public, Issuer: EdgeIssuer(anEdge), MayIssue: holds(someone.App)}},
		delegates: map[string]Delegate{someone.App: {ID: anEdge, Issuer: EdgeIssuer(anEdge), Private: private}},
	}
	for _, k := range publicKeys(t, origin) {
		atEdge.signers[k.ID] = Signer{Public: k.Key[:], Issuer: origin.Issuer(), MayIssue: holds(someone.App)}
	}
	edge.TrustPeer(atEdge)
	atOrigin := &fakePeers{signers: map[string]Signer{anEdge: {Public: public, Issuer: EdgeIssuer(anEdge), MayIssue: holds(someone.App)}}}
	origin.TrustPeer(atOrigin)

	for name, token := range map[string]string{"the origin's": issue(t, origin), "the edge's": issue(t, edge)} {
		for at, tokens := range map[string]*Tokens{"the origin": origin, "the edge": edge} {
			if c, err := tokens.Read(token); timeless(c) != someone || err != nil {
				t.Errorf("%s at %s: %+v, %v", name, at, c, err)
			}
		}
	}
	if kid := kidOf(strings.Split(issue(t, edge), ".")[0]); kid != anEdge {
		t.Errorf("the edge signs as %q, want %q", kid, anEdge)
	}

	page := someone
	page.Page, page.Session = true, "0011223344556677"
	for name, from := range map[string]*Tokens{"the origin's": origin, "the edge's": edge} {
		token, _, err := from.Issue(page)
		if err != nil {
			t.Fatal(err)
		}
		for at, tokens := range map[string]*Tokens{"the origin": origin, "the edge": edge} {
			switch c, err := tokens.Read(token); {
			case tokens == from && (timeless(c) != page || err != nil):
				t.Errorf("%s token of a page at %s: %+v, %v", name, at, c, err)
			case tokens != from && !errors.Is(err, auth.ErrToken):
				t.Errorf("%s token of a page at %s: %+v, %v, want %v", name, at, c, err, auth.ErrToken)
			}
		}
	}

	other := someone
	other.App = "00000000000000000000000000000002"
	own, _, err := edge.Issue(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edge.Read(own); err != nil {
		t.Errorf("a token of an application of the edge's own: %v", err)
	}
	foreign, _, err := origin.Issue(other)
	if err != nil {
		t.Fatal(err)
	}
	good := issue(t, edge)
	refused := func(name string, tokens *Tokens, token string, want error) {
		t.Helper()
		if c, err := tokens.Read(token); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v, want %v", name, c, err, want)
		}
	}
	refused("an edge's own application at the origin", origin, own, auth.ErrToken)
	refused("an application of which the edge has no replica", edge, foreign, auth.ErrToken)
	payload := payloadOf(t, good)
	payload["iss"] = origin.Issuer()
	refused("an edge that calls itself the origin", origin, sign(headerOf(anEdge), text(payload), private), auth.ErrToken)
	payload["iss"], payload["aud"], payload["sub"] = EdgeIssuer(anEdge), other.App, other.App
	refused("an edge that issues for an application it does not hold", origin, sign(headerOf(anEdge), text(payload), private), auth.ErrToken)
	refused("the edge's key under another's name", origin, sign(headerOf(publicKeys(t, origin)[0].ID), text(payloadOf(t, good)), private), auth.ErrToken)
	refused("an edge that is not known", origin, sign(headerOf(strings.Repeat("f", 32)), text(payloadOf(t, good)), private), auth.ErrToken)

	for at, tokens := range map[string]*Tokens{"the origin": origin, "another edge": edge} {
		long := payloadOf(t, good)
		long["exp"] = w.now.Add(MaxLife + skew + time.Second).Unix()
		refused("an edge's token that lives too long, at "+at, tokens, sign(headerOf(anEdge), text(long), private), auth.ErrToken)
		undated := payloadOf(t, good)
		delete(undated, "iat")
		refused("an edge's token without the time of its issue, at "+at, tokens, sign(headerOf(anEdge), text(undated), private), auth.ErrToken)
	}

	w.now = w.now.Add(DefaultLife + time.Second)
	refused("an edge's token at its end", origin, good, auth.ErrExpired)
	w.now = w.now.Add(-DefaultLife - time.Second)
	delete(atOrigin.signers, anEdge) // the edge was revoked
	refused("a revoked edge", origin, good, auth.ErrToken)
}

// publicKeys returns the public keys of tokens.
func publicKeys(t *testing.T, tokens *Tokens) []log.PublicKey {
	t.Helper()
	keys, err := tokens.Public()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestKeysArePublishedBeforeUse checks that the first key is published before its first token, and each next key a day before it signs.
func TestKeysArePublishedBeforeUse(t *testing.T) {
	w := newWorld(t, 33)
	tokens := w.open(t, nil)
	first := publicKeys(t, tokens)
	if kid := KeyID(issue(t, tokens)); len(first) == 0 || kid != first[0].ID {
		t.Errorf("%s signs the first token, want a key that Public has returned before: %v", kid, first)
	}
	w.now = w.now.Add(turnAfter)
	both := publicKeys(t, tokens)
	if len(first) != 1 || len(both) != 2 || both[0] != first[0] {
		t.Fatalf("keys %v, then %v", first, both)
	}
	if kid := KeyID(issue(t, tokens)); kid != both[0].ID {
		t.Errorf("%s signs, want %s: the other has only been told", kid, both[0].ID)
	}
	w.now = w.now.Add(announce)
	if kid := KeyID(issue(t, tokens)); kid != both[1].ID {
		t.Errorf("%s signs, want %s", kid, both[1].ID)
	}
}

// FuzzKidOf checks that kidOf returns a key's ID only for a header with exactly that form.
func FuzzKidOf(f *testing.F) {
	for _, header := range []string{headerOf(anEdge), headerOf(""), headerOf("A"), headerOf(strings.Repeat("a", maxKey+1)), `{"alg":"none","kid":"0","typ":"JWT"}`, ""} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(header)))
	}
	f.Add("e30\n")
	f.Fuzz(func(t *testing.T, header string) {
		if kid := kidOf(header); kid != "" && base64.RawURLEncoding.EncodeToString([]byte(headerOf(kid))) != header {
			t.Errorf("%q names %q", header, kid)
		}
	})
}
