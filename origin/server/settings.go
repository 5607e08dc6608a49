package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// Settings are the settings of a server.
type Settings struct {
	Listen        string
	Listener      net.Listener // inherited; nil: the server opens Listen
	Data          string
	PublicURL     string
	PublicAppID   string // see api.Options; empty: auto
	Language      string
	PredictedTTL  time.Duration
	KeepLocation  bool
	AllowPrivate  bool
	FetchPorts    []uint16
	MaxBody       int64
	MaxAnswer     int64
	MaxVideo      int64
	VideoTime     time.Duration
	VideoCallTime time.Duration
	VideoModule   string
	VideoDecoder  string
	MinFree       int64
	StoreCache    int64
	MaxConns      int
	Workers       int
	OpenMetrics   bool   // everyone may read /metrics and /version
	MetricsToken  string // path of the file with the token for /metrics and /version
	LogLevel      slog.Level
	LogFormat     string

	TLS          TLSSettings
	BehindProxy  bool
	TokenLife    time.Duration
	Rate         auth.Rate // limit of calls with accounts' keys
	OperatorRate auth.Rate // limit of calls with the operator's keys
	Hosted       httpd.HostedRates

	Cache string // folder of the user for compiled modules; empty: they are in the data folder

	SyncStatus func(app string) (api.SyncStatus, bool) // sync status of each replica in this process; nil: there are no replicas

	Options Options
	Cluster Cluster // nil: the node is not in a cluster
	Network Network
	Folder  data.Options // file systems with faults, in tests
	Bundles fs.FS        // bundles of the network; nil: the program's
}

// Network holds the functions that reach other machines. The zero value means the machine's own resolver and dialer.
type Network struct {
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// EnvPrefix is the prefix of the environment variables that set flags.
const EnvPrefix = "SIGHTLINE_"

// Settings of videos that the commands serve and predict share.
const (
	DefaultMaxVideo  = "80MB"
	VideoModuleHelp  = "`file` of the module that decodes videos (default: " + video.ModuleFile + " next to the program)"
	VideoDecoderHelp = "decode videos with the ffmpeg in this `file`, and the ffprobe next to it, instead of the module: faster, but without its sandbox"
)

// Flags defines the flags of the command serve: those of every program, and those of o.
func Flags(f *pflag.FlagSet, o *Options) {
	f.String("listen", "127.0.0.1:8080", "listen `address`; anything but loopback needs TLS or --behind-proxy")
	f.String("data", "sightline-data", "data `folder`; created if missing")
	f.String("public-url", "", "public base `URL` of this server, used in picture URLs (default: from the certificate's name or the listen address)")
	f.String("public-app-id", "auto", "app_id of public models and concepts: `auto|null|main`; auto is main for clients that send X-Clarifai-Client, and null for others")
	f.String("default-language", "en", "default concept language `code` of the application created at the first start")
	f.Duration("predicted-ttl", 24*time.Hour, "how long pictures sent to predict stay available by URL")
	f.Bool("keep-location", false, "keep the location in hosted pictures and videos (default: it is removed)")
	f.Bool("allow-private-fetch", false, "allow picture downloads from private addresses and any port; for tests and closed networks")
	f.IntSlice("fetch-ports", nil, "additional `ports` allowed for picture downloads (80 and 443 are always allowed)")
	f.String("max-body", "96MB", "maximum `size` of a request body, such as 96MB")
	f.String("max-answer", "16MB", "maximum `size` of an answer, such as 16MB; at least 2MB")
	f.String("max-video", DefaultMaxVideo, "maximum `size` of a video that is downloaded for a predict call")
	f.Duration("video-time", video.DefaultTime, "maximum processor time to decode one video")
	f.Duration("video-call-timeout", 20*time.Minute, "maximum duration of a predict call with a video")
	f.String("video-module", "", VideoModuleHelp)
	f.String("video-decoder", "", VideoDecoderHelp)
	f.String("store-cache", "auto", "`size` of the store's cache, at least 64MB; auto is a 64th of the memory, from 64MB to 1GB")
	f.String("min-free-space", "512MB", "refuse writes when the disk has less free space than this `size`")
	f.Int("max-connections", 2048, "maximum `number` of open connections; above it the longest idle one is closed")
	f.Int("workers", 0, "`number` of pictures analysed in parallel (default: number of CPU cores)")
	f.String("tls-cert", "", "PEM `file` with the certificate chain; reloaded when it changes")
	f.String("tls-key", "", "PEM `file` with the private key of the certificate")
	f.StringSlice("acme-domain", nil, "domain `name` to get a certificate for by ACME; repeatable. The listen port must be reachable as 443. Implies accepting the authority's terms of service")
	f.String("acme-email", "", "contact `email` for the certificate authority")
	f.String("acme-cache", "", "`folder` for ACME certificates and the ACME account key (default: acme in the data folder)")
	f.String("acme-directory", "", "`URL` of the ACME directory (default: Let's Encrypt)")
	f.Bool("behind-proxy", false, "serve plain HTTP on any address behind a TLS proxy, and trust the last entry of X-Forwarded-For; needs --public-url")
	f.Duration("token-ttl", token.DefaultLife, "lifetime of access tokens, at most 49h")
	f.Float64("rate", 10, "rate limit in `calls` per second for each key of an account, and for each application's tokens; 0 means unlimited")
	f.Int("burst", 100, "burst size of the rate limits, in `calls`")
	f.Float64("cli-key-rate", 0, "rate limit in `calls` per second for keys created on the command line; 0 means unlimited")
	f.Float64("hosted-rate", 100, "rate limit in `requests` per second below /hosted/ for each client address; 0 means unlimited")
	f.String("hosted-bytes", "32MB", "limit of a second's answers below /hosted/ for each client address, as a `size`; 0 means unlimited")
	f.String("metrics", "local", "who can read /metrics and /version: `local|open`; local means this machine, and clients with the token of --metrics-token")
	f.String("metrics-token", "", "`file` with a token of at least 16 characters that lets other machines read /metrics and /version; reloaded when it changes")
	if o.Flags != nil {
		o.Flags(f)
	}
	f.String("log", "info", "log messages of at least this level: `debug|info|warn|error`")
	f.String("log-format", "auto", "log format: `auto|text|json`; auto is text on a terminal and json elsewhere")
	f.String("config", "", "TOML `file` with settings that are named like these flags")
}

// FolderSettings returns the settings of a command that opens a data folder itself.
func FolderSettings(dir string, env *Env) Settings {
	return Settings{Data: dir, PublicURL: "http://127.0.0.1:8080", Language: "en", PredictedTTL: 24 * time.Hour, MaxBody: 96 << 20, MaxAnswer: api.DefaultMaxAnswer, Folder: env.Data, Options: env.Options}
}

// LoadSettings reads the settings. In increasing priority they come from the flags' defaults, the configuration file, the environment and
// the given flags. All errors are usage errors.
func LoadSettings(flags *pflag.FlagSet, environ func() []string, o *Options) (Settings, error) {
	k := koanf.New(".")
	fromEnvironment := env.Provider(".", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: environ,
		TransformFunc: func(name, value string) (string, any) {
			return currentName(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "_", "-")), value
		},
	})
	if err := k.Load(fromEnvironment, nil); err != nil {
		return Settings{}, Usagef("environment: %w", err)
	}
	config := k.String("config")
	if f := flags.Lookup("config"); f.Changed {
		config = f.Value.String()
	}
	if config != "" {
		k = koanf.New(".")
		if err := k.Load(file.Provider(config), toml.Parser()); err != nil {
			return Settings{}, Usagef("configuration %s: %w", config, err)
		}
		for _, key := range k.Keys() {
			name := currentName(key)
			if flags.Lookup(name) == nil || key == "config" {
				return Settings{}, Usagef("configuration %s: unknown setting %q; settings are named like flags", config, key)
			}
			if name != key && !k.Exists(name) {
				if err := k.Set(name, k.Get(key)); err != nil {
					return Settings{}, Usagef("configuration %s: %w", config, err)
				}
			}
		}
		if err := k.Load(fromEnvironment, nil); err != nil {
			return Settings{}, Usagef("environment: %w", err)
		}
	}
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return Settings{}, Usagef("flags: %w", err)
	}
	s, err := parseSettings(k, o)
	if err == nil {
		s.Cache, _ = system.CacheFolder((&Env{Environ: environ}).Lookup) // without one, compiled modules are in the data folder
	}
	return s, err
}

// parseSizes sets the settings that are numbers of bytes.
func (s *Settings) parseSizes(k *koanf.Koanf) (err error) {
	for name, into := range map[string]*int64{
		"max-body": &s.MaxBody, "max-answer": &s.MaxAnswer, "max-video": &s.MaxVideo, "min-free-space": &s.MinFree,
	} {
		if *into, err = ParseSize(k.String(name)); err != nil {
			return Usagef("%s: %w", name, err)
		}
	}
	if s.MaxAnswer < api.MinMaxAnswer {
		return Usagef("max-answer: %q is less than 2MB", k.String("max-answer"))
	}
	text := k.String("store-cache")
	if text == "auto" {
		return nil
	}
	if s.StoreCache, err = ParseSize(text); err != nil || s.StoreCache < data.MinCache {
		return Usagef("store-cache: %q is not auto or a size of at least 64MB", text)
	}
	return nil
}

func parseSettings(k *koanf.Koanf, o *Options) (s Settings, err error) {
	s = Settings{
		Options: *o,
		Listen:  k.String("listen"), Data: k.String("data"), PublicURL: k.String("public-url"),
		Language: k.String("default-language"),
		MaxConns: k.Int("max-connections"), Workers: k.Int("workers"), LogFormat: k.String("log-format"),
	}
	if s.PredictedTTL, err = time.ParseDuration(k.String("predicted-ttl")); err != nil || s.PredictedTTL <= 0 {
		return s, Usagef("predicted-ttl: %q is not a duration such as 24h", k.String("predicted-ttl"))
	}
	for name, into := range map[string]*bool{
		"keep-location": &s.KeepLocation, "allow-private-fetch": &s.AllowPrivate, "behind-proxy": &s.BehindProxy,
	} {
		if *into, err = strconv.ParseBool(k.String(name)); err != nil {
			return s, Usagef("%s: %q is not true or false", name, k.String(name))
		}
	}
	if s.FetchPorts, err = parsePorts(k); err != nil {
		return s, err
	}
	if err := s.parseSizes(k); err != nil {
		return s, err
	}
	s.VideoModule, s.VideoDecoder = k.String("video-module"), k.String("video-decoder")
	for name, into := range map[string]*time.Duration{"video-time": &s.VideoTime, "video-call-timeout": &s.VideoCallTime} {
		if *into, err = time.ParseDuration(k.String(name)); err != nil || *into < time.Second {
			return s, Usagef("%s: %q is not a duration of at least 1s", name, k.String(name))
		}
	}
	if err := s.LogLevel.UnmarshalText([]byte(k.String("log"))); err != nil {
		return s, Usagef("log: %q is not debug, info, warn or error", k.String("log"))
	}
	if !slices.Contains([]string{"auto", "text", "json"}, s.LogFormat) {
		return s, Usagef("log-format: %q is not auto, text or json", s.LogFormat)
	}
	switch {
	case s.MaxConns < 1:
		return s, Usagef("max-connections must be at least 1")
	case s.Workers < 0:
		return s, Usagef("workers must not be negative")
	case s.Data == "":
		return s, Usagef("data must not be empty")
	}
	if err := s.parseLimits(k); err != nil {
		return s, err
	}
	if s.BehindProxy && s.PublicURL == "" {
		return s, Usagef("behind-proxy: --public-url is required: the URL that the proxy serves")
	}
	if s.TLS, err = parseSecure(k); err != nil {
		return s, err
	}
	if o.Parse != nil {
		if err := o.Parse(k, &s); err != nil {
			return s, err
		}
	}
	return s, checkListen(s.Listen, s.BehindProxy || s.TLS.on())
}

// parseMetrics reads who can read the metrics.
func (s *Settings) parseMetrics(k *koanf.Koanf) error {
	s.MetricsToken = k.String("metrics-token")
	switch who := k.String("metrics"); who {
	case "local":
	case "open":
		s.OpenMetrics = true
	default:
		return Usagef("metrics: %q is not local or open", who)
	}
	return nil
}

// parsePublicAppID reads the form of app_id.
func (s *Settings) parsePublicAppID(k *koanf.Koanf) error {
	switch form := k.String("public-app-id"); form {
	case "auto", "":
	case api.NullAppID, api.MainAppID:
		s.PublicAppID = form
	default:
		return Usagef("public-app-id: %q is not auto, null or main", form)
	}
	return nil
}

// parseLimits reads the form of app_id, who can read the metrics, the lifetime of tokens and the limits of calls per second.
func (s *Settings) parseLimits(k *koanf.Koanf) (err error) {
	if err := errors.Join(s.parsePublicAppID(k), s.parseMetrics(k)); err != nil {
		return err
	}
	if s.TokenLife, err = time.ParseDuration(k.String("token-ttl")); err != nil || s.TokenLife < time.Second || s.TokenLife > token.MaxLife {
		return Usagef("token-ttl: %q is not a duration from 1s to %v", k.String("token-ttl"), token.MaxLife)
	}
	if s.Rate, err = ParseRate(k, "rate", "burst"); err != nil {
		return err
	}
	if s.OperatorRate, err = ParseRate(k, "cli-key-rate", "burst"); err != nil {
		return err
	}
	return s.parseHosted(k)
}

// ParseRate reads a rate of calls and its burst from the settings with these names. If the rate is 0, it returns a rate without a limit.
func ParseRate(k *koanf.Koanf, rate, burst string) (auth.Rate, error) {
	atOnce := k.Int(burst)
	if atOnce < 1 {
		return auth.Rate{}, Usagef("%s: %q is not a number of calls", burst, k.String(burst))
	}
	n, err := strconv.ParseFloat(k.String(rate), 64)
	if err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 0.001 {
		return auth.Rate{}, Usagef("%s: %q is not a number of calls per second", rate, k.String(rate))
	}
	if n == 0 {
		return auth.Rate{PerSecond: -1}, nil
	}
	return auth.Rate{PerSecond: n, Burst: atOnce}, nil
}

// parseHosted reads the rates below /hosted/.
func (s *Settings) parseHosted(k *koanf.Koanf) (err error) {
	s.Hosted.Requests, err = strconv.ParseFloat(k.String("hosted-rate"), 64)
	if n := s.Hosted.Requests; err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 0.001 {
		return Usagef("hosted-rate: %q is not a number of requests per second", k.String("hosted-rate"))
	}
	if text := k.String("hosted-bytes"); text != "0" {
		if s.Hosted.Bytes, err = ParseSize(text); err != nil {
			return Usagef("hosted-bytes: %w", err)
		}
	}
	return nil
}

// checkListen refuses an address that other machines can reach unless it is protected, because keys would cross the network unencrypted.
func checkListen(listen string, protected bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return Usagef("listen: %w", err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Usagef("listen: %q is not a port", port)
	}
	if protected || system.IsLoopback(host) {
		return nil
	}
	return Usagef("listen: refusing plain HTTP on %s: keys and pictures would be visible on the network. "+
		"Use --tls-cert and --tls-key, --acme-domain, --behind-proxy, or a loopback address such as 127.0.0.1:%s", listen, port)
}

// parseWords reads a list that a flag, a variable ("a,b") or a file sets.
func parseWords(k *koanf.Koanf, name string) []string {
	if !k.Exists(name) {
		return nil
	}
	text := strings.Trim(fmt.Sprint(k.Get(name)), "[]")
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// parsePorts reads a list of ports.
func parsePorts(k *koanf.Koanf) (ports []uint16, err error) {
	for _, text := range parseWords(k, "fetch-ports") {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, Usagef("fetch-ports: %q is not a port", text)
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}

// ParseSize reads a number of bytes: "1500", "64KB", "96MB" or "1GB", with units in powers of 1,024.
func ParseSize(text string) (int64, error) {
	number, shift := text, 0
	for suffix, bits := range map[string]int{"KB": 10, "MB": 20, "GB": 30} {
		if rest, ok := strings.CutSuffix(strings.ToUpper(text), suffix); ok {
			number, shift = rest, bits
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt32<<10>>shift {
		return 0, fmt.Errorf("%q is not a size such as 96MB", text)
	}
	return n << shift, nil
}
