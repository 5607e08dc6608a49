package server

import (
	"cmp"

	"github.com/spf13/pflag"
)

// oldNames maps the names of flags in version 0.1.0 to their current names. Command lines, variables and configuration files may use either
// name until version 0.3.0.
var oldNames = map[string]string{
	"call-time":       "call-timeout",
	"folder-concepts": "label-by-folder",
	"keep-log":        "log-retention",
	"keep-predicted":  "predicted-ttl",
	"max-away":        "max-offline",
	"max-stale":       "max-edge-age",
	"min-free":        "min-free-space",
	"operator-rate":   "cli-key-rate",
	"patience":        "timeout",
	"video-call-time": "video-call-timeout",
}

// FlagName returns the current name of a flag. It is a normalization function for pflag.
func FlagName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(currentName(name))
}

// currentName returns the current name of a setting.
func currentName(name string) string { return cmp.Or(oldNames[name], name) }
