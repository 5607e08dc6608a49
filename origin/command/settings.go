package command

import (
	"context"
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
	"github.com/sightline-dev/sightline/origin/data"
	"github.com/sightline-dev/sightline/origin/token"
)

// settings are those of a server.
type settings struct {
	listen        string
	listener      net.Listener // inherited; nil: listen is opened
	data          string
	publicURL     string
	publicAppID   string
	language      string
	keepPredicted time.Duration
	allowPrivate  bool
	fetchPorts    []uint16
	maxBody       int64
	minFree       int64
	maxConns      int
	workers       int
	logLevel      slog.Level
	logFormat     string

	secure      secureSettings
	behindProxy bool
	tokenLife   time.Duration
	rate        auth.Rate // of what accounts' keys call
	operator    auth.Rate // of what the operator's call

	copies func(app string) (api.Standing, bool) // where the copies stand that this process keeps; nil: it keeps none

	program Program // nil: sightline
	network network
	folder  data.Options // faults, in tests
	bundles fs.FS        // of the network; nil: the program's own
}

// network is how the server reaches others; the zero value is the machine's own way.
type network struct {
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// environment is the start of the names of the variables that set what flags do not.
const environment = "SIGHTLINE_"

func serveFlags(f *pflag.FlagSet, program Program) {
	f.String("listen", "127.0.0.1:8080", "`address` and port to serve on; others than loopback need TLS or --behind-proxy")
	f.String("data", "sightline-data", "`folder` for everything that is kept; made when missing")
	f.String("public-url", "", "`URL` under which clients reach this server: hosted pictures start with it (default: https:// and the certificate's name, or http:// and the listening address)")
	f.String("public-app-id", "", "app_id of public models and concepts; some client programs need \"main\" (default: null)")
	f.String("default-language", "en", "language `code` of the application that a first start makes: of concept names when a request gives none")
	f.Duration("keep-predicted", 24*time.Hour, "how long the pictures of predict calls are hosted")
	f.Bool("allow-private-fetch", false, "fetch pictures from any address and port, private ones too: for tests and closed networks")
	f.IntSlice("fetch-ports", nil, "`ports` that pictures may be fetched from besides 80 and 443")
	f.String("max-body", "96MB", "largest request body, such as 96MB")
	f.String("min-free", "512MB", "free space of the data folder's disk below which writes are refused")
	f.Int("max-connections", 2048, "connections at once; beyond it the longest waiting is closed")
	f.Int("workers", 0, "pictures analysed at once (default: one a core)")
	f.String("tls-cert", "", "PEM `file` with the certificate chain to serve HTTPS with; read again when it changes")
	f.String("tls-key", "", "PEM `file` with the certificate's private key")
	f.StringSlice("acme-domain", nil, "`name` to get a certificate for by ACME, over the listening port, which clients must reach as 443; repeat for more. Using it accepts the authority's terms of service")
	f.String("acme-email", "", "`address` that the certificate authority may write to")
	f.String("acme-cache", "", "`folder` for ACME's certificates and account key (default: acme in the data folder)")
	f.String("acme-directory", "", "`URL` of the certificate authority's directory (default: that of Let's Encrypt)")
	f.Bool("behind-proxy", false, "a proxy with TLS stands before this server, and says in X-Forwarded-For who asks: plain HTTP is served on any address. Needs --public-url")
	f.Duration("token-ttl", token.DefaultLife, "how long access tokens live, at most 49h")
	f.Float64("rate", 10, "calls a `second` of one key of an account, or of its application's tokens; 0: any number")
	f.Int("burst", 100, "calls of one key at once, after a pause")
	f.Float64("operator-rate", 0, "the same of keys that were made on this machine's command line; 0: any number")
	program.Flags(f)
	f.String("log", "info", "log `level`: debug, info, warn or error")
	f.String("log-format", "auto", "text, json, or auto: text on a terminal and json elsewhere")
	f.String("config", "", "TOML `file` with settings named like these flags")
}

// folderSettings are those of a command that opens a data folder itself.
func folderSettings(dir string, env *Env) settings {
	return settings{data: dir, publicURL: "http://127.0.0.1:8080", language: "en", keepPredicted: 24 * time.Hour, maxBody: 96 << 20, folder: env.Data, program: env.Program}
}

// loadSettings reads, the later the stronger: the flags' defaults, the configuration file,
// the environment, the flags that were given. All errors are mistakes of usage.
func loadSettings(flags *pflag.FlagSet, environ func() []string, program Program) (settings, error) {
	k := koanf.New(".")
	fromEnvironment := env.Provider(".", env.Opt{
		Prefix:      environment,
		EnvironFunc: environ,
		TransformFunc: func(name, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, environment)), "_", "-"), value
		},
	})
	if err := k.Load(fromEnvironment, nil); err != nil {
		return settings{}, Usagef("environment: %w", err)
	}
	config := k.String("config")
	if f := flags.Lookup("config"); f.Changed {
		config = f.Value.String()
	}
	if config != "" {
		k = koanf.New(".")
		if err := k.Load(file.Provider(config), toml.Parser()); err != nil {
			return settings{}, Usagef("configuration %s: %w", config, err)
		}
		for _, key := range k.Keys() {
			if flags.Lookup(key) == nil || key == "config" {
				return settings{}, Usagef("configuration %s: unknown setting %q", config, key)
			}
		}
		if err := k.Load(fromEnvironment, nil); err != nil {
			return settings{}, Usagef("environment: %w", err)
		}
	}
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return settings{}, Usagef("flags: %w", err)
	}
	return parseSettings(k, program)
}

func parseSettings(k *koanf.Koanf, program Program) (s settings, err error) {
	s = settings{
		program: program,
		listen:  k.String("listen"), data: k.String("data"), publicURL: k.String("public-url"),
		publicAppID: k.String("public-app-id"), language: k.String("default-language"),
		maxConns: k.Int("max-connections"), workers: k.Int("workers"), logFormat: k.String("log-format"),
	}
	if s.keepPredicted, err = time.ParseDuration(k.String("keep-predicted")); err != nil || s.keepPredicted <= 0 {
		return s, Usagef("keep-predicted: %q is no time such as 24h", k.String("keep-predicted"))
	}
	if s.allowPrivate, err = strconv.ParseBool(k.String("allow-private-fetch")); err != nil {
		return s, Usagef("allow-private-fetch: %q is neither true nor false", k.String("allow-private-fetch"))
	}
	if s.fetchPorts, err = parsePorts(k.Get("fetch-ports")); err != nil {
		return s, err
	}
	if s.maxBody, err = ParseSize(k.String("max-body")); err != nil {
		return s, Usagef("max-body: %w", err)
	}
	if s.minFree, err = ParseSize(k.String("min-free")); err != nil {
		return s, Usagef("min-free: %w", err)
	}
	if err := s.logLevel.UnmarshalText([]byte(k.String("log"))); err != nil {
		return s, Usagef("log: %q is none of debug, info, warn, error", k.String("log"))
	}
	if !slices.Contains([]string{"auto", "text", "json"}, s.logFormat) {
		return s, Usagef("log-format: %q is none of auto, text, json", s.logFormat)
	}
	if s.maxConns < 1 || s.workers < 0 || s.data == "" {
		return s, Usagef("max-connections must be positive, workers not negative, and data not empty")
	}
	if err := s.parseLimits(k); err != nil {
		return s, err
	}
	if s.behindProxy, err = strconv.ParseBool(k.String("behind-proxy")); err != nil {
		return s, Usagef("behind-proxy: %q is neither true nor false", k.String("behind-proxy"))
	}
	if s.behindProxy && s.publicURL == "" {
		return s, Usagef("behind-proxy: --public-url has to say under which address the proxy serves")
	}
	if s.secure, err = parseSecure(k); err != nil {
		return s, err
	}
	if err := program.Parse(k, s.listen, s.behindProxy); err != nil {
		return s, err
	}
	return s, checkListen(s.listen, s.behindProxy || s.secure.on())
}

// parseLimits reads how long tokens live and how often may be called.
func (s *settings) parseLimits(k *koanf.Koanf) (err error) {
	if s.tokenLife, err = time.ParseDuration(k.String("token-ttl")); err != nil || s.tokenLife < time.Second || s.tokenLife > token.MaxLife {
		return Usagef("token-ttl: %q is no time between 1s and %v", k.String("token-ttl"), token.MaxLife)
	}
	burst := k.Int("burst")
	if burst < 1 {
		return Usagef("burst: %q is no number of calls", k.String("burst"))
	}
	for name, rate := range map[string]*auth.Rate{"rate": &s.rate, "operator-rate": &s.operator} {
		n, err := strconv.ParseFloat(k.String(name), 64)
		if err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 0.001 {
			return Usagef("%s: %q is no number of calls a second", name, k.String(name))
		}
		*rate = auth.Rate{PerSecond: n, Burst: burst}
		if n == 0 {
			*rate = auth.Rate{PerSecond: -1}
		}
	}
	return nil
}

// checkListen refuses every address that others could reach, unless it is protected: keys would
// cross the network in the clear.
func checkListen(listen string, protected bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return Usagef("listen: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Usagef("listen: %q is no port (%d)", port, n)
	}
	if protected || onLoopback(host) {
		return nil
	}
	return Usagef("listen: %s is not a loopback address, and plain HTTP would show keys and pictures to the network; use --tls-cert and --tls-key, --acme-domain, or --behind-proxy where a proxy has TLS; or listen on 127.0.0.1:%s",
		listen, port)
}

// onLoopback reports whether host is this machine for itself alone.
func onLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// parsePorts reads what a flag, a variable ("8080,8443") or a file may give.
func parsePorts(v any) (ports []uint16, err error) {
	var texts []string
	switch v := v.(type) {
	case nil:
	case string:
		texts = strings.FieldsFunc(strings.Trim(v, "[]"), func(r rune) bool { return r == ',' || r == ' ' })
	case []int:
		for _, n := range v {
			texts = append(texts, strconv.Itoa(n))
		}
	case []any:
		for _, n := range v {
			texts = append(texts, fmt.Sprint(n))
		}
	default:
		texts = []string{fmt.Sprint(v)}
	}
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, Usagef("fetch-ports: %q is no port", text)
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}

// ParseSize reads bytes: "1500", "64KB", "96MB", "1GB", in powers of 1,024.
func ParseSize(text string) (int64, error) {
	number, shift := text, 0
	for suffix, bits := range map[string]int{"KB": 10, "MB": 20, "GB": 30} {
		if rest, ok := strings.CutSuffix(strings.ToUpper(text), suffix); ok {
			number, shift = rest, bits
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt32<<10>>shift {
		return 0, fmt.Errorf("%q is no size such as 96MB", text)
	}
	return n << shift, nil
}
