package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/cluster"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/s3"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func newCluster(env *server.Env) *cobra.Command {
	cmd := cli.Group("cluster", "Run one origin on several machines",
		`Runs one origin on three machines, so that it continues when any one of them fails. Every machine
takes every call. One of them, the primary, writes; another one takes over within seconds. Pictures
are in a bucket of an S3 server.

    {prog} cluster create --data DIR --address HOST:PORT --s3 URL     on the first machine
    {prog} serve --data DIR
    {prog} cluster token --data DIR                                   once for each further machine
    {prog} cluster join TOKEN --data DIR --address HOST:PORT          on that machine
    {prog} serve --data DIR

--address is where the other machines reach this one. Its port and the two ports after it are used.
The S3 credentials are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the file of
--s3-credentials, by every command that needs them.`,
		newClusterCreate(env), newClusterToken(env), newClusterJoin(env), newClusterStatus(env), newClusterEtcdctl(env))
	return cmd
}

// clusterFlags are the flags of the commands that make a node.
type clusterFlags struct {
	data, address, s3, credentials, blobCache string
	election                                  time.Duration
}

func (f *clusterFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.data, "data", "", "data `folder`")
	cmd.Flags().StringVar(&f.address, "address", "", "`HOST:PORT` at which the other machines reach this one; a name is looked up once")
	cmd.Flags().StringVar(&f.blobCache, "blob-cache", "10GB", "maximum `size` of the pictures that this machine stores locally")
}

// check returns the address and the size of the cache. Its errors are usage errors.
func (f *clusterFlags) check(ctx context.Context) (a identity.Address, cache int64, err error) {
	if f.data == "" {
		return a, 0, server.Usagef("--data is required")
	}
	if f.address == "" {
		return a, 0, server.Usagef("--address is required: HOST:PORT at which the other machines reach this one")
	}
	if a, err = identity.ParseAddress(f.address); err == nil {
		a.Host, err = addressOf(ctx, a.Host)
	}
	if err != nil {
		return a, 0, server.Usagef("--address: %w", err)
	}
	if cache, err = server.ParseSize(f.blobCache); err != nil {
		return a, 0, server.Usagef("--blob-cache: %w", err)
	}
	return a, cache, nil
}

// addressOf returns the IP address of a host, an IPv4 address if it has one.
func addressOf(ctx context.Context, host string) (string, error) {
	all, err := system.Resolve(ctx, host)
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return cmp.Compare(a.Unmap().BitLen(), b.Unmap().BitLen()) })
	if len(all) == 0 {
		return "", fmt.Errorf("host %q has no address", host)
	}
	return all[0].Unmap().String(), nil
}

func newClusterCreate(env *server.Env) *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a data folder the first node of a cluster",
		Long: `Makes a data folder the first node of a new cluster. The folder may be new, or that of an origin
that is not running: its pictures are uploaded. Then start '{prog} serve --data DIR'. It serves at
once; further machines join while it serves.

The bucket must exist and be empty. Anyone who can read it can see the pictures.`,
		Example: `  {prog} cluster create --data ./data --address 10.0.0.1:7946 --s3 https://s3.example.com/sightline
  {prog} cluster create --data ./data --address 10.0.0.1:7946 --s3 http://127.0.0.1:7070/sightline --s3-credentials ./s3.ini`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, cache, err := f.check(cmd.Context())
			if err != nil {
				return err
			}
			if f.election < identity.MinElection || f.election > identity.MaxElection {
				return server.Usagef("--cluster-election: %v is not between %v and %v", f.election, identity.MinElection, identity.MaxElection)
			}
			return createCluster(cmd.Context(), env, &f, address, cache)
		},
	}
	f.define(cmd)
	cmd.Flags().StringVar(&f.s3, "s3", "", "`URL` of the S3 server and the bucket for pictures, without credentials")
	cmd.Flags().StringVar(&f.credentials, "s3-credentials", "", credentialsHelp)
	cmd.Flags().DurationVar(&f.election, "cluster-election", identity.DefaultElection, "`time` without a sign of life after which another machine takes over: 500ms to 5s")
	return cmd
}

const credentialsHelp = "`file` with the S3 credentials, like ~/.aws/credentials (default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"

// createCluster makes a data folder the first node of a cluster.
func createCluster(ctx context.Context, env *server.Env, f *clusterFlags, address identity.Address, cache int64) error {
	location, err := s3.ParseLocation(f.s3)
	if err != nil {
		return server.UsageError{Err: fmt.Errorf("--s3: %w", err)}
	}
	if _, err := identity.Load(f.data); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("data folder %s is in a cluster already: start it with 'serve', or take another folder", f.data)
		}
		return err
	}
	store, err := openS3(env, location, f.credentials, nil, 0, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	existed, claimed := system.IsDir(f.data), false
	folder, err := data.Open(f.data, env.Data)
	if errors.Is(err, system.ErrLocked) {
		return fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return err
	}
	options := identity.Options{Address: address, S3: location.String(), Election: f.election, BlobCache: cache}
	file, err := newIdentity(folder.Dir, options)
	if err == nil {
		err = cluster.Create(ctx, file, folder, slog.New(slog.DiscardHandler))
	}
	if err == nil {
		err = store.Claim(ctx, file.Cluster.ID)
		claimed = err == nil
	}
	if err == nil {
		show := cli.PrintProgress(env.Stderr, "uploading pictures")
		_, err = store.Upload(ctx, folder.Blobs, func(done, total control.BackupStats) { show(100 * done.Files / max(1, total.Files)) })
		show(100)
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		if !existed && !claimed { // otherwise the command can be repeated with the folder, which has the ID of the bucket
			err = errors.Join(err, removeFolder(f.data))
		}
		return err
	}
	if err := completeNode(f.data, file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "Created cluster %s. Start its first node:\n\n    sightline serve --data %s\n\nThen let further machines join: sightline cluster token --data %s\n",
		file.Cluster.ID, server.Quote(f.data), server.Quote(f.data))
	return err
}

// newIdentityDir is the folder of the identity of a node until the node is complete, so that a command that was interrupted can be repeated: the
// bucket has the cluster's id by then.
const newIdentityDir = "cluster.new"

// newIdentity returns the identity of the first node of a new cluster: that of a command that was interrupted, or a new one.
func newIdentity(dir string, o identity.Options) (*identity.File, error) {
	to := filepath.Join(dir, newIdentityDir)
	file, err := identity.Load(to)
	if err == nil && file.Node.Address == o.Address && file.Cluster.S3 == o.S3 && file.Cluster.Election() == o.Election {
		return file, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if file, err = identity.Create(o, system.Now(), system.Random); err != nil {
		return nil, err
	}
	if err := system.MakeFolder(to); err != nil {
		return nil, err
	}
	return file, file.Save(to)
}

// cacheDir is the folder of the pictures that a node stores locally.
const cacheDir = "cache"

// removeFolder removes a folder with its content.
func removeFolder(dir string) error {
	above, err := system.OpenFolder(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(above.RemoveAll(filepath.Base(dir)), above.Close())
}

// completeNode makes the pictures of a data folder those of the cache, and the folder that of a node.
func completeNode(dir string, file *identity.File) (err error) {
	folder, err := system.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := folder.MkdirAll(cacheDir); err != nil {
		return err
	}
	if err := folder.Rename("blobs", path.Join(cacheDir, "blobs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := file.Save(dir); err != nil {
		return err
	}
	return folder.RemoveAll(newIdentityDir)
}

// openS3 opens the store of pictures of a cluster. cache is nil if the store has none.
func openS3(env *server.Env, l s3.Location, credentials string, cache blob.FS, size int64, rewrite func() bool) (*s3.Store, error) {
	var c s3.Credentials
	var err error
	if credentials != "" {
		c, err = s3.FileCredentials(credentials)
	} else {
		c, err = s3.EnvCredentials(env.Lookup)
	}
	if err != nil {
		return nil, server.UsageError{Err: err}
	}
	return s3.Open(s3.Options{
		Location: l, Credentials: c, Resolve: system.Resolve, Dial: system.Dial, Now: system.Now, Cache: cache, CacheBytes: size, Rewrite: rewrite,
	})
}

func newClusterJoin(env *server.Env) *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "join TOKEN",
		Short: "Let this machine join a cluster",
		Long: `Lets this machine join the cluster of a token, which '{prog} cluster token' printed at a node. The
data folder must be new or empty. Then start '{prog} serve --data DIR' with the flags of the other
machines: it copies the data of another node and follows it.`,
		Example: `  {prog} cluster join TOKEN --data ./data --address 10.0.0.2:7946`,
		Args:    cli.OneArgument("the token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, cache, err := f.check(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := identity.ParseToken(args[0]); err != nil {
				return server.UsageError{Err: err}
			}
			if _, err := identity.Load(f.data); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("data folder %s is in a cluster already: start it with 'serve', or take another folder", f.data)
			}
			file, err := cluster.Join(cmd.Context(), f.data, args[0], address, cache, server.Version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Stdout, "Joined cluster %s. Start this node:\n\n    sightline serve --data %s\n", file.Cluster.ID, server.Quote(f.data))
			return err
		},
	}
	f.define(cmd)
	return cmd
}

// newClusterCommand returns a command that asks the running node of a folder.
func newClusterCommand(env *server.Env, cmd *cobra.Command, do func(ctx context.Context, s *control.Caller) error) *cobra.Command {
	var dir string
	cmd.Args = server.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if dir == "" {
			return server.Usagef("--data is required")
		}
		if _, err := identity.Load(dir); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("data folder %s is not in a cluster", dir)
			}
			return err
		}
		client := server.Dial(dir)
		defer func() { err = errors.Join(err, client.Close()) }()
		err = do(cmd.Context(), client)
		if system.IsNotListening(err) {
			err = fmt.Errorf("no server is running on %s: start it with 'serve'", dir)
		}
		return err
	}
	cmd.Flags().StringVar(&dir, "data", "", "data `folder` of a running node")
	return cmd
}

func newClusterToken(env *server.Env) *cobra.Command {
	return newClusterCommand(env, &cobra.Command{
		Use:     "token",
		Short:   "Print a token with which one machine can join",
		Long:    `Prints a token with which one machine can join, once and within an hour. Keep it secret.`,
		Example: `  {prog} cluster token --data ./data`,
	}, func(ctx context.Context, s *control.Caller) error {
		var out cluster.Text
		if err := s.Do(ctx, cluster.CommandToken, struct{}{}, &out); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.Stdout, out.Text)
		return err
	})
}

func newClusterEtcdctl(env *server.Env) *cobra.Command {
	return newClusterCommand(env, &cobra.Command{
		Use:   "etcdctl",
		Short: "Print the endpoints and certificates for etcdctl",
		Long: `Prints the flags with which etcdctl reaches the cluster's etcd, so that every page of etcd's
operations guide applies. Members must only be changed by '{prog} cluster'.`,
		Example: `  etcdctl $({prog} cluster etcdctl --data ./data) endpoint status --write-out table`,
	}, func(ctx context.Context, s *control.Caller) error {
		var out cluster.Text
		if err := s.Do(ctx, cluster.CommandEtcdctl, struct{}{}, &out); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.Stdout, out.Text)
		return err
	})
}

func newClusterStatus(env *server.Env) *cobra.Command {
	asJSON := false
	cmd := newClusterCommand(env, &cobra.Command{
		Use:   "status",
		Short: "Show the state of a cluster and of its nodes",
		Long: `Shows the state of the cluster, as a running node sees it.

Exit codes: 0 every node leads or follows; 1 something is wrong; 2 usage error.`,
		Example: `  {prog} cluster status --data ./data --json`,
	}, func(ctx context.Context, s *control.Caller) error {
		var out cluster.Status
		err := s.Do(ctx, cluster.CommandStatus, struct{}{}, &out)
		if err == nil && asJSON {
			err = server.NewJSONEncoder(env.Stdout).Encode(out)
		} else if err == nil {
			err = printClusterStatus(env, &out)
		}
		if err == nil && !out.Healthy() {
			err = server.ExitError(server.ExitFailed)
		}
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func printClusterStatus(env *server.Env, s *cluster.Status) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "cluster   %s\nstate     %s\nterm      %d\nposition  %d\n\n", s.Cluster, s.State, s.Term, s.Position)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE_ID\tADDRESS\tVERSION\tMEMBER\tSTATE\tLAG")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\n", n.ID, n.Address, server.Printable(n.Version), n.Member, server.Printable(n.State), n.Lag)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := b.WriteTo(env.Stdout)
	return err
}

// joinCluster connects the node with its cluster, if the data folder is in one. It runs before each opening of the node.
func (o *origin) joinCluster(ctx context.Context, env *server.Env, s *server.Settings, log *slog.Logger) error {
	if o.cluster == nil {
		file, err := identity.Load(s.Data)
		if errors.Is(err, fs.ErrNotExist) || !system.IsDir(s.Data) {
			return nil
		}
		if err == nil {
			err = o.openCluster(ctx, env, s, file, log)
		}
		if err != nil {
			return err
		}
	}
	if s.PublicURL == "" {
		s.PublicURL = o.cluster.PublicURL()
	}
	s.Cluster = o.cluster
	return o.cluster.Prepare(ctx)
}

// openCluster opens the node's store of pictures and its part of the cluster.
func (o *origin) openCluster(ctx context.Context, env *server.Env, s *server.Settings, file *identity.File, log *slog.Logger) error {
	location, err := s3.ParseLocation(file.Cluster.S3)
	if err != nil {
		return err
	}
	if err := system.MakeFolder(filepath.Join(s.Data, cacheDir)); err != nil {
		return err
	}
	dir, err := system.OpenFolder(filepath.Join(s.Data, cacheDir))
	if err != nil {
		return err
	}
	bundles := s.Bundles
	if bundles == nil {
		bundles = models.FS
	}
	pictures := &pictureStore{log: log}
	store, err := openS3(env, location, o.credentials, dir, file.BlobCache, pictures.rewrites)
	if err != nil {
		return err
	}
	if err := store.Claim(ctx, file.Cluster.ID); err != nil && !errors.Is(err, blob.ErrUnavailable) {
		return err
	}
	pictures.Store = store
	o.pictures = store
	if len(s.TLS.Domains) > 0 {
		if s.TLS.Shared, err = s3.NewACMECache(store, file.Cluster.Key[:], system.Random); err != nil {
			return err
		}
	}
	o.cluster, err = cluster.Open(ctx, cluster.Options{
		Data: s.Data, PublicURL: s.PublicURL, Version: server.Version, Log: log, Collectors: store.Collectors(),
		Blobs: func(_ *blob.Folder, leads func(context.Context) error) data.Blobs {
			pictures.leads = leads
			return pictures
		},
		Leading: func(ctx context.Context) {
			if err := s3.NewBundles(store).StoreBundles(o.set.Base(), bundles); err != nil {
				log.Warn("cannot store the network in S3 for later programs", "error", err)
			}
			pictures.began(ctx)
		},
	})
	return err
}

// pictureStore is the store of pictures of a node. Only the node that leads deletes pictures in S3.
type pictureStore struct {
	*s3.Store
	log   *slog.Logger
	leads func(ctx context.Context) error
	since atomic.Int64 // time at which the node began to lead, in Unix nanoseconds
}

// rewriteTime is the time for which a new primary also stores pictures that exist: late deletions of the earlier primary may arrive then.
const rewriteTime = time.Minute

// began is called when the node begins to lead. It works until the time of rewriting has passed.
func (p *pictureStore) began(ctx context.Context) {
	p.since.Store(system.Now().UnixNano())
	system.Pause(ctx, rewriteTime)
	for ctx.Err() == nil {
		err := p.Restore(ctx)
		if err == nil {
			return
		}
		p.log.Warn("cannot check the pictures of the last minute in S3", "error", err)
		system.Pause(ctx, rewriteTime)
	}
}

func (p *pictureStore) rewrites() bool {
	return system.Now().UnixNano()-p.since.Load() < int64(rewriteTime)
}

// Delete implements [blob.Blobs]. A node that does not lead deletes nothing.
func (p *pictureStore) Delete(ctx context.Context, h blob.Hash) error {
	if err := p.leads(ctx); err != nil {
		return err
	}
	return p.Store.Delete(ctx, h)
}

// orphanAge is the age from which a picture that nothing references may be deleted.
const orphanAge = 24 * time.Hour

// EachOld calls yield with the pictures that are old enough to be deleted; see blob.HostedOptions.
func (p *pictureStore) EachOld(ctx context.Context, from blob.Hash, yield func(blob.Hash) error) error {
	return p.EachOlder(ctx, system.Now().Add(-orphanAge), from, yield)
}
