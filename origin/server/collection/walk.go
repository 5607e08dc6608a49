package collection

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// Errors of files that a walk cannot read.
var (
	errEmpty    = errors.New("the file is empty")
	errRepeat   = errors.New("link to a file or folder that was already read")
	errNoTarget = errors.New("links cannot be followed here")
)

// FoundFile is a file that a walk found.
type FoundFile struct {
	Name string // path below the source, of any bytes; see [PrintableName]
	Path string // path to open it, which differs from Name behind a link
	Err  error  // why it cannot be read; nil for a picture or video
}

// Listing is the result of a walk.
type Listing struct {
	Found    []FoundFile         // pictures, videos, and files and folders that cannot be read, in the order of their names
	LeftOut  map[Reason]int      // number of files that were left out on purpose
	Sidecars map[string]*Sidecar // what sidecars say, by the name of the picture; only with Options.Sidecars
}

// LinkResolver is a file system with symbolic links.
type LinkResolver interface {
	// Follow returns the path of the target of a link, without links in it. If the path is not below the root, it returns an error.
	Follow(name string) (string, error)
}

// lister is an archive. It lists its files without folders.
type lister interface {
	list(w *walk)
}

// walk is a walk through a folder or an archive:
//
//	folders ──▶ files ──▶ table of names ──▶ first bytes ──▶ pictures
//	links   ──▶ later, if what they lead to was not read
//
// It follows links last, so that a file has the name of its real folder.
type walk struct {
	Listing
	files   *Files
	options *Options
	links   []FoundFile
	beside  []FoundFile     // sidecars
	seen    map[string]bool // paths of folders, and of files behind links
}

// Walk finds the pictures and videos in a folder or an archive. It continues after files and folders that it cannot read, and lists them.
func Walk(files Files, o Options) *Listing {
	w := &walk{Listing: Listing{LeftOut: map[Reason]int{}}, files: &files, options: &o, seen: map[string]bool{}}
	if archive, ok := files.FS.(lister); ok {
		archive.list(w)
	} else {
		w.dir(".", ".")
	}
	for len(w.links) > 0 {
		link := w.links[0]
		w.links = w.links[1:]
		if err := w.follow(link); err != nil {
			w.fail(link.Name, err)
		}
	}
	if o.Sidecars {
		w.attach()
	}
	slices.SortFunc(w.Found, func(a, b FoundFile) int { return strings.Compare(a.Name, b.Name) })
	return &w.Listing
}

// fail lists a file or folder that cannot be read, unless the walk leaves it out anyway.
func (w *walk) fail(name string, err error) {
	if name == "." || w.options.reasonFor(name) == "" {
		w.Found = append(w.Found, FoundFile{Name: name, Err: err})
	}
}

// dir walks a folder. path is its path to open, without links.
func (w *walk) dir(name, path string) {
	if w.seen[path] {
		return
	}
	leftOut := name != "." && w.options.reasonFor(name) != ""
	w.seen[path] = !leftOut
	entries, err := fs.ReadDir(w.files.FS, path)
	if err != nil { // the entries read before are in entries
		w.fail(name, err)
	}
	for _, entry := range entries {
		below, to := join(name, entry.Name()), join(path, entry.Name())
		switch kind := entry.Type(); {
		case kind.IsDir():
			w.dir(below, to)
		case kind.IsRegular():
			w.file(below, to)
		case w.options.reasonFor(below) != "":
			w.LeftOut[w.options.reasonFor(below)]++
		case kind == fs.ModeSymlink:
			w.links = append(w.links, FoundFile{Name: below, Path: to})
		default:
			w.LeftOut[System]++ // a device, pipe or socket
		}
	}
}

// file lists a file if it is a picture or a video.
func (w *walk) file(name, path string) {
	if reason := w.options.reasonFor(name); reason != "" {
		if reason == Sidecars && w.options.Sidecars && isRead(name) {
			w.beside = append(w.beside, FoundFile{Name: name, Path: path})
			return
		}
		w.LeftOut[reason]++
		return
	}
	if w.seen[path] {
		return
	}
	switch start, err := firstBytes(w.files.FS, path); {
	case err != nil:
		w.fail(name, err)
	case w.files.IsPicture(start):
		w.Found = append(w.Found, FoundFile{Name: name, Path: path})
	case len(start) == 0 && isNamedPicture(name):
		w.fail(name, errEmpty)
	default:
		w.LeftOut[Unknown]++
	}
}

// follow walks the target of a link. If the walk has read the target, follow returns an error.
func (w *walk) follow(link FoundFile) error {
	follower, ok := w.files.FS.(LinkResolver)
	if !ok {
		return errNoTarget
	}
	target, err := follower.Follow(link.Path)
	if err != nil {
		return err
	}
	info, err := fs.Stat(w.files.FS, target)
	if err != nil {
		return err
	}
	if reason := (&Options{Hidden: true}).reasonFor(target); reason != "" { // a link may lead to a hidden file, as those of git-annex do
		w.LeftOut[reason]++
		return nil
	}
	folder, base := ".", target
	if i := strings.LastIndexByte(target, '/'); i >= 0 {
		folder, base = target[:i], target[i+1:]
	}
	switch {
	case w.seen[target], !info.IsDir() && w.seen[folder] && w.options.reasonFor(base) == "":
		return errRepeat
	case info.IsDir():
		w.dir(link.Name, target)
	case info.Mode().IsRegular():
		w.file(link.Name, target)
		w.seen[target] = true
	default:
		w.LeftOut[System]++
	}
	return nil
}

func join(folder, name string) string {
	if folder == "." {
		return name
	}
	return folder + "/" + name
}

func firstBytes(fsys fs.FS, name string) (start []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	start, err = io.ReadAll(io.LimitReader(f, 1<<10))
	return start, errors.Join(err, f.Close())
}

// PrintableName returns a file's name as text. Each byte that is not UTF-8 becomes an escape such as \xe9.
func PrintableName(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}
