package identity

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newJoin returns the request of a machine with a new token of f.
func newJoin(t testing.TB, f *File, at string) *Join {
	t.Helper()
	token, err := f.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJoin(token, address(t, at), "1.2.3", start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// admit returns the file of a node that has joined by f.
func admit(t testing.TB, f *File, at string) *File {
	t.Helper()
	j := newJoin(t, f, at)
	response, err := f.Admit(j.Request, start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	joined, err := j.Accept(response, 0, start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// TestJoin admits a node, and a third one by the second. The messages pass through JSON.
func TestJoin(t *testing.T) {
	first := create(t, "10.0.0.5:7000")
	first.Cluster.EtcdID, first.EtcdStarted = 7, true
	second := admit(t, first, "node2.example:7000")
	j := newJoin(t, second, "[fd00::7]:7000")
	text, err := json.Marshal(j.Request)
	if err != nil {
		t.Fatal(err)
	}
	var request JoinRequest
	if err := json.Unmarshal(text, &request); err != nil || !cmp.Equal(request, j.Request) {
		t.Fatalf("request: %v, %s", err, cmp.Diff(request, j.Request))
	}
	sent, err := second.Admit(request, start.Add(time.Second), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(sent); err != nil {
		t.Fatal(err)
	}
	var response JoinResponse
	if err := json.Unmarshal(text, &response); err != nil || !cmp.Equal(response, sent) {
		t.Fatalf("response: %v, %s", err, cmp.Diff(response, sent))
	}
	third, err := j.Accept(response, 1<<30, start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(third.Cluster, first.Cluster) || third.EtcdStarted || third.BlobCache != 1<<30 || third.Node.ID == second.Node.ID {
		t.Errorf("the third node's file: %+v", third)
	}
	if want := []Node{first.Node, second.Node}; !cmp.Equal(third.Peers, want) {
		t.Errorf("peers %v, want %v", third.Peers, want)
	}
	dir := t.TempDir()
	if err := third.Save(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(dir); err != nil || !cmp.Equal(got, third) {
		t.Errorf("Load: %v, %s", err, cmp.Diff(third, got))
	}
}

func TestAdmitRefuses(t *testing.T) {
	f := create(t, "10.0.0.5:7000")
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(x25519.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*JoinRequest){
		"no address": func(r *JoinRequest) { r.Address = Address{} }, "host": func(r *JoinRequest) { r.Address.Host = "*.example" },
		"no key": func(r *JoinRequest) { r.PublicKey = nil }, "damaged key": func(r *JoinRequest) { r.PublicKey = r.PublicKey[1:] },
		"another kind of key": func(r *JoinRequest) { r.PublicKey = other }, "no clock": func(r *JoinRequest) { r.Now = time.Time{} },
		"slow clock": func(r *JoinRequest) { r.Now = start.Add(-61 * time.Second) },
		"fast clock": func(r *JoinRequest) { r.Now = start.Add(61 * time.Second) },
	} {
		r := newJoin(t, f, "10.0.0.6:7000").Request
		change(&r)
		if response, err := f.Admit(r, start, rand.Reader); err == nil || !cmp.Equal(response, JoinResponse{}) {
			t.Errorf("%s: Admit = %v, %v", name, response, err)
		}
	}
	if _, err := NewJoin(Token{}, Address{}, "1", start, rand.Reader); err == nil {
		t.Error("a request without an address")
	}
}

func TestAcceptRefuses(t *testing.T) {
	f, other := create(t, "10.0.0.5:7000"), create(t, "10.0.0.5:7000")
	j, second := newJoin(t, f, "10.0.0.6:7000"), newJoin(t, f, "10.0.0.6:7000")
	for name, respond := range map[string]func() (JoinResponse, error){
		"another cluster": func() (JoinResponse, error) { return other.Admit(j.Request, start, rand.Reader) },
		"another key":     func() (JoinResponse, error) { return f.Admit(second.Request, start, rand.Reader) },
		"another address": func() (JoinResponse, error) {
			r := j.Request
			r.Address.Host = "10.0.0.7"
			return f.Admit(r, start, rand.Reader)
		},
		"another ID": func() (JoinResponse, error) {
			r, err := f.Admit(j.Request, start, rand.Reader)
			r.NodeID = f.Node.ID
			return r, err
		},
		"nothing": func() (JoinResponse, error) { return JoinResponse{}, nil },
	} {
		response, err := respond()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := j.Accept(response, 0, start, rand.Reader); err == nil || got != nil {
			t.Errorf("%s: Accept = %v, %v", name, got, err)
		} else if name == "another cluster" && !errors.Is(err, ErrAuthority) {
			t.Errorf("%s: %v, want ErrAuthority", name, err)
		}
	}
}

func TestCheckClock(t *testing.T) {
	for difference, good := range map[time.Duration]bool{
		0: true, time.Minute: true, -time.Minute: true, time.Minute + 1: false, -time.Minute - 1: false, time.Hour: false,
	} {
		if err := CheckClock(start.Add(difference), start); (err == nil) != good {
			t.Errorf("a difference of %s: %v, want good: %v", difference, err, good)
		}
	}
	err := CheckClock(start.Add(-90*time.Second), start)
	for _, want := range []string{"1m30s", "2026-11-21 11:58:30", "2026-11-21 12:00:00", "NTP"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if CheckClock(time.Time{}, start) == nil || CheckClock(time.Unix(1<<60, 0), start) == nil {
		t.Error("accepted a clock that is centuries off")
	}
}
