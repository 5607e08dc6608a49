package identity

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.5:7000":              "10.0.0.5:7000",
		"Node1.Example:7000":         "node1.example:7000",
		"localhost:1":                "localhost:1",
		"a:65533":                    "a:65533",
		"[FD00::0:5]:7000":           "[fd00::5]:7000",
		"[::ffff:10.0.0.5]:7000":     "10.0.0.5:7000",
		"10.node:0070":               "10.node:70",
		"node-1.eu.example.com:7000": "node-1.eu.example.com:7000",
	} {
		got, err := ParseAddress(text)
		if err != nil || got.String() != want {
			t.Errorf("ParseAddress(%q) = %v, %v, want %s", text, got, err, want)
		}
		if again, err := ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("ParseAddress(%q) again = %v, %v", got, again, err)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "not HOST:PORT",
		"10.0.0.5":                      "not HOST:PORT",
		"fd00::5:7000":                  "not HOST:PORT",
		"http://a:7000":                 "not HOST:PORT",
		":7000":                         "has no host",
		"[]:7000":                       "has no host",
		"0.0.0.0:7000":                  "every interface",
		"[::]:7000":                     "every interface",
		"[::ffff:0.0.0.0]:7000":         "every interface",
		"224.0.0.1:7000":                "multicast",
		"[ff02::1]:7000":                "multicast",
		"[fe80::1%eth0]:7000":           "zone",
		"10.0.0.256:7000":               "invalid host",
		"10.0.0.5.:7000":                "invalid host",
		"a b:7000":                      "invalid host",
		"a\n:7000":                      "invalid host",
		"*.a:7000":                      "invalid host",
		"user@a:7000":                   "invalid host",
		"é:7000":                        "invalid host",
		"a:":                            "invalid port",
		"a:0":                           "invalid port",
		"a:-1":                          "invalid port",
		"a:+1":                          "invalid port",
		"a:http":                        "invalid port",
		"a:65534":                       "invalid port",
		"a:99999999999999999999":        "invalid port",
		strings.Repeat("a", 300) + ":1": "too long",
		strings.Repeat("a", 64) + ":1":  "invalid host",
	} {
		got, err := ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("ParseAddress(%q) = %v, %v, want an error with %q", text, got, err, want)
		}
		if got != (Address{}) {
			t.Errorf("ParseAddress(%q) = %v with an error", text, got)
		}
	}
}

func TestPortsOfEtcd(t *testing.T) {
	a, err := ParseAddress("[fd00::5]:65533")
	if err != nil {
		t.Fatal(err)
	}
	peer, client := a.EtcdPeer().String(), a.EtcdClient().String()
	if peer != "https://[fd00::5]:65534" || client != "https://[fd00::5]:65535" {
		t.Errorf("ports of etcd: %s and %s", peer, client)
	}
}
