package collection

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Errors of the entries of archives.
var (
	errEncrypted = errors.New("the entry is encrypted")
	errZipLink   = errors.New("symbolic link in an archive")
)

// packed is the content of a zip file. Its names have slashes, and neither drive letters nor "..". If names are equal, only the first entry
// has the name as its path.
type packed struct {
	files map[string]*zip.File // by path to open
	names []FoundFile
}

// OpenZip returns the files of an archive. It reads names as their programs wrote them: as UTF-8 if the entry has the flag for it or the
// Unicode Path field, otherwise as CP437.
func OpenZip(z *zip.Reader) fs.FS {
	p := &packed{files: map[string]*zip.File{}}
	for _, f := range z.File {
		name := entryName(f)
		if name == "" || f.Mode().IsDir() || strings.HasSuffix(f.Name, "/") || strings.HasSuffix(f.Name, `\`) {
			continue
		}
		at := name
		for n := 1; p.files[at] != nil; n++ {
			at = name + "\x00" + strconv.Itoa(n)
		}
		p.files[at] = f
		p.names = append(p.names, FoundFile{Name: name, Path: at})
	}
	return p
}

// list implements lister.
func (p *packed) list(w *walk) {
	for _, found := range p.names {
		if p.files[found.Path].Mode()&fs.ModeSymlink != 0 {
			w.fail(found.Name, errZipLink)
			continue
		}
		w.file(found.Name, found.Path)
	}
}

// Open implements fs.FS.
func (p *packed) Open(name string) (fs.File, error) {
	f := p.files[name]
	switch {
	case f == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case f.Mode()&fs.ModeSymlink != 0:
		return nil, errZipLink
	case f.Flags&1 != 0:
		return nil, errEncrypted
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return entry{r, f.FileInfo()}, nil
}

// entry is an open file of an archive.
type entry struct {
	io.ReadCloser
	info fs.FileInfo
}

func (e entry) Stat() (fs.FileInfo, error) { return e.info, nil }

// Numbers of the format of zip files.
const (
	flagUTF8         = 0x800
	fieldUnicodePath = 0x7075
	madeByUnix       = 3
	madeByMac        = 19
)

var driveLetter = regexp.MustCompile(`^[A-Za-z]:/`)

// entryName returns the path of an entry below the archive, or "" for one without a name.
func entryName(f *zip.File) string {
	name := strings.ReplaceAll(decodedName(f), `\`, "/")
	name = driveLetter.ReplaceAllString(name, "")
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

func decodedName(f *zip.File) string {
	isText := utf8.ValidString(f.Name)
	if f.Flags&flagUTF8 != 0 {
		return f.Name
	}
	if name, ok := unicodePath(f); ok {
		return name
	}
	// Programs of Unix and macOS write UTF-8 without the flag.
	if madeBy := f.CreatorVersion >> 8; isText && (madeBy == madeByUnix || madeBy == madeByMac) {
		return f.Name
	}
	return fromCP437(f.Name)
}

// unicodePath returns the name in the Unicode Path field of Info-ZIP: a version, the CRC-32 of the other name, and UTF-8.
func unicodePath(f *zip.File) (name string, ok bool) {
	for b := f.Extra; len(b) >= 4; {
		id, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; n > len(b) {
			return "", false
		}
		field := b[:n]
		b = b[n:]
		if id == fieldUnicodePath && n > 5 && field[0] == 1 && binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(f.Name)) {
			return string(field[5:]), utf8.Valid(field[5:])
		}
	}
	return "", false
}

// cp437 has the upper half of code page 437.
var cp437 = []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0")

func fromCP437(name string) string {
	if !slices.ContainsFunc([]byte(name), func(c byte) bool { return c >= utf8.RuneSelf }) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			b.WriteRune(cp437[c-utf8.RuneSelf])
		}
	}
	return b.String()
}
