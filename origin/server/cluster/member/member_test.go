package member

import (
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/features"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
)

var loopback = identity.Address{Host: "127.0.0.1", Port: 7000}

// TestOptions reads back the options of etcd on which the promises of a cluster depend.
func TestOptions(t *testing.T) {
	files := &Certificates{Authority: "a.pem", Certificate: "c.pem", Key: "k.pem"}
	c, err := config(Options{
		Data: t.TempDir(), Name: "n1", Address: loopback, Peers: map[string]identity.Address{"n1": loopback}, Cluster: "c",
		Certificates: files, Compares: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"sync is on":                       !c.UnsafeNoFsync,
		"heartbeat 100 ms, election 1 s":   c.TickMs == 100 && c.ElectionMs == 1000,
		"pre-vote":                         c.PreVote,
		"strict changes of members":        c.StrictReconfigCheck,
		"two learners":                     c.MaxLearners == 2,
		"8 GB":                             c.QuotaBackendBytes == 8<<30,
		"500 entries in memory":            c.SnapshotCount == 500 && c.SnapshotCatchUpEntries == 500,
		"no compaction by age or number":   c.AutoCompactionRetention == "0",
		"a check of corruption at a start": c.ServerFeatureGate.Enabled(features.InitialCorruptCheck),
		"a check of compactions":           c.ServerFeatureGate.Enabled(features.CompactHashCheck) && c.CompactHashCheckTime == time.Minute,
		"certificates of members":          c.PeerTLSInfo.ClientCertAuth && c.PeerTLSInfo.TrustedCAFile == "a.pem" && !c.PeerAutoTLS,
		"certificates of clients":          c.ClientTLSInfo.ClientCertAuth && c.ClientTLSInfo.TrustedCAFile == "a.pem" && !c.ClientAutoTLS,
		"TLS 1.3":                          c.TlsMinVersion == "TLS1.3",
		"members at the next port":         c.AdvertisePeerUrls[0].String() == "https://127.0.0.1:7001",
		"clients at the port after it":     c.AdvertiseClientUrls[0].String() == "https://127.0.0.1:7002",
		"the members of the cluster":       c.InitialCluster == "n1=https://127.0.0.1:7001",
		"members of this cluster only":     c.InitialClusterToken == "c",
	} {
		if !ok {
			t.Errorf("etcd's options lack: %s", what)
		}
	}
	c, err = config(Options{Name: "n1", Address: loopback, Election: identity.MinElection, Log: slog.New(slog.DiscardHandler)})
	if err != nil || c.TickMs != 50 || c.ElectionMs != 500 {
		t.Errorf("%v; heartbeat %d ms and election %d ms with an election of 500 ms", err, c.TickMs, c.ElectionMs)
	}
}
