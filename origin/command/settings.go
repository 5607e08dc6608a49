package command

import (
	"context"
	"fmt"
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

	"github.com/sightline-dev/sightline/origin/data"
)

// settings are those of a server.
type settings struct {
	listen        string
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

	network network
	folder  data.Options // faults, in tests
}

// network is how the server reaches others; the zero value is the machine's own way.
type network struct {
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// environment is the start of the names of the variables that set what flags do not.
const environment = "SIGHTLINE_"

func serveFlags(f *pflag.FlagSet) {
	f.String("listen", "127.0.0.1:8080", "`address` and port to serve on; loopback only, as long as there is no TLS")
	f.String("data", "sightline-data", "`folder` for everything that is kept; made when missing")
	f.String("public-url", "", "`URL` that hosted pictures start with (default: http:// and the listening address)")
	f.String("public-app-id", "", "app_id of public models and concepts; some client programs need \"main\" (default: null)")
	f.String("default-language", "en", "language `code` of the application that a first start makes: of concept names when a request gives none")
	f.Duration("keep-predicted", 24*time.Hour, "how long the pictures of predict calls are hosted")
	f.Bool("allow-private-fetch", false, "fetch pictures from any address and port, private ones too: for tests and closed networks")
	f.IntSlice("fetch-ports", nil, "`ports` that pictures may be fetched from besides 80 and 443")
	f.String("max-body", "96MB", "largest request body, such as 96MB")
	f.String("min-free", "512MB", "free space of the data folder's disk below which writes are refused")
	f.Int("max-connections", 2048, "connections at once; beyond it the longest waiting is closed")
	f.Int("workers", 0, "pictures analysed at once (default: one a core)")
	f.String("log", "info", "log `level`: debug, info, warn or error")
	f.String("log-format", "auto", "text, json, or auto: text on a terminal and json elsewhere")
	f.String("config", "", "TOML `file` with settings named like these flags")
}

// folderSettings are those of a command that opens a data folder itself.
func folderSettings(dir string, env *Env) settings {
	return settings{data: dir, publicURL: "http://127.0.0.1:8080", language: "en", keepPredicted: 24 * time.Hour, maxBody: 96 << 20, folder: env.Data}
}

// loadSettings reads, the later the stronger: the flags' defaults, the configuration file,
// the environment, the flags that were given. All errors are mistakes of usage.
func loadSettings(flags *pflag.FlagSet, environ func() []string) (settings, error) {
	k := koanf.New(".")
	fromEnvironment := env.Provider(".", env.Opt{
		Prefix:      environment,
		EnvironFunc: environ,
		TransformFunc: func(name, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, environment)), "_", "-"), value
		},
	})
	if err := k.Load(fromEnvironment, nil); err != nil {
		return settings{}, usagef("environment: %w", err)
	}
	config := k.String("config")
	if f := flags.Lookup("config"); f.Changed {
		config = f.Value.String()
	}
	if config != "" {
		k = koanf.New(".")
		if err := k.Load(file.Provider(config), toml.Parser()); err != nil {
			return settings{}, usagef("configuration %s: %w", config, err)
		}
		for _, key := range k.Keys() {
			if flags.Lookup(key) == nil || key == "config" {
				return settings{}, usagef("configuration %s: unknown setting %q", config, key)
			}
		}
		if err := k.Load(fromEnvironment, nil); err != nil {
			return settings{}, usagef("environment: %w", err)
		}
	}
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return settings{}, usagef("flags: %w", err)
	}
	return parseSettings(k)
}

func parseSettings(k *koanf.Koanf) (s settings, err error) {
	s = settings{
		listen: k.String("listen"), data: k.String("data"), publicURL: k.String("public-url"),
		publicAppID: k.String("public-app-id"), language: k.String("default-language"),
		maxConns: k.Int("max-connections"), workers: k.Int("workers"), logFormat: k.String("log-format"),
	}
	if s.keepPredicted, err = time.ParseDuration(k.String("keep-predicted")); err != nil || s.keepPredicted <= 0 {
		return s, usagef("keep-predicted: %q is no time such as 24h", k.String("keep-predicted"))
	}
	if s.allowPrivate, err = strconv.ParseBool(k.String("allow-private-fetch")); err != nil {
		return s, usagef("allow-private-fetch: %q is neither true nor false", k.String("allow-private-fetch"))
	}
	if s.fetchPorts, err = parsePorts(k.Get("fetch-ports")); err != nil {
		return s, err
	}
	if s.maxBody, err = parseSize(k.String("max-body")); err != nil {
		return s, usagef("max-body: %w", err)
	}
	if s.minFree, err = parseSize(k.String("min-free")); err != nil {
		return s, usagef("min-free: %w", err)
	}
	if err := s.logLevel.UnmarshalText([]byte(k.String("log"))); err != nil {
		return s, usagef("log: %q is none of debug, info, warn, error", k.String("log"))
	}
	if !slices.Contains([]string{"auto", "text", "json"}, s.logFormat) {
		return s, usagef("log-format: %q is none of auto, text, json", s.logFormat)
	}
	if s.maxConns < 1 || s.workers < 0 || s.data == "" {
		return s, usagef("max-connections must be positive, workers not negative, and data not empty")
	}
	return s, checkLoopback(s.listen)
}

// checkLoopback refuses every address that others could reach: keys would cross the network in the clear.
func checkLoopback(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("listen: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return usagef("listen: %q is no port (%d)", port, n)
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.Unmap().IsLoopback() {
		return nil
	}
	return usagef("listen: %s is not a loopback address, and plain HTTP would show keys and pictures to the network; use 127.0.0.1:%s or [::1]:%s, and a proxy with TLS on the same machine",
		listen, port, port)
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
			return nil, usagef("fetch-ports: %q is no port", text)
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}

// parseSize reads bytes: "1500", "64KB", "96MB", "1GB", in powers of 1,024.
func parseSize(text string) (int64, error) {
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
