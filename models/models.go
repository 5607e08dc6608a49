// Package models holds the bundles of the public models, embedded in the binary.
//
//	general-v1.3/      the general model: network, concepts, names, heads, background
//	food-items-v1.0/   the food concepts of the same network
//	color/             the 140 W3C colour names
//	general-embed/     the unit embedding of the same network
//
// README.md in this folder specifies the format. The command bake creates the bundles from a release of
// the network, and predict.Load reads them. This package does not depend on their content.
package models

import "embed"

// FS holds the bundles, one folder each.
//
//go:embed general-v1.3 food-items-v1.0 color general-embed
var FS embed.FS
