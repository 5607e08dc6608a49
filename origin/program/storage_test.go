package program

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

// TestStorageOfAccounts fills the storage of an account without a verified email address. The account's page shows its use and its limits,
// also after a restart.
func TestStorageOfAccounts(t *testing.T) {
	s := testSettings(t)
	s.Options = (&origin{people: peopleSettings{unverified: account.Storage{Inputs: 3, Bytes: 1 << 20}}}).options()
	srv, base := startOrigin(t, s)
	op := visit(t, base)
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	if a := op.must("GET", "/session", nil).Session.Account; a.Inputs != nil || a.InputsLimit != nil || a.Bytes != nil || a.BytesLimit != nil {
		t.Errorf("the operator has limits of storage: %+v", a)
	}
	ada := visit(t, base)
	ada.must("POST", "/accounts", cli.Object{"name": "Ada", "email": "ada@x.example", "password": aPassword})
	newApp := ada.must("POST", "/apps", cli.Object{"name": "Birds", "language": "en", "default_model": ""})
	key := ada.must("POST", "/apps/"+newApp.App.ID+"/keys", cli.Object{"description": "camera", "scopes": []string{"All"}}).Key.Key
	add := func(pictures ...[]byte) (int, string) {
		t.Helper()
		req, err := http.NewRequest("POST", base+"/v2/inputs", bytes.NewReader(byBase64(pictures...)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Key "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if code, body := add(dots(t, 1, 64), dots(t, 2, 64)); code != 200 {
		t.Fatalf("two inputs of three = %d %s", code, body)
	}
	const over = `"code":11006,"description":"Account limits exceeded","details":"Storage limit: the account may store 3 inputs; verify its email address to store more, or delete inputs."`
	if code, body := add(dots(t, 3, 64), dots(t, 4, 64)); code != 207 || strings.Count(body, over) != 1 {
		t.Errorf("two more = %d %s", code, body)
	}
	checkUsage := func() {
		t.Helper()
		a := ada.must("GET", "/session", nil).Session.Account
		if a.Inputs == nil || *a.Inputs != 3 || *a.InputsLimit != 3 || *a.Bytes < 3*64 || *a.BytesLimit != 1<<20 {
			t.Errorf("the page shows %+v", a)
		}
	}
	checkUsage()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	_, base = startOrigin(t, s)
	ada.base = base
	checkUsage()
	if code, body := add(dots(t, 5, 64)); code != 400 || strings.Count(body, over) != 1 {
		t.Errorf("one more after a restart = %d %s", code, body)
	}
}

// TestSignUpsPerAddress limits sign-ups by the client address in the proxy's header, and IPv6 addresses by their /64 network. A registered
// email address gets the same answer as any other.
func TestSignUpsPerAddress(t *testing.T) {
	s := testSettings(t)
	s.BehindProxy = true
	s.Options = (&origin{people: peopleSettings{signUps: 2}}).options()
	srv, base := startOrigin(t, s)
	op := visit(t, base)
	op.remote = "192.0.2.1"
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	n := 0
	signUp := func(remote, email string) (int, string) {
		t.Helper()
		v := visit(t, base)
		v.remote = remote
		if n++; email == "" {
			email = fmt.Sprintf("a%d@x.example", n)
		}
		code, body := v.ask("POST", "/accounts", cli.Object{"name": "Ada", "email": email, "password": aPassword})
		return code, string(body)
	}
	for _, c := range []struct {
		remote string
		want   int
	}{
		{"198.51.100.7", 200},
		{"forged, 198.51.100.7", 200},
		{"203.0.113.9, 198.51.100.7", 429},
		{"198.51.100.8", 200},
		{"2001:db8:1:2::1", 200},
		{"2001:db8:1:2:ffff::1", 200},
		{"2001:db8:1:2:3:4:5:6", 429},
		{"2001:db8:1:3::1", 200},
	} {
		if code, body := signUp(c.remote, ""); code != c.want {
			t.Errorf("from %s = %d %s, want %d", c.remote, code, body, c.want)
		}
	}
	newCode, newBody := signUp("198.51.100.7", "")
	code, body := signUp("198.51.100.7", "op@x.example")
	if code != newCode || code != 429 || body != newBody {
		t.Errorf("a registered address = %d %s, another = %d %s", code, body, newCode, newBody)
	}
}

// TestStorageSettings reads the limits of storage, sign-ups and calls per second.
func TestStorageSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "5 {10000 524288000} {0 0} {100 1000}"},
		{[]string{"--sign-ups", "0", "--unverified-inputs", "0", "--unverified-storage", "0"}, "0 {0 0} {0 0} {100 1000}"},
		{[]string{"--verified-inputs", "7", "--verified-storage", "2GB"}, "5 {10000 524288000} {7 2147483648} {100 1000}"},
		{[]string{"--account-rate", "0.5", "--account-burst", "3"}, "5 {10000 524288000} {0 0} {0.5 3}"},
		{[]string{"--account-rate", "0"}, "5 {10000 524288000} {0 0} {-1 0}"},
		{[]string{"--sign-ups", "-1"}, "sign-ups"},
		{[]string{"--account-rate", "-1"}, "account-rate"},
		{[]string{"--account-burst", "0"}, "account-burst"},
		{[]string{"--unverified-inputs", "-1"}, "unverified-inputs"},
		{[]string{"--verified-storage", "much"}, "verified-storage"},
	} {
		var got string
		o, err := readOrigin(t, nil, c.args...)
		if err != nil {
			got = err.Error()
		} else {
			people := &o.people
			got = fmt.Sprint(people.signUps, people.unverified, people.verified, people.rate)
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want+":")) {
			t.Errorf("%v = %s, want %s", c.args, got, c.want)
		}
	}
}
