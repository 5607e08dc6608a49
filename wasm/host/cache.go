package host

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sightline-dev/sightline/core/blob"
)

// Cache keeps compiled modules between two starts. What is compiled is code that the process
// will run, and wazero takes a file of its cache for what it compiled itself. So each is
// sealed, and its seal is checked before wazero sees it:
//
//	magic "SLSEAL1\n"                     8 bytes
//	HMAC-SHA256 of all that follows      32, under the node's key, with the file's name
//	bytes of the name                     4, little-endian
//	the name under which wazero asks for it, with its folder
//	what wazero wrote
//
// A file that is damaged, another's, or another module's is no file: the module is compiled
// anew and the file replaced. wazero itself reads and writes a scratch folder, which is made for
// one compilation, can be entered by this user alone, and is removed at once.
type Cache struct {
	Files blob.FS  // a folder that this user alone can enter
	Key   [32]byte // the node's own, kept elsewhere than in the folder

	// Scratch makes an empty folder that this user alone can enter, and says its path.
	Scratch func() (dir string, files blob.FS, done func(), err error)
}

const (
	sealMagic   = "SLSEAL1\n"
	sealBytes   = len(sealMagic) + sha256.Size
	maxCompiled = 256 << 20 // bytes of a file; our own takes a tenth
)

var errSeal = errors.New("compiled module has an invalid seal")

// compiled is a module that can be instantiated.
type compiled struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	made    bool // compiled at this start
	cache   wazero.CompilationCache
}

// compile makes a runtime and compiles a module in it, or has it read what it was compiled to.
// The cache fails nothing: without it each start compiles.
func compile(ctx context.Context, config wazero.RuntimeConfig, module []byte, cache *Cache, name string) (*compiled, error) {
	if cache == nil {
		return compileWith(ctx, config, module, nil)
	}
	dir, files, done, err := cache.Scratch()
	if err != nil {
		return compileWith(ctx, config, module, nil)
	}
	defer done()
	restored := cache.restore(files, name) == nil
	folder, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return compileWith(ctx, config, module, nil)
	}
	c, err := compileWith(ctx, config.WithCompilationCache(folder), module, folder)
	switch {
	case err != nil && restored: // sealed by us, and of no use to this wazero
		return compileWith(ctx, config, module, nil)
	case err != nil || restored:
		return c, err
	}
	c.made = true
	_ = cache.store(files, name)
	return c, nil
}

func compileWith(ctx context.Context, config wazero.RuntimeConfig, module []byte, cache wazero.CompilationCache) (*compiled, error) {
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	c := &compiled{runtime: wazero.NewRuntimeWithConfig(ctx, config), made: cache == nil, cache: cache}
	var err error
	if c.module, err = c.runtime.CompileModule(ctx, module); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrModule, err), c.close(ctx))
	}
	return c, nil
}

// close ends the runtime with all of its instances, and frees the code.
func (c *compiled) close(ctx context.Context) error {
	err := c.runtime.Close(ctx)
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(ctx))
	}
	return err
}

// restore puts a sealed file where wazero looks for it.
func (c *Cache) restore(scratch blob.FS, name string) error {
	sealed, err := readFile(c.Files, name, maxCompiled)
	if err != nil {
		return err
	}
	file, compiled, err := c.unseal(name, sealed)
	if err != nil {
		return err
	}
	if err := scratch.MkdirAll(path.Dir(file)); err != nil {
		return err
	}
	return writeFile(scratch, file, compiled, false)
}

// store seals the one file that wazero wrote.
func (c *Cache) store(scratch blob.FS, name string) error {
	folders, err := scratch.ReadDir(".")
	if err != nil || len(folders) != 1 {
		return fmt.Errorf("compilation cache has %d folders: %w", len(folders), err)
	}
	files, err := scratch.ReadDir(folders[0])
	if err != nil || len(files) != 1 {
		return fmt.Errorf("compilation cache has %d files: %w", len(files), err)
	}
	file := path.Join(folders[0], files[0])
	compiled, err := readFile(scratch, file, maxCompiled)
	if err != nil {
		return err
	}
	unfinished := name + ".new"
	if err := c.Files.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(c.Files, unfinished, c.seal(name, file, compiled), true); err != nil {
		return err
	}
	return c.Files.Rename(unfinished, name)
}

func (c *Cache) mac(name string, rest []byte) []byte {
	h := hmac.New(sha256.New, c.Key[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(name))))
	io.WriteString(h, name)
	h.Write(rest)
	return h.Sum(nil)
}

func (c *Cache) seal(name, file string, compiled []byte) []byte {
	rest := make([]byte, 0, 4+len(file)+len(compiled))
	rest = binary.LittleEndian.AppendUint32(rest, uint32(len(file)))
	rest = append(append(rest, file...), compiled...)
	return append(append([]byte(sealMagic), c.mac(name, rest)...), rest...)
}

func (c *Cache) unseal(name string, sealed []byte) (file string, compiled []byte, err error) {
	if len(sealed) < sealBytes+4 || !bytes.HasPrefix(sealed, []byte(sealMagic)) {
		return "", nil, errSeal
	}
	mac, rest := sealed[len(sealMagic):sealBytes], sealed[sealBytes:]
	if !hmac.Equal(mac, c.mac(name, rest)) {
		return "", nil, errSeal
	}
	n := uint64(binary.LittleEndian.Uint32(rest))
	if rest = rest[4:]; n > uint64(len(rest)) {
		return "", nil, errSeal
	}
	return string(rest[:n]), rest[n:], nil
}

func readFile(files blob.FS, name string, most int64) (data []byte, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(data)) > most {
		err = errSeal
	}
	return data, err
}

// writeFile writes a file that is not there, synced or not.
func writeFile(files blob.FS, name string, data []byte, sync bool) error {
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
