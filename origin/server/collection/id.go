package collection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sightline-dev/sightline/core/log/form"
)

// pathID returns the id of a picture without another id: its path if that is a valid id, otherwise a digest of the path.
func pathID(name string) string {
	if form.IsID(name) && form.IsUnreserved(name) {
		return name
	}
	return digest("path", name, 0)
}

// namer names inputs without an id by their content. It numbers inputs with equal content.
type namer map[string]int

func (n namer) name(in *Input) string {
	kind, content := "url", in.URL
	switch {
	case in.Path != "":
		if len(in.Crop) == 0 && n[in.Path] == 0 {
			n[in.Path]++
			return pathID(in.Path)
		}
		kind, content = "path", in.Path
	case in.Picture != nil:
		sum := sha256.Sum256(in.Picture)
		kind, content = "picture", string(sum[:])
	}
	content += "\x00" + string(in.Crop)
	key := kind + "\x00" + content
	n[key]++
	return digest(kind, content, n[key]-1)
}

// digest returns an id of 32 hex digits. nth distinguishes inputs with equal content.
func digest(kind, content string, nth int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", kind, nth, content))
	return hex.EncodeToString(sum[:16])
}
