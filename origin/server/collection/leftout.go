package collection

import (
	"path"
	"slices"
	"strings"
)

// Reason is why an import leaves a file out on purpose. Its text names the files, as a summary does.
type Reason string

// The reasons, in the order of a summary.
const (
	Sidecars   Reason = "sidecars"
	Thumbnails Reason = "thumbnails"
	Hidden     Reason = "hidden"
	System     Reason = "system"
	Unknown    Reason = "unknown"
)

// Reasons are all reasons in the order of a summary.
var Reasons = []Reason{Sidecars, Thumbnails, Hidden, System, Unknown}

// leftOut has the names of files and folders that an import leaves out. Names are in lower case. The pages have the same table.
type leftOut struct {
	SidecarEndings   []string `json:"sidecar_endings"`
	ThumbnailFolders []string `json:"thumbnail_folders"` // also other folders that a NAS creates
	SystemNames      []string `json:"system_names"`      // files and folders
	SystemPrefixes   []string `json:"system_prefixes"`
	PictureEndings   []string `json:"picture_endings"` // an empty file with such an ending is reported
}

var table = leftOut{
	SidecarEndings:   []string{".xmp", ".aae", ".json", ".pp3", ".dop", ".cos", ".cop", ".cot", ".nksc", ".on1", ".vrd", ".arp", ".spd", ".exif"},
	ThumbnailFolders: []string{"@eadir", ".@__thumb", "#recycle", "@recycle", "#snapshot", "@recently-snapshot", ".thumbnails", ".picasaoriginals"},
	SystemNames: []string{
		".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "system volume information", "lost+found",
		".spotlight-v100", ".trashes", ".fseventsd", ".temporaryitems", ".documentrevisions-v100", ".apdisk", ".volumeicon.icns", "icon\r",
	},
	SystemPrefixes: []string{"._", ".trash-", ".fuse_hidden", ".nfs"},
	PictureEndings: []string{
		".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".heic", ".heif", ".hif", ".avif", ".jxl",
		".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".sr2", ".srf", ".dng", ".orf", ".rw2", ".raf", ".pef", ".srw", ".mrw", ".x3f",
	},
}

// reasonFor returns why an import leaves out the file with this path, or "" if it does not. The first part of the path that has a reason
// counts.
func (o *Options) reasonFor(name string) Reason {
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		switch {
		case slices.Contains(table.ThumbnailFolders, part):
			return Thumbnails
		case slices.Contains(table.SystemNames, part), slices.ContainsFunc(table.SystemPrefixes, func(p string) bool { return strings.HasPrefix(part, p) }):
			return System
		case strings.HasPrefix(part, ".") && !o.Hidden:
			return Hidden
		}
	}
	if slices.Contains(table.SidecarEndings, strings.ToLower(path.Ext(name))) {
		return Sidecars
	}
	return ""
}

// isNamedPicture reports whether a file's ending is that of a picture.
func isNamedPicture(name string) bool {
	return slices.Contains(table.PictureEndings, strings.ToLower(path.Ext(name)))
}
