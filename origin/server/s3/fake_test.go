package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/s3"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// fake returns a store whose server is a function.
func fake(t *testing.T, answer http.HandlerFunc) *s3.Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	at, err := s3.ParseLocation(server.URL + "/sightline")
	if err != nil {
		t.Fatal(err)
	}
	return open(t, s3.Options{
		Location: at, Credentials: s3.Credentials{AccessKey: "key", Secret: "secret"}, Region: "us-east-1",
		Resolve: system.Resolve, Dial: system.Dial, Now: system.Now,
	})
}

// TestRefusals checks the text of each refusal of a server that real servers give for a setting, and that one request is enough for it.
func TestRefusals(t *testing.T) {
	for code, tt := range map[string]struct {
		status int
		want   string
	}{
		"NoSuchBucket":          {404, "does not exist: create it first"},
		"AccessDenied":          {403, "allow the access key to get, put, delete and list"},
		"InvalidAccessKeyId":    {403, "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or --s3-credentials FILE"},
		"SignatureDoesNotMatch": {403, "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or --s3-credentials FILE"},
		"RequestTimeTooSkewed":  {403, "refuses this machine's clock: set the clock"},
		"MethodNotAllowed":      {405, "refuses the request"},
	} {
		requests := 0
		s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.WriteHeader(tt.status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>it is so</Message></Error>", code)
		})
		err := s.Claim(t.Context(), "c1")
		if !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || requests != 1 {
			t.Errorf("%s: Claim = %v after %d requests, want %q", code, err, requests, tt.want)
		}
		if _, err := s.Get(t.Context(), blob.Hash{}); !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: Get = %v, want ErrUnavailable", code, err)
		}
	}
}

// TestCutAnswer cuts the first answer within the picture. The store reads it once more.
func TestCutAnswer(t *testing.T) {
	data := []byte(strings.Repeat("picture", 1000))
	cuts := 1
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Header().Set("Last-Modified", "Sat, 01 Jul 2017 12:00:00 GMT")
		if cuts--; cuts >= 0 {
			_, _ = w.Write(data[:100])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(data)
	})
	check(t, s, data)
	cuts = 2
	if _, err := s.Get(t.Context(), blob.Sum(data)); !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Get of an answer that is cut twice = %v, want ErrUnavailable", err)
	}
}

// TestRetries answers with an error that may pass. The store sends four requests.
func TestRetries(t *testing.T) {
	var requests atomic.Int32
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if err := s.Delete(t.Context(), blob.Hash{}); !errors.Is(err, blob.ErrUnavailable) || requests.Load() != 4 {
		t.Errorf("Delete = %v after %d requests, want ErrUnavailable after 4", err, requests.Load())
	}
}

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]s3.Location{
		"http://127.0.0.1:7070/sightline":    {Host: "127.0.0.1:7070", Bucket: "sightline"},
		"https://s3.example.com/pictures-1/": {Host: "s3.example.com", Bucket: "pictures-1", Secure: true},
		"https://[::1]:9000/sightline":       {Host: "[::1]:9000", Bucket: "sightline", Secure: true},
	} {
		got, err := s3.ParseLocation(text)
		if got != want || err != nil {
			t.Errorf("ParseLocation(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := s3.ParseLocation(got.String()); again != want || err != nil {
			t.Errorf("ParseLocation(%q) = %+v, %v, want %+v", got, again, err, want)
		}
	}
	for text, want := range map[string]string{
		"http://AKIA:hush@h/b":    "the S3 URL has credentials: remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or --s3-credentials FILE",
		"http://AKIA:hush%zz@h/b": "cannot be read",
		"http://127.0.0.1:7070":   "has no bucket",
		"http://127.0.0.1:7070/":  "has no bucket",
		"http://h/b/prefix":       "has a path below the bucket",
		"s3://sightline":          "is not supported",
		"127.0.0.1:7070/b":        "cannot be read",
		"h/b":                     "is not supported",
		"":                        "is not supported",
		"https:///bucket":         "is not supported",
		"http://h/bkt?x=hush":     "is not supported",
		"http://h/Bucket":         `allows no bucket with the name "Bucket"`,
		"http://h/ab":             `allows no bucket with the name "ab"`,
	} {
		_, err := s3.ParseLocation(text)
		if !errors.Is(err, s3.ErrLocation) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("ParseLocation(%q) = %v, want %q without a secret", text, err, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	variables := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_SESSION_TOKEN": "t"}
	lookup := func(name string) string { return variables[name] }
	c, err := s3.EnvCredentials(lookup)
	if want := (s3.Credentials{AccessKey: "a", Secret: "hush", Session: "t"}); c != want || err != nil {
		t.Errorf("EnvCredentials = %v, %v", c, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "hush") {
		t.Errorf("the printed credentials are %s", text)
	}
	delete(variables, "AWS_SECRET_ACCESS_KEY")
	_, err = s3.EnvCredentials(lookup)
	if !errors.Is(err, s3.ErrLocation) || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") {
		t.Errorf("EnvCredentials without a secret = %v", err)
	}

	name := filepath.Join(t.TempDir(), "credentials")
	for text, want := range map[string]string{
		"[default]\naws_access_key_id = a\naws_secret_access_key = hush\n\n[other]\naws_access_key_id = b\n": "",
		"[default]\naws_access_key_id = a\n":                      "has no section [default]",
		"[other]\naws_access_key_id=a\naws_secret_access_key=s\n": "has no section [default]",
		"[default]\nhush hush\n":                                  "has no section [default]",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := s3.FileCredentials(name)
		if want == "" && (c != s3.Credentials{AccessKey: "a", Secret: "hush"} || err != nil) {
			t.Errorf("FileCredentials = %v, %v", c, err)
		}
		if want != "" && (!errors.Is(err, s3.ErrLocation) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("FileCredentials of %q = %v, want %q", text, err, want)
		}
	}
	for _, missing := range []string{"", name + "-missing"} {
		if _, err := s3.FileCredentials(missing); !errors.Is(err, s3.ErrLocation) {
			t.Errorf("FileCredentials(%q) = %v, want ErrLocation", missing, err)
		}
	}
}
