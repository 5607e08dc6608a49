package feed

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
)

// An edge signs each request with its key. It signs
//
//	sightline edge 1 LF method LF path ? query LF milliseconds since 1970 LF SHA-256 of the body in hex
//
// and sends
//
//	Authorization: Edge ID MILLISECONDS SIGNATURE
//
// where the signature is Ed25519 in hex. It is valid for five minutes on each side of the origin's clock. A recorded request that is sent
// again within that time gets an answer, but changes nothing, since each operation is accepted only once.
//
// The origin cannot check this signature before it has read the body. So a request with a body also has the header Sync-Head, a signature of
//
//	sightline edge head 1 LF method LF path ? query LF milliseconds since 1970 LF Content-Length
const (
	edgeScheme = "Edge"
	edgeSkew   = 5 * time.Minute
	signedAs   = "sightline edge 1"
	headAs     = "sightline edge head 1"
	enrolledAs = "sightline enrol 1"
)

// Sign returns the Authorization header of an edge's request. path is relative to the origin's URL, as sent. For a HEAD, Sign signs a GET.
func Sign(key ed25519.PrivateKey, id string, now time.Time, method, path, query string, body []byte) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return edgeScheme + " " + id + " " + at + " " + hex.EncodeToString(ed25519.Sign(key, signedText(at, method, path, query, body)))
}

// SignHead returns the Sync-Head header of an edge's request with a body of length bytes. The other parameters are those of Sign.
func SignHead(key ed25519.PrivateKey, now time.Time, method, path, query string, length int) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return hex.EncodeToString(ed25519.Sign(key, headText(at, method, path, query, strconv.Itoa(length))))
}

// signedText returns the signed text of a request.
func signedText(at, method, path, query string, body []byte) []byte {
	if method == "HEAD" {
		method = "GET"
	}
	sum := sha256.Sum256(body)
	return []byte(signedAs + "\n" + method + "\n" + path + "?" + query + "\n" + at + "\n" + hex.EncodeToString(sum[:]))
}

// headText returns the text that a Sync-Head header signs.
func headText(at, method, path, query, length string) []byte {
	return []byte(headAs + "\n" + method + "\n" + path + "?" + query + "\n" + at + "\n" + length)
}

// edgeOf returns the id of the edge in an Authorization header. ok is false if the header has another scheme.
func edgeOf(authorization string) (id string, ok bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	id, _, _ = strings.Cut(rest, " ")
	return id, strings.EqualFold(scheme, edgeScheme)
}

// isSignedBy reports whether the owner of a key signed a request, at a time near now.
func isSignedBy(key [32]byte, r *api.Request, now time.Time) bool {
	if key == [32]byte{} || !signedAt(r, now) {
		return false
	}
	parts := strings.Fields(r.Authorization)
	signature, err := hex.DecodeString(parts[3])
	return err == nil && ed25519.Verify(key[:], signedText(parts[2], r.Method, r.Path, r.Query, r.Body), signature)
}

// isHeadSignedBy reports whether the owner of a key signed the head of a request whose header signedAt has checked.
func isHeadSignedBy(key [32]byte, r *api.Request, length, signature string) bool {
	at := strings.Fields(r.Authorization)[2]
	b, err := hex.DecodeString(signature)
	return err == nil && key != [32]byte{} && ed25519.Verify(key[:], headText(at, r.Method, r.Path, r.Query, length), b)
}

// signedAt reports whether a request has a signature header with a time near now. It does not verify the signature.
func signedAt(r *api.Request, now time.Time) bool {
	parts := strings.Fields(r.Authorization)
	if len(parts) != 4 {
		return false
	}
	at, err := strconv.ParseInt(parts[2], 10, 64)
	return err == nil && now.Sub(time.UnixMilli(at)).Abs() <= edgeSkew
}

// enrolment is the body of POST /v2/sync/enrol.
type enrolment struct {
	Token     string `json:"token"`
	Key       string `json:"key"`       // 64 hex digits
	Signature string `json:"signature"` // 128 hex digits, of enrolledAs LF token
}

// Enrolment returns the body of POST /v2/sync/enrol: the token that the operator got, and the edge's public key, with a signature that
// proves the possession of the private key.
func Enrolment(key ed25519.PrivateKey, token string) []byte {
	body, err := json.Marshal(enrolment{
		Token: token, Key: hex.EncodeToString(key.Public().(ed25519.PublicKey)),
		Signature: hex.EncodeToString(ed25519.Sign(key, []byte(enrolledAs+"\n"+token))),
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return body
}

// EnrolReply is the answer to an Enrolment.
type EnrolReply struct {
	Edge struct {
		ID   string   `json:"id"`
		Name string   `json:"name"`
		Site uint32   `json:"site"`
		Apps []string `json:"apps"`
	} `json:"edge"`
	Status struct {
		Code        int    `json:"code"`
		Description string `json:"description"`
	} `json:"status"`
}

// enrol gives an edge its site. The token is the only credential: it has 256 random bits, and attempts are limited per remote address.
func (c *call) enrol() (api.Response, error) {
	if err := c.f.meters.enrols.take("enrol "+c.r.Remote, 1, c.now, "enrolments"); err != nil {
		return api.Response{}, err
	}
	body, err := c.body(4096, "EnrolBytes")
	if err != nil {
		return api.Response{}, err
	}
	var m enrolment
	if err := json.Unmarshal(body, &m); err != nil {
		return api.Response{}, malformedError("an enrolment must be a JSON object with token, key and signature")
	}
	key, keyErr := hex.DecodeString(m.Key)
	signature, sigErr := hex.DecodeString(m.Signature)
	if keyErr != nil || sigErr != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(enrolledAs+"\n"+m.Token), signature) {
		return api.Response{}, malformedError("the signature of the token does not match the key")
	}
	e, err := c.f.o.Register.EnrolEdge(c.ctx, m.Token, [32]byte(key))
	if errors.Is(err, register.ErrEnrol) {
		return api.Response{}, fmt.Errorf("%w: %w", auth.ErrToken, err)
	}
	if err != nil {
		return api.Response{}, err
	}
	var out EnrolReply
	out.Edge.ID, out.Edge.Name, out.Edge.Site, out.Edge.Apps = e.ID, e.Name, uint32(e.Site), e.Apps
	out.Status.Code, out.Status.Description = 10000, "Ok"
	answer, err := json.Marshal(out)
	if err != nil {
		return api.Response{}, fmt.Errorf("%w: %w", api.ErrInternal, err)
	}
	return api.Response{Status: 200, ContentType: "application/json; charset=UTF-8", Body: answer}, nil
}
