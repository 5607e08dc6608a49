package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func address(t testing.TB, text string) Address {
	t.Helper()
	a, err := ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func create(t testing.TB, at string) *File {
	t.Helper()
	f, err := Create(Options{Address: address(t, at), S3: "https://s3.example/bucket"}, start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of an empty folder: %v, want ErrNotExist", err)
	}
	if _, err := Load(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of a missing folder: %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load created the folder: %v", err)
	}
	f := create(t, "10.0.0.5:7000")
	f.Cluster.EtcdID, f.EtcdStarted, f.BlobCache = 0xcdf818194e3a8c32, true, 10<<30
	f.Peers = []Node{{"00000000000000aa", address(t, "node2.example:7000")}}
	for range 2 { // the second replaces the first
		if err := f.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(dir)
	if err != nil || !cmp.Equal(got, f) {
		t.Errorf("Load: %v, differs by %s", err, cmp.Diff(f, got))
	}
	if got.Cluster.Election() != DefaultElection {
		t.Errorf("election timeout %s, want %s", got.Cluster.Election(), DefaultElection)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, want one file", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || !strings.Contains(string(text), `"etcd_id": "cdf818194e3a8c32"`) || !strings.Contains(string(text), `"address": "10.0.0.5:7000"`) {
		t.Errorf("the file has other forms: %v\n%s", err, text)
	}
	if printed := fmt.Sprintf("%v %+v", *f, f); strings.Contains(printed, "PRIVATE") {
		t.Errorf("printing shows a key: %s", printed)
	}
}

func TestCreateRefuses(t *testing.T) {
	good := Options{Address: address(t, "10.0.0.5:7000"), S3: "https://s3.example/bucket"}
	for name, change := range map[string]func(*Options){
		"no address": func(o *Options) { o.Address = Address{} }, "port": func(o *Options) { o.Address.Port = 65535 },
		"upper case": func(o *Options) { o.Address.Host = "A" }, "no bucket": func(o *Options) { o.S3 = "" },
		"short election": func(o *Options) { o.Election = MinElection - time.Millisecond },
		"long election":  func(o *Options) { o.Election = time.Hour }, "cache": func(o *Options) { o.BlobCache = -1 },
	} {
		o := good
		change(&o)
		if _, err := Create(o, start, rand.Reader); err == nil {
			t.Errorf("%s: created", name)
		}
	}
	for _, n := range []int{0, 8, 16, 47} {
		if _, err := Create(good, start, bytes.NewReader(make([]byte, n))); err == nil {
			t.Errorf("created with %d random bytes", n)
		}
	}
}

// TestFileDamaged changes one field after the other. Save refuses to write the file, and Load names it.
func TestFileDamaged(t *testing.T) {
	good, other := create(t, "10.0.0.5:7000"), create(t, "10.0.0.5:7000")
	sibling := admit(t, good, "10.0.0.6:7000")
	changes := map[string]func(*File){
		"cluster":               func(f *File) { f.Cluster.ID = other.Cluster.ID },
		"cluster without an ID": func(f *File) { f.Cluster.ID = "" },
		"node":                  func(f *File) { f.Node.ID = other.Node.ID },
		"node's ID":             func(f *File) { f.Node.ID = strings.ToUpper(f.Node.ID) + "A" },
		"address":               func(f *File) { f.Node.Address = address(t, "10.0.0.7:7000") },
		"no address":            func(f *File) { f.Node.Address = Address{} },
		"bucket":                func(f *File) { f.Cluster.S3 = "" },
		"election":              func(f *File) { f.Cluster.ElectionMS = 0 },
		"key":                   func(f *File) { f.Cluster.Key = Secret{} },
		"cache":                 func(f *File) { f.BlobCache = -1 },
		"authority":             func(f *File) { f.Cluster.Authority = other.Cluster.Authority },
		"authority's key":       func(f *File) { f.Cluster.Authority.Key = other.Cluster.Authority.Key },
		"node as authority":     func(f *File) { f.Cluster.Authority = f.Certificate },
		"no authority":          func(f *File) { f.Cluster.Authority = KeyPair{} },
		"certificate":           func(f *File) { f.Certificate = other.Certificate },
		"another node":          func(f *File) { f.Certificate = sibling.Certificate },
		"key of another":        func(f *File) { f.Certificate.Key = sibling.Certificate.Key },
		"damaged key":           func(f *File) { f.Certificate.Key = encodePEM(keyBlock, []byte("secret")) },
		"two certificates":      func(f *File) { f.Certificate.Certificate += f.Operator.Certificate },
		"operator as node":      func(f *File) { f.Certificate = f.Operator },
		"node as operator":      func(f *File) { f.Operator = f.Certificate },
		"another operator":      func(f *File) { f.Operator = sibling.Operator },
		"peer":                  func(f *File) { f.Peers = []Node{{"x", f.Node.Address}} },
		"peer's address":        func(f *File) { f.Peers = []Node{{other.Node.ID, Address{}}} },
		"itself as a peer":      func(f *File) { f.Peers = []Node{f.Node} },
	}
	dir := t.TempDir()
	for name, change := range changes {
		f := *good
		change(&f)
		if err := f.Save(dir); err == nil {
			t.Errorf("%s: saved", name)
		}
		b, err := json.Marshal(content{fileVersion, f})
		if err != nil {
			t.Fatal(err)
		}
		wantDamaged(t, dir, name, b)
	}
	moved := *good
	moved.Cluster.ID = other.Cluster.ID
	if err := moved.Save(dir); err == nil || !strings.Contains(err.Error(), "authority: certificate belongs to another cluster") {
		t.Errorf("authority of another cluster: %v", err)
	}
	b, err := good.encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "null": "null", "list": "[]", "half": string(b[:len(b)/2]), "two": string(b) + string(b),
		"large":      string(b) + strings.Repeat(" ", maxFile),
		"no version": strings.Replace(string(b), `"version": 1`, `"version": 0`, 1), "field": strings.Replace(string(b), `{`, `{"x": 1,`, 1),
		"secret": strings.Replace(string(b), `"key": "`, `"key": "A`, 1), "text": strings.Replace(string(b), `"10.0.0.5:7000"`, `7000`, 1),
	} {
		wantDamaged(t, dir, name, []byte(text))
	}
	newer := strings.Replace(string(b), `"version": 1`, `"version": 2, "new": {}`, 1)
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "start a newer sightline") {
		t.Errorf("Load of a newer file: %v", err)
	}
}

func wantDamaged(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir)
	if err == nil || f != nil || !strings.Contains(err.Error(), path) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: Load = %v, %v, want an error that names the file", name, f, err)
	} else if strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("%s: the error has a key: %v", name, err)
	}
}

func TestWriteTLS(t *testing.T) {
	dir := t.TempDir()
	f := create(t, "127.0.0.1:7000")
	paths, err := f.WriteTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		paths.Authority: f.Cluster.Authority.Certificate, paths.Certificate: f.Certificate.Certificate, paths.Key: f.Certificate.Key,
		paths.OperatorCertificate: f.Operator.Certificate, paths.OperatorKey: f.Operator.Key,
	}
	verify := func() {
		t.Helper()
		for path, text := range want {
			got, err := os.ReadFile(path)
			if err != nil || string(got) != text {
				t.Errorf("%s: %v, differs: %s", path, err, cmp.Diff(text, string(got)))
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
			}
		}
		entries, err := os.ReadDir(filepath.Join(dir, tlsDir))
		if err != nil || len(entries) != len(want) {
			t.Errorf("the folder has %v, %v", entries, err)
		}
	}
	verify()
	if info, err := os.Stat(filepath.Join(dir, tlsDir)); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("mode of the folder: %v, %v", info.Mode(), err)
	}
	if err := os.Chtimes(paths.Key, start, start); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(paths.Certificate, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths.Authority); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(paths.OperatorKey, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteTLS(dir); err != nil {
		t.Fatal(err)
	}
	verify()
	if info, err := os.Stat(paths.Key); err != nil || !info.ModTime().Equal(start) {
		t.Errorf("an unchanged file was written again: %v, %v", info.ModTime(), err)
	}
}

// TestLifetimes issues certificates throughout the life of an authority.
func TestLifetimes(t *testing.T) {
	f := create(t, "127.0.0.1:7000")
	a, err := ParseAuthority(f.Cluster.Authority)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := start.Add(life)
	for _, now := range []time.Time{start, start.Add(5 * 365 * 24 * time.Hour), end} {
		text, err := a.IssueNode(f.Node, key.Public(), now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseCertificate(text)
		if err != nil || !c.NotBefore.Equal(now.Add(-time.Hour)) || !c.NotAfter.Equal(end) {
			t.Errorf("at %s: valid from %s to %s, %v", now, c.NotBefore, c.NotAfter, err)
		}
	}
	if _, err := a.IssueNode(f.Node, key.Public(), end.Add(time.Second), rand.Reader); err == nil {
		t.Error("an expired authority issued a certificate")
	}
	small, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.IssueNode(f.Node, small.Public(), start, rand.Reader); err == nil {
		t.Error("issued a certificate for a P-384 key")
	}
	if _, err := a.IssueOperator("../x", start, rand.Reader); err == nil {
		t.Error("issued a certificate for an invalid ID")
	}
	if _, err := NewAuthority("x", start, rand.Reader); err == nil {
		t.Error("created an authority for an invalid ID")
	}
}

func FuzzFile(f *testing.F) {
	good := create(f, "10.0.0.5:7000")
	b, err := good.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"cluster":{"id":"00000000000000aa","etcd_id":"x","election_ms":-1},"node":{"id":null,"address":""}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := decode(b)
		if err != nil {
			if file != nil {
				t.Errorf("a file with the error %v", err)
			}
			return
		}
		text, err := file.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(text)
		if err != nil || !cmp.Equal(file, again) {
			t.Errorf("decode after encode: %v, %s", err, cmp.Diff(file, again))
		}
	})
}
