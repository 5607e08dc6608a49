package host

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sightline-dev/sightline/core/blob"
)

// Cache stores compiled modules between two starts. The process will run this code, and wazero trusts a file of its cache. So each file
// is sealed, and its seal is checked before wazero sees it:
//
//	magic "SLSEAL1\n"                     8 bytes
//	HMAC-SHA256 of all that follows      32, under the node's key, with the file's name
//	bytes of the name                     4, little-endian
//	the name under which wazero asks for it, with its folder
//	the bytes that wazero wrote
//
// A file counts as missing if it is damaged or belongs to another node or another module. The module is then compiled again and the file
// replaced. Programs with several versions may share a folder, because the name of a file has the versions, see [CacheName]. wazero itself
// reads and writes a temporary folder that only this user can access. The folder serves one compilation and is deleted at once.
type Cache struct {
	Files blob.FS  // a folder that only this user can access
	Key   [32]byte // the node's key, which must be stored outside the folder

	// Scratch creates an empty folder that only this user can access, and returns its path. done deletes the folder.
	Scratch func() (dir string, files blob.FS, done func(), err error)
}

const (
	sealMagic   = "SLSEAL1\n"
	sealBytes   = len(sealMagic) + sha256.Size
	maxCompiled = 256 << 20 // maximum size of a file in bytes; our module needs a tenth of it
	maxName     = 4096      // maximum length in bytes of the name under which wazero asks for a file
	unsealed    = "unsealed"
)

var errSeal = errors.New("compiled module has an invalid seal")

// CacheName returns the name of the file with the compiled form of a module. It has the module's SHA-256, and the version and the target of
// the compiler, which only uses its own files.
func CacheName(hash [sha256.Size]byte) string {
	return hex.EncodeToString(hash[:]) + "-" + compiler()
}

// compiler returns the version of wazero in this program, and the target of its code.
var compiler = sync.OnceValue(func() string {
	version := "unknown" // in the programs of tests
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/tetratelabs/wazero" {
				version = m.Version
			}
		}
	}
	return version + "-" + runtime.GOARCH
})

// compiledModule is a module that can be instantiated.
type compiledModule struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	isNew   bool // it was compiled now, not loaded from the cache
	cache   wazero.CompilationCache
}

// compile creates a runtime, and compiles a module in it or loads the compiled module from the cache. If the cache fails, compile compiles
// the module and returns no error.
func compile(ctx context.Context, config wazero.RuntimeConfig, module []byte, cache *Cache, name string) (*compiledModule, error) {
	if cache == nil {
		return compileWith(ctx, config, module, nil)
	}
	dir, files, done, err := cache.Scratch()
	if err != nil {
		return compileWith(ctx, config, module, nil)
	}
	defer done()
	restored, err := cache.restore(files, name)
	if err != nil {
		restored = ""
	}
	folder, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return compileWith(ctx, config, module, nil)
	}
	c, err := compileWith(ctx, config.WithCompilationCache(folder), module, folder)
	switch {
	case err != nil && restored != "": // the seal is valid, but this version of wazero cannot use the file
		_ = cache.Files.Remove(name)
		return compileWith(ctx, config, module, nil)
	case err != nil:
		return nil, err
	}
	// wazero does not use a file of another version, and writes a new one.
	written, err := otherFile(files, restored)
	if err == nil && written == "" && restored != "" {
		return c, nil
	}
	c.isNew = true
	if written != "" {
		_ = cache.store(files, name, written, path.Base(dir))
	}
	return c, nil
}

// otherFile returns the path of a file in a folder of the scratch folder, other than the path not. It returns "" if there is no such file.
func otherFile(scratch blob.FS, not string) (string, error) {
	folders, err := scratch.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		files, err := scratch.ReadDir(folder)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if found := path.Join(folder, file); found != not {
				return found, nil
			}
		}
	}
	return "", nil
}

func compileWith(ctx context.Context, config wazero.RuntimeConfig, module []byte, cache wazero.CompilationCache) (*compiledModule, error) {
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	c := &compiledModule{runtime: wazero.NewRuntimeWithConfig(ctx, config), isNew: cache == nil, cache: cache}
	var err error
	if c.module, err = c.runtime.CompileModule(ctx, module); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModule, err), c.close(ctx))
	}
	return c, nil
}

// close closes the runtime with all of its instances, and frees the compiled code.
func (c *compiledModule) close(ctx context.Context) error {
	err := c.runtime.Close(ctx)
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(ctx))
	}
	return err
}

// restore copies the content of a sealed file to the path where wazero looks for it, and returns that path. It does not need the content
// in memory, because wazero finds the copy only after restore has checked the seal and renamed the copy.
func (c *Cache) restore(scratch blob.FS, name string) (file string, err error) {
	if size, err := c.Files.Size(name); err != nil || size > maxCompiled {
		return "", errors.Join(errSeal, err)
	}
	f, err := c.Files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if file, err = c.unseal(name, f, scratch); err != nil {
		return "", err
	}
	if err := scratch.MkdirAll(path.Dir(file)); err != nil {
		return "", err
	}
	return file, scratch.Rename(unsealed, file)
}

// store seals a file that wazero wrote. No other process has the same process name, so several may store the same module.
func (c *Cache) store(scratch blob.FS, name, file, process string) error {
	unfinished := name + "." + process
	sealed, err := c.Files.Create(unfinished)
	if err != nil {
		return err
	}
	err = c.seal(sealed, name, scratch, file)
	if err == nil {
		err = sealed.Sync()
	}
	if err = errors.Join(err, sealed.Close()); err == nil {
		err = c.Files.Rename(unfinished, name)
	}
	if err != nil {
		err = errors.Join(err, c.Files.Remove(unfinished))
	}
	return err
}

func (c *Cache) mac(name string) hash.Hash {
	h := hmac.New(sha256.New, c.Key[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(name))))
	io.WriteString(h, name)
	return h
}

// seal writes a file of the scratch folder, with its seal in front, to a writer. A compiled module may be large, so seal reads the file
// twice instead of loading it into memory.
func (c *Cache) seal(to io.Writer, name string, scratch blob.FS, file string) error {
	head := append(binary.LittleEndian.AppendUint32(nil, uint32(len(file))), file...)
	mac := c.mac(name)
	mac.Write(head)
	if err := copyFile(mac, scratch, file); err != nil {
		return err
	}
	if _, err := to.Write(append(mac.Sum([]byte(sealMagic)), head...)); err != nil {
		return err
	}
	return copyFile(to, scratch, file)
}

// unseal copies the content of a sealed file into the file unsealed of the scratch folder, and returns the name under which wazero asks
// for it.
func (c *Cache) unseal(name string, sealed io.Reader, scratch blob.FS) (file string, err error) {
	mac := c.mac(name)
	var head [sealBytes]byte
	var length [4]byte
	if _, err := io.ReadFull(sealed, head[:]); err != nil || !bytes.HasPrefix(head[:], []byte(sealMagic)) {
		return "", errSeal
	}
	rest := io.TeeReader(sealed, mac)
	if _, err := io.ReadFull(rest, length[:]); err != nil {
		return "", errSeal
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxName {
		return "", errSeal
	}
	entryName := make([]byte, n)
	if _, err := io.ReadFull(rest, entryName); err != nil {
		return "", errSeal
	}
	copied, err := scratch.Create(unsealed)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(copied, rest)
	if err = errors.Join(err, copied.Close()); err == nil && !hmac.Equal(head[len(sealMagic):], mac.Sum(nil)) {
		err = errSeal
	}
	if err != nil {
		return "", errors.Join(err, scratch.Remove(unsealed))
	}
	return string(entryName), nil
}

// copyFile writes the content of a file to a writer.
func copyFile(to io.Writer, files blob.FS, name string) (err error) {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(to, f)
	return err
}
