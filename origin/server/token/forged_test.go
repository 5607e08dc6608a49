package token

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/testkit"
)

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func sign(header, payload string, private ed25519.PrivateKey) string {
	text := encode([]byte(header)) + "." + encode([]byte(payload))
	return text + "." + encode(ed25519.Sign(private, []byte(text)))
}

// payloadOf returns the decoded payload of a token. The caller may change it.
func payloadOf(t testing.TB, token string) map[string]any {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// forge returns a token with changed claims, signed with the server's own key.
func forge(t testing.TB, tokens *Tokens, change func(map[string]any)) string {
	t.Helper()
	payload := payloadOf(t, issue(t, tokens))
	change(payload)
	k := &tokens.ring.Load().keys[0]
	return sign(headerOf(k.ID), text(payload), k.private)
}

func headerOf(kid string) string { return fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":"JWT"}`, kid) }

// forger has the public data of a server: its published keys and tokens of one application. It also has its own key.
type forger struct {
	*rand.Rand
	good   []string // valid tokens of the forger's application
	kid    string   // ID of the key that signed them
	other  string   // ID of another published key
	public ed25519.PublicKey
	own    ed25519.PrivateKey
}

func (f *forger) token() string { return f.good[f.IntN(len(f.good))] }

func (f *forger) parts() (header, payload, signature string) {
	p := strings.Split(f.token(), ".")
	return p[0], p[1], p[2]
}

// raise returns a payload that would give its forger more rights.
func (f *forger) raise(t testing.TB) string {
	p := payloadOf(t, f.token())
	switch f.IntN(8) {
	case 0:
		p["sub"] = hex.EncodeToString([]byte(fmt.Sprintf("%016x", f.Uint64())))
	case 1:
		p["exp"] = f.Int64N(1 << 40)
	case 2:
		p["gen"] = f.Uint64()
	case 3:
		p["nbf"] = 0
	case 4:
		p["iss"] = "https://sightline.example.evil"
	case 5:
		p["aud"] = []string{someone.App, "other"}
	case 6:
		p["scope"] = "All"
	case 7:
		delete(p, [...]string{"exp", "nbf", "aud", "iss", "sub", "client_id", "gen", "jti"}[f.IntN(8)])
	}
	return text(p)
}

// header returns a header that could mislead a library.
func (f *forger) header() string {
	alg := [...]string{"none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS256", "ES256", "PS256", "EdDSA", "eddsa", "Ed25519", "Ed448"}[f.IntN(15)]
	kid := [...]string{f.kid, f.other, "", "0", "../../../../dev/null", "' OR 1=1 --", f.kid + " ", strings.ToUpper(f.kid), f.kid[:15]}[f.IntN(9)]
	jwk := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q}`, encode(f.own.Public().(ed25519.PublicKey)))
	switch f.IntN(12) {
	case 0:
		return fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, alg)
	case 1:
		return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, kid)
	case 2:
		return fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":%q}`, kid, [...]string{"jwt", "at+jwt", "JOSE", "", "JWS"}[f.IntN(5)])
	case 3:
		return fmt.Sprintf(`{"alg":"EdDSA","jwk":%s,"kid":%q,"typ":"JWT"}`, jwk, kid)
	case 4:
		return fmt.Sprintf(`{"alg":"EdDSA","jku":"https://evil.example/jwks.json","kid":%q,"typ":"JWT"}`, kid)
	case 5:
		return fmt.Sprintf(`{"alg":"EdDSA","x5u":"https://evil.example/c","x5c":["AAAA"],"kid":%q,"typ":"JWT"}`, kid)
	case 6:
		return fmt.Sprintf(`{"alg":"EdDSA","alg":%q,"kid":%q,"typ":"JWT"}`, alg, kid)
	case 7:
		return fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"kid":%q,"typ":"JWT"}`, f.kid, f.other)
	case 8:
		return fmt.Sprintf(` { "alg" : "EdDSA", "kid" : %q, "typ" : "JWT" } `, kid)
	case 9:
		return fmt.Sprintf(`{"typ":"JWT","alg":"EdDSA","kid":%q}`, kid)
	case 10:
		return fmt.Sprintf(`{"alg":"EdDSA","b64":false,"crit":["b64"],"kid":%q,"typ":"JWT"}`, kid)
	}
	return fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":"JWT","pad":%q}`, kid, strings.Repeat("a", f.IntN(1<<14)))
}

// signHMAC signs with HMAC. Its secret is the server's published key, in each form that a library might use as a secret.
func (f *forger) signHMAC(text string) string {
	der, err := x509.MarshalPKIXPublicKey(f.public)
	if err != nil {
		panic(err)
	}
	secret := [][]byte{f.public, []byte(encode(f.public)), der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), {}, []byte("secret")}[f.IntN(6)]
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(text))
	return encode(h.Sum(nil))
}

// damage changes a text in up to three places.
func (f *forger) damage(token string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := []byte(token)
	for range 1 + f.IntN(3) {
		i := f.IntN(len(b))
		switch f.IntN(5) {
		case 0:
			b[i] = letters[f.IntN(64)]
		case 1:
			b = append(b[:i], b[i+1:]...)
		case 2:
			b = append(b[:i], append([]byte{letters[f.IntN(64)]}, b[i:]...)...)
		case 3:
			b[i] = byte(f.IntN(256))
		case 4:
			j := f.IntN(len(b))
			b[i], b[j] = b[j], b[i]
		}
	}
	return string(b)
}

// variation returns a token that the server has not issued, and the kind of its change.
func (f *forger) variation(t testing.TB) (kind, token string) {
	header, payload, signature := f.parts()
	switch f.IntN(16) {
	case 0:
		h := f.header()
		return "header unsigned", encode([]byte(h)) + "." + payload + "." + [...]string{"", signature, "AAAA"}[f.IntN(3)]
	case 1:
		text := encode([]byte(f.header())) + "." + encode([]byte(f.raise(t)))
		return "HMAC under the public key", text + "." + f.signHMAC(text)
	case 2:
		return "another key", sign(headerOf(f.kid), f.raise(t), f.own)
	case 3:
		return "another key and header", sign(f.header(), f.raise(t), f.own)
	case 4:
		return "swapped kid", encode([]byte(headerOf(f.other))) + "." + payload + "." + signature
	case 5:
		return "changed claims", header + "." + encode([]byte(f.raise(t))) + "." + signature
	case 6:
		token := f.token()
		return "truncated", token[:f.IntN(len(token))]
	case 7:
		return "extra parts", f.token() + strings.Repeat("."+[...]string{"", signature, "a"}[f.IntN(3)], 1+f.IntN(100))
	case 8:
		return "huge", strings.Repeat([...]string{header, ".", "a", "e30."}[f.IntN(4)], 1+f.IntN(500)) + "." + payload + "." + signature
	case 9:
		p, _ := base64.RawURLEncoding.DecodeString(payload)
		doubled := strings.Replace(string(p), "{", fmt.Sprintf(`{"sub":%q,`, "00000000000000000000000000000000"), 1)
		if f.IntN(2) == 0 {
			doubled = strings.TrimSuffix(string(p), "}") + `,"sub":"00000000000000000000000000000000"}`
		}
		return "doubled member", header + "." + encode([]byte(doubled)) + "." + signature
	case 10:
		return "padded", [...]string{
			header + "=." + payload + "." + signature, header + "." + payload + "=." + signature, header + "." + payload + "." + signature + "==",
			strings.ReplaceAll(f.token(), ".", "=."),
		}[f.IntN(4)]
	case 11: // the last letter of a signature has four unused bits
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		last := strings.IndexByte(letters, signature[85])
		return "bits that say nothing", header + "." + payload + "." + signature[:85] + string(letters[last&^15|(last+1+f.IntN(15))&15])
	case 12:
		space := [...]string{" ", "\n", "\r\n", "\t", "\x00", "\u00a0"}[f.IntN(6)]
		token := f.token()
		i := f.IntN(len(token) + 1)
		return "space", token[:i] + space + token[i:]
	case 13: // adding the order of the group to S gives a signature that a careless verifier accepts
		s, _ := base64.RawURLEncoding.DecodeString(signature)
		order := [32]byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
		carry := 0
		for i := range 32 {
			carry += int(s[32+i]) + int(order[i])
			s[32+i] = byte(carry)
			carry >>= 8
		}
		return "other form of the signature", header + "." + payload + "." + encode(s)
	case 14:
		_, p2, _ := f.parts()
		h2, _, s2 := f.parts()
		return "parts of two", h2 + "." + p2 + "." + s2
	}
	return "damaged", f.damage(f.token())
}

// TestForgedTokens reads random changes of tokens. Read accepts only issued tokens, and gives no reason for refusing another.
func TestForgedTokens(t *testing.T) {
	w := newWorld(t, 20)
	tokens := w.open(t, nil)
	issued := map[string]bool{}
	f := &forger{own: ed25519.NewKeyFromSeed(make([]byte, 32))}
	issue(t, tokens)
	w.now = w.now.Add(turnAfter)
	for range 20 {
		token := issue(t, tokens)
		issued[token] = true
		f.good = append(f.good, token)
	}
	keys := tokens.ring.Load().keys
	f.kid, f.other, f.public = keys[0].ID, keys[1].ID, keys[0].private.Public().(ed25519.PublicKey)

	from, rounds := testkit.Rounds(t, 2000, 100_000)
	accepted, kinds := 0, map[string]int{}
	for seed := from; seed < from+uint64(rounds); seed++ {
		f.Rand = rand.New(rand.NewPCG(seed, 20))
		kind, token := f.variation(t)
		kinds[kind]++
		c, err := tokens.Read(token)
		switch {
		case issued[token]: // the change had no effect
			if err != nil {
				t.Errorf("seed %d: an issued token: %v", seed, err)
			}
		case err == nil:
			accepted++
			t.Errorf("seed %d: %s: %q is read as %+v", seed, kind, token, c)
		case !errors.Is(err, auth.ErrToken):
			t.Errorf("seed %d: %s: %v, want ErrToken: who forges learns nothing", seed, kind, err)
		}
	}
	if len(kinds) != 16 && rounds >= 1000 {
		t.Errorf("%d kinds of variations, want 16: %v", len(kinds), kinds)
	}
	t.Logf("seeds %d to %d, %d accepted, %v", from, from+uint64(rounds)-1, accepted, kinds)
}

// TestWrongClaimsAreRefused reads tokens that only an error of the server or a stolen key could sign.
func TestWrongClaimsAreRefused(t *testing.T) {
	w := newWorld(t, 21)
	tokens := w.open(t, nil)
	issue(t, tokens)
	now := w.now.Unix()
	const maxSeconds = int64(49*time.Hour+time.Minute) / int64(time.Second)
	for _, tt := range []struct {
		name   string
		change func(map[string]any)
		want   error
	}{
		{"as it was", func(map[string]any) {}, nil},
		{"expires now", func(c map[string]any) { c["exp"] = now }, auth.ErrExpired},
		{"expires in a second", func(c map[string]any) { c["exp"] = now + 1 }, nil},
		{"no exp", func(c map[string]any) { delete(c, "exp") }, auth.ErrToken},
		{"exp null", func(c map[string]any) { c["exp"] = nil }, auth.ErrToken},
		{"exp as text", func(c map[string]any) { c["exp"] = fmt.Sprint(now + 60) }, nil},
		{"exp past all years", func(c map[string]any) { c["exp"] = json.Number("1e400") }, auth.ErrToken},
		{"exp long ago", func(c map[string]any) { c["exp"], c["iat"] = 60, 0 }, auth.ErrExpired},
		{"exp before iat", func(c map[string]any) { c["exp"] = -1 }, auth.ErrExpired},
		{"valid now", func(c map[string]any) { c["nbf"] = now }, nil},
		{"valid in a second", func(c map[string]any) { c["nbf"] = now + 1 }, auth.ErrToken},
		{"no nbf", func(c map[string]any) { delete(c, "nbf") }, auth.ErrToken},
		{"expired, and not valid yet", func(c map[string]any) { c["exp"], c["nbf"] = now-1, now+1 }, auth.ErrToken},
		{"the longest life", func(c map[string]any) { c["exp"] = now + maxSeconds }, nil},
		{"a longer life", func(c map[string]any) { c["exp"] = now + maxSeconds + 1 }, auth.ErrToken},
		{"a longer life from its issue", func(c map[string]any) { c["iat"], c["exp"] = now-3600, now-3600+maxSeconds+1 }, auth.ErrToken},
		{"a longer life from now", func(c map[string]any) { c["iat"], c["exp"] = now+3600, now+maxSeconds+1 }, auth.ErrToken},
		{"expired after a longer life", func(c map[string]any) { c["iat"], c["exp"] = now-maxSeconds-2, now-1 }, auth.ErrToken},
		{"no iat", func(c map[string]any) { delete(c, "iat") }, auth.ErrToken},
		{"iat null", func(c map[string]any) { c["iat"] = nil }, auth.ErrToken},
		{"iat past all years", func(c map[string]any) { c["iat"] = json.Number("1e400") }, auth.ErrToken},
		{"iat before all years", func(c map[string]any) { c["iat"] = json.Number("-1e18") }, auth.ErrToken},
		{"expired, of another issuer", func(c map[string]any) { c["exp"], c["iss"] = now-1, "x" }, auth.ErrToken},
		{"another issuer", func(c map[string]any) { c["iss"] = "https://sightline.example/" }, auth.ErrToken},
		{"no issuer", func(c map[string]any) { delete(c, "iss") }, auth.ErrToken},
		{"another audience", func(c map[string]any) { c["aud"] = "other" }, auth.ErrToken},
		{"audience as a text", func(c map[string]any) { c["aud"] = c["sub"] }, nil},
		{"several audiences", func(c map[string]any) { c["aud"] = []any{c["sub"], "other"} }, auth.ErrToken},
		{"the server for an audience", func(c map[string]any) { c["aud"] = "sightline" }, auth.ErrToken},
		{"another application's audience", func(c map[string]any) { c["sub"] = "00000000000000000000000000000001" }, auth.ErrToken},
		{"no audience", func(c map[string]any) { delete(c, "aud") }, auth.ErrToken},
		{"audience in capitals", func(c map[string]any) { c["aud"] = strings.ToUpper(c["sub"].(string)) }, auth.ErrToken},
		{"no application", func(c map[string]any) { delete(c, "sub") }, auth.ErrToken},
		{"no client", func(c map[string]any) { delete(c, "client_id") }, auth.ErrToken},
		{"no id", func(c map[string]any) { delete(c, "jti") }, auth.ErrToken},
		{"application as a list", func(c map[string]any) { c["sub"] = []string{"a"} }, auth.ErrToken},
		{"generation negative", func(c map[string]any) { c["gen"] = -1 }, auth.ErrToken},
		{"generation a fraction", func(c map[string]any) { c["gen"] = 1.5 }, auth.ErrToken},
	} {
		if _, err := tokens.Read(forge(t, tokens, tt.change)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	k := &tokens.ring.Load().keys[0]
	for name, token := range map[string]string{
		"no JSON":        sign(headerOf(k.ID), "no JSON", k.private),
		"a list":         sign(headerOf(k.ID), "[]", k.private),
		"nothing":        sign(headerOf(k.ID), "", k.private),
		"typ in small":   sign(strings.Replace(headerOf(k.ID), "JWT", "jwt", 1), text(payloadOf(t, issue(t, tokens))), k.private),
		"another order":  sign(fmt.Sprintf(`{"kid":%q,"alg":"EdDSA","typ":"JWT"}`, k.ID), text(payloadOf(t, issue(t, tokens))), k.private),
		"one more field": sign(strings.Replace(headerOf(k.ID), "{", `{"a":1,`, 1), text(payloadOf(t, issue(t, tokens))), k.private),
	} {
		if _, err := tokens.Read(token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: %v, want ErrToken", name, err)
		}
	}
}

// TestIndependentLibraryReadsTokens verifies the tokens with the published keys and an independent library.
func TestIndependentLibraryReadsTokens(t *testing.T) {
	w := newWorld(t, 22)
	tokens := w.open(t, nil)
	token := issue(t, tokens)
	var set struct {
		Keys []struct{ Kty, Crv, Alg, Use, Kid, X, D string }
	}
	if err := json.Unmarshal(tokens.ring.Load().public, &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("the published keys are %s, %v", tokens.ring.Load().public, err)
	}
	k := set.Keys[0]
	if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Alg != "EdDSA" || k.Use != "sig" || k.D != "" {
		t.Errorf("the published key is %+v", k)
	}
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil {
		t.Fatal(err)
	}
	read, err := jwt.Parse(token, func(read *jwt.Token) (any, error) {
		if read.Header["kid"] != k.Kid {
			return nil, errors.New("another key")
		}
		return ed25519.PublicKey(x), nil
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithTimeFunc(func() time.Time { return w.now }), jwt.WithIssuedAt())
	if err != nil || !read.Valid {
		t.Errorf("another library reads %v, %v", read, err)
	}
}

// FuzzToken checks that Read accepts only the issued token.
func FuzzToken(f *testing.F) {
	w := newWorld(f, 23)
	tokens := w.open(f, nil)
	token := issue(f, tokens)
	f.Add(token)
	f.Add(token + "=")
	f.Add(strings.Replace(token, ".", "..", 1))
	f.Add(encode([]byte(`{"alg":"none"}`)) + "." + strings.Split(token, ".")[1] + ".")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := tokens.Read(text); (err == nil) != (text == token) {
			t.Fatalf("Read(%q) = %+v, %v", text, c, err)
		}
	})
}
