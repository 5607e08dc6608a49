// Package program is the program sightline: it runs the core natively, behind a server with accounts and pages, and other hosts
// replicate its applications. Its own commands are predict, which needs no server and no network, edge, sync, head and demo.
package program

import (
	"context"
	"fmt"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/cluster"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/console"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/s3"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web"
)

// origin is the program sightline: the core runs natively, with accounts and pages.
type origin struct {
	people    peopleSettings
	retention partition.Retention // retention of applications' logs
	set       *predict.Set        // the newest network and its public models

	credentials string           // file of the S3 credentials of a cluster; "": the environment has them
	cluster     *cluster.Cluster // nil: the data folder is in no cluster
	pictures    *s3.Store        // of the cluster
}

// New returns the program sightline.
func New() cli.Program {
	o := &origin{}
	return cli.Program{
		Name:  "sightline",
		Short: "Recognise what is in pictures and videos",
		Long: `Sightline recognises what is in pictures: on the command line, or as a server with the /v2 API.
The models are built in; it needs nothing else.`,
		Serve: `Besides API keys there are user accounts. The first start prints a link to create the first
account, the operator's. Others can sign up unless --sign-up is closed; before verifying their
email they get 100 calls. Without --smtp, emails are written to the log. --demo signs every
visitor on this machine in to a demo account.`,
		Commands: func(env *server.Env) []*cobra.Command {
			return []*cobra.Command{newPredict(env), newEdge(env), newSync(env), newHead(env), newDemo(env), newPrecompile(env), newCluster(env)}
		},
		Server: o.options(),
	}
}

// options returns the options of its server.
func (o *origin) options() server.Options {
	return server.Options{
		Flags: o.flags, Parse: o.parse, Cluster: o.joinCluster, Accounts: o.accounts, Open: o.open, Mounts: o.mounts, FirstApp: func() bool { return true }, Started: o.printSetup,
		Status: func(s *control.Status) { s.Program = "sightline" },
	}
}

// flags defines the flags of serve.
func (o *origin) flags(f *pflag.FlagSet) {
	peopleFlags(f)
	f.String("s3-credentials", "", "in a cluster: "+credentialsHelp)
	f.Duration("log-retention", 30*24*time.Hour, "how long log entries are retained for replicas; a replica that is further behind downloads a snapshot")
	f.Duration("keep-writes", 7*24*time.Hour, "how long replicas keep their confirmed writes; an origin restored from a backup that is not older gets them back")
	f.Duration("max-offline", 90*24*time.Hour, "how long edges and browsers may be offline and still have their changes accepted")
}

// parse reads the flags of serve.
func (o *origin) parse(k *koanf.Koanf, s *server.Settings) (err error) {
	o.credentials = k.String("s3-credentials")
	o.people, err = parsePeople(k, s)
	if err == nil {
		o.retention.Age, err = atLeastAnHour(k, "log-retention")
	}
	if err == nil {
		o.retention.Writes, err = atLeastAnHour(k, "keep-writes")
	}
	if err == nil {
		o.retention.MaxOffline, err = atLeastAnHour(k, "max-offline")
	}
	return err
}

func atLeastAnHour(k *koanf.Koanf, name string) (time.Duration, error) {
	d, err := time.ParseDuration(k.String(name))
	if err != nil || d < time.Hour {
		return 0, server.Usagef("%s: %q is not a duration of at least 1h, such as 720h", name, k.String(name))
	}
	return d, nil
}

// open opens the core.
func (o *origin) open(_ context.Context, n *server.Node, _ server.Use) (opened server.OpenedEngine, err error) {
	if n.Settings.Cluster == nil {
		if _, err := identity.Load(n.Folder.Dir); err == nil {
			return opened, fmt.Errorf("data folder %s is in a cluster: start its node with 'serve' first", n.Folder.Dir)
		}
	}
	if o.set, err = predict.Load(n.Settings.Bundles); err != nil {
		return opened, err
	}
	engine, err := core.Open(core.Options{
		Store: n.Store, Follow: n.Settings.Cluster != nil, Models: o.set, Hosted: n.Hosted, Clock: system.Now, Rand: system.Random, Seals: system.Random,
		PublicURL: n.Settings.PublicURL, PublicAppID: n.Settings.PublicAppID, PredictedTTL: n.Settings.PredictedTTL, MaxAnswer: n.Settings.MaxAnswer,
		Retention: o.retention, Tokens: n.Tokens, Accounts: n.Accounts, Calls: n.Accounts, Storage: n.Accounts, Rate: n.Settings.Rate, OperatorRate: n.Settings.OperatorRate, AccountRate: o.people.rate,
		SyncStatus: n.Settings.SyncStatus, Devices: func(app string) ([]api.Device, error) { return devices(n, app) }, Audit: n.Accounts.Audit,
		PictureSize: func(h blob.Hash) (int64, error) { return n.Folder.Blobs.Len(context.Background(), h) },
		Older:       func(base [32]byte) (*predict.Set, error) { return o.older(n.Folder, base) },
	})
	if err != nil {
		return opened, fmt.Errorf("data folder: %w", err)
	}
	if n.Settings.Cluster != nil {
		n.Tokens.TrustPeer(clusterKeys{native{engine}})
	} else {
		n.Tokens.TrustPeer(native{engine})
	}
	return server.OpenedEngine{Engine: native{engine}, Register: engine.Register, Networks: native{engine}}, nil
}

// older loads the bundles of an older network from the data folder.
func (o *origin) older(folder *data.Folder, base [32]byte) (*predict.Set, error) {
	bundles, err := folder.Bundles(base)
	if err != nil && o.pictures != nil {
		bundles, err = s3.NewBundles(o.pictures).Bundles(base)
	}
	if err != nil {
		return nil, err
	}
	set, err := predict.Load(bundles)
	if err == nil && set.Base() != base {
		err = fmt.Errorf("the folder's bundles are those of network %x", set.Base())
	}
	return set, err
}

// mounts returns the mounts of the sync protocol, of the pages' own interface, and of the pages everywhere else.
func (o *origin) mounts(srv *server.Server) ([]httpd.Mount, error) {
	own, err := o.console(srv)
	if err != nil {
		return nil, err
	}
	pages, err := web.NewPages(srv.Handler.Refuse)
	if err != nil {
		return nil, err
	}
	var others func([]log.PublicKey) []log.PublicKey
	if o.cluster != nil {
		others = o.cluster.TokenKeys
	}
	mounts, err := feeds(srv, others)
	return append(mounts,
		httpd.Mount{Prefix: console.Prefix, Handler: own, Caller: own.Caller, SameOrigin: true, CallTimeout: exportTime},
		httpd.Mount{Prefix: "", Handler: pages, SameOrigin: true, Static: true},
	), err
}

// exportTime is the time limit of an export that a page requests. Each part of it has a separate deadline.
const exportTime = 6 * time.Hour

// native is the core, which runs in this process.
type native struct{ *core.Engine }

// HostedPicture implements [server.Engine].
func (n native) HostedPicture(name string) (blob.Picture, error) {
	return n.Register.HostedPicture(name)
}

// Base implements [server.Networks].
func (n native) Base() [32]byte { return n.Models([32]byte{}).Base() }

// Serves implements [server.Networks].
func (n native) Serves(base [32]byte) bool { return n.Models(base).Base() == base }

// NewAnalyser implements [server.Networks].
func (n native) NewAnalyser(base [32]byte, l raster.Limits) jobs.Analyser {
	return n.Models(base).NewAnalyser(l)
}
