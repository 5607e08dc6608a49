package member

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
)

// Dir is the folder of etcd's files in a data folder.
const Dir = "etcd"

// Certificates are the files of a node's certificate.
type Certificates struct {
	Authority, Certificate, Key string // paths of PEM files
	Name                        string // common name of the certificates of nodes
}

// Options are the settings of a member. All are required, except those whose comment gives a meaning of 0 or "".
type Options struct {
	Data         string                      // data folder
	Name         string                      // id of the node
	Address      identity.Address            // of the node
	Peers        map[string]identity.Address // addresses of all members by the id of the node, this one included; not used by a member that was started before
	Cluster      string                      // id of our cluster; members of other clusters are refused
	Joins        bool                        // the cluster exists, and has this member already
	Certificates *Certificates               // nil: no TLS, for tests on one machine
	Election     time.Duration               // 0: identity.DefaultElection
	Compares     bool                        // the other members serve, so the member compares its store with theirs before it takes part
	Log          *slog.Logger

	// Fatal is called when etcd cannot continue, before the process ends. nil: nothing is called.
	Fatal func(error)
}

// Member is a running member.
type Member struct {
	Server *etcdserver.EtcdServer
	Client *clientv3.Client // calls of this process; a learner refuses them
	etcd   *embed.Etcd
}

// quota is the maximum size of etcd's file. Compacted pages are used again, so the file stays far smaller.
const quota = 8 << 30

// config returns all options of etcd. TestOptions reads them back.
func config(o Options) (*embed.Config, error) {
	peer, client := o.at(o.Address.EtcdPeer()), o.at(o.Address.EtcdClient())
	c := embed.NewConfig()
	c.Dir = filepath.Join(o.Data, Dir)
	c.Name = o.Name
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialClusterToken = o.Cluster
	c.InitialCluster = initialCluster(o)
	if o.Joins {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	election := o.Election
	if election == 0 {
		election = identity.DefaultElection
	}
	c.ElectionMs, c.TickMs = uint(election.Milliseconds()), uint(election.Milliseconds()/10)
	c.PreVote = true
	c.StrictReconfigCheck = true
	c.MaxLearners = 2

	c.UnsafeNoFsync = false
	c.QuotaBackendBytes = quota
	c.SnapshotCount, c.SnapshotCatchUpEntries = 500, 500 // with etcd's defaults 15,000 records of 5 KB stay in memory
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, "0"
	c.CompactHashCheckTime = time.Minute
	c.CorruptCheckTime = 0 // it reads the whole store each time; the hashes of compactions are compared instead
	gates, ok := c.ServerFeatureGate.(featuregate.MutableFeatureGate)
	if !ok {
		return nil, errors.New("etcd has no feature gates")
	}
	// Members that start at the same time would wait for each other's answer to the first check, 7 s for each.
	err := gates.SetFromMap(map[string]bool{string(features.InitialCorruptCheck): o.Compares, string(features.CompactHashCheck): true})
	if err != nil {
		return nil, err
	}

	if f := o.Certificates; f != nil {
		c.PeerTLSInfo = transport.TLSInfo{CertFile: f.Certificate, KeyFile: f.Key, TrustedCAFile: f.Authority, ClientCertAuth: true}
		c.ClientTLSInfo = c.PeerTLSInfo
		c.PeerTLSInfo.AllowedCNs = []string{f.Name} // otherwise the operator's certificate could be that of a member
		c.PeerTLSInfo.SkipClientSANVerify = true    // the address of a connection may be another one than that of the node
		c.TlsMinVersion = "TLS1.3"
	}
	c.EnableGRPCGateway = false
	c.EnablePprof = false
	c.Metrics = "basic"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger(o.Log, o.Fatal))
	return c, nil
}

// at returns a URL of a member.
func (o *Options) at(u *url.URL) url.URL {
	if o.Certificates == nil {
		u.Scheme = "http"
	}
	return *u
}

// initialCluster returns the members in etcd's form.
func initialCluster(o Options) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.Peers)) {
		u := o.at(o.Peers[name].EtcdPeer())
		all = append(all, name+"="+u.String())
	}
	return strings.Join(all, ",")
}

// Exists reports whether a data folder has the files of a member that was started.
func Exists(dataDir string) bool { return wal.Exist(filepath.Join(dataDir, Dir, "member", "wal")) }

// ErrNoMember is returned by LastEntry for a data folder without a member.
var ErrNoMember = errors.New("the folder has no files of etcd")

// LastEntry returns the number of the last entry of Raft that the member in a data folder has. The member must not run.
func LastEntry(dataDir string) (uint64, error) {
	if !Exists(dataDir) {
		return 0, ErrNoMember
	}
	dir := filepath.Join(dataDir, Dir, "member")
	lg := zap.NewNop()
	saved, err := wal.ValidSnapshotEntries(lg, filepath.Join(dir, "wal"))
	if err != nil || len(saved) == 0 {
		return 0, err
	}
	newest := saved[len(saved)-1]
	w, err := wal.OpenForRead(lg, filepath.Join(dir, "wal"), newest)
	if err != nil {
		return 0, err
	}
	_, _, entries, err := w.ReadAll()
	_ = w.Close() // it also closes a file that reading does not open, and fails
	if err != nil || len(entries) == 0 {
		return newest.GetIndex(), err
	}
	return entries[len(entries)-1].GetIndex(), nil
}

// Dial returns a client of the members at the given URLs.
func Dial(urls []string, certificates *tls.Config, log *slog.Logger) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: urls, TLS: certificates, AutoSyncInterval: 30 * time.Second, DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: logger(log, nil),
	})
}

// Start starts the member. It returns before the member takes part in its cluster, for which it needs a majority.
func Start(o Options) (*Member, error) {
	c, err := config(o)
	if err != nil {
		return nil, err
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	m := &Member{Server: e.Server, etcd: e}
	m.Client = v3client.New(e.Server)
	return m, nil
}

// Ended returns a channel that is closed when the member has stopped.
func (m *Member) Ended() <-chan struct{} { return m.Server.StopNotify() }

// Leads reports whether this member leads etcd. changed is closed when that may change.
func (m *Member) Leads() (leads bool, changed <-chan struct{}) {
	changed = m.Server.LeaderChangedNotify()
	return m.Server.Leader() == m.Server.MemberID(), changed
}

// Close stops the member.
func (m *Member) Close() error {
	var err error
	if m.Client != nil {
		err = m.Client.Close()
	}
	m.etcd.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}
