package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"unicode/utf8"

	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// call is one call of an import: who calls, with what, and in which memory. It lives as long as
// the import runs, in which the memory can neither move nor grow.
type call struct {
	ctx    context.Context
	in     *Instance
	memory wapi.Memory
	stack  []uint64 // parameters, then the result
}

// u32 is a parameter of 32 bits.
func (c *call) u32(i int) uint32 { return uint32(c.stack[i]) }

// set answers a number of 32 bits.
func (c *call) set(v uint32) { c.stack[0] = uint64(v) }

// view is a range of the memory. One that does not lie in it ends the instance.
func (c *call) view(address, n uint32) []byte {
	p, ok := c.memory.Read(address, n)
	if !ok {
		c.end(fmt.Errorf("%w: %d bytes at %d of %d", abi.ErrWild, n, address, c.memory.Size()))
	}
	return p
}

// bytes is the range that parameters i and i+1 say.
func (c *call) bytes(i int) []byte { return c.view(c.u32(i), c.u32(i+1)) }

// text is such a range as a string.
func (c *call) text(i int) string { return string(c.bytes(i)) }

// fill answers with the length of data, which is written to the room that parameters i and i+1
// say, where it fits.
func (c *call) fill(i int, data []byte, err error) {
	room := c.bytes(i)
	if err != nil {
		c.refuse(err)
		return
	}
	if len(data) <= len(room) {
		copy(room, data)
	}
	c.stack[0] = uint64(len(data))
}

// refuse answers an i64 with an error's number, negated.
func (c *call) refuse(err error) { c.stack[0] = wapi.EncodeI64(-int64(abi.ErrnoOf(err))) }

// did answers an i32 with an error's number, 0 for nil.
func (c *call) did(err error) { c.set(uint32(abi.ErrnoOf(err))) }

// end stops the guest: the call that it is in returns err, and it is dead. It does not return.
func (c *call) end(err error) { panic(err) }

// instanceKey finds the instance that an import is called by: wazero passes the context of a
// call on to imports, and besides it only the module.
type instanceKey struct{}

// hostFunc is an import in Go.
type hostFunc func(c *call)

// Call implements [wapi.GoModuleFunction].
func (f hostFunc) Call(ctx context.Context, m wapi.Module, stack []uint64) {
	in, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		panic(fmt.Errorf("%w: the module ran before it was initialised", ErrModule))
	}
	f(&call{ctx: ctx, in: in, memory: m.Memory(), stack: stack})
}

// imported is a function of module sightline.
type imported struct {
	hostFunc
	name            string
	params, results []wapi.ValueType
}

// status makes an import that answers with the number of an error, 0 for nil.
func status(f func(c *call) error) hostFunc {
	return func(c *call) { c.did(f(c)) }
}

// filled makes an import that answers with bytes, in the room that parameters i and i+1 say; see [call.fill].
func filled(i int, f func(c *call) ([]byte, error)) hostFunc {
	return func(c *call) {
		data, err := f(c)
		c.fill(i, data, err)
	}
}

func lend(name, params, results string, f hostFunc) imported {
	return imported{f, name, kernels.Types(params), kernels.Types(results)}
}

// imports are what a host lends, in the order of wasm/README.md: parameters, result, and which of
// the memory is read (r) and written (w).
var imports = []imported{
	lend("now", "", "I", now),
	lend("random", "ii", "", random),                             // w dst
	lend("log", "iii", "", logLine),                              // r line
	lend("bundle", "iiii", "I", bundle),                          // r name, w dst
	lend("older", "iiiii", "I", older),                           // r base, name, w dst
	lend("kv_get", "iiiii", "I", filled(3, kvGet)),               // r key, w dst
	lend("kv_scan", "iiiiii", "I", kvScan),                       // r lo, hi
	lend("kv_next", "iii", "I", kvNext),                          // w dst
	lend("kv_end", "i", "", kvEnd),                               //
	lend("kv_snapshot", "", "i", kvSnapshot),                     //
	lend("kv_release", "i", "", kvRelease),                       //
	lend("kv_apply", "ii", "i", status(kvApply)),                 // r batch
	lend("kv_commit", "ii", "i", status(kvCommit)),               // r batch
	lend("kv_room", "", "i", status(kvRoom)),                     //
	lend("kv_compact", "iiii", "i", status(kvCompact)),           // r lo, hi
	lend("file_size", "i", "I", fileSize),                        //
	lend("file_read", "iIii", "i", status(fileRead)),             // w dst
	lend("file_write", "iIii", "i", status(fileWrite)),           // r src
	lend("file_truncate", "iI", "i", status(fileTruncate)),       //
	lend("file_sync", "i", "i", status(fileSync)),                //
	lend("picture_add", "iiiiIi", "i", status(pictureAdd)),       // r data, type, w 48 bytes
	lend("picture_release", "i", "i", status(pictureRelease)),    // r 32 bytes
	lend("picture_drop", "i", "i", status(pictureDrop)),          // r 32 bytes
	lend("picture_lookup", "iii", "I", filled(1, pictureLookup)), // r 16 bytes, w dst
	lend("picture_has", "i", "i", status(pictureHas)),            // r 32 bytes
	lend("picture_get", "iii", "I", filled(1, pictureGet)),       // r 32 bytes, w dst
	lend("picture_put", "iii", "i", status(picturePut)),          // r 32 bytes, data
	lend("register_seq", "", "I", registerSeq),                   //
	lend("register_take", "Iii", "i", status(registerTake)),      // r data
	lend("token_issue", "iiii", "I", filled(2, tokenIssue)),      // r claims, w dst
	lend("token_read", "iiii", "I", filled(2, tokenRead)),        // r token, w dst
	lend("count", "ii", "I", filled(0, count)),                   // w dst
}

// errNotLent is what an import answers whose capability this host does not have.
var errNotLent = errors.New("not provided by the host")

func now(c *call) { c.stack[0] = wapi.EncodeI64(c.in.lent.Clock().UnixNano()) }

func random(c *call) {
	if _, err := io.ReadFull(c.in.lent.Rand, c.bytes(0)); err != nil {
		c.end(fmt.Errorf("random source: %w", err))
	}
}

// maxLine is how much of a line a guest may log.
const maxLine = 4 << 10

func logLine(c *call) {
	line := c.bytes(1)
	if len(line) > maxLine {
		line = line[:maxLine]
		for len(line) > 0 && !utf8.Valid(line[len(line)-1:]) {
			line = line[:len(line)-1]
		}
	}
	level := max(slog.LevelDebug, min(slog.Level(int32(c.u32(0))), slog.LevelError))
	c.in.log.Log(c.ctx, level, "guest", "line", string(line))
}

func bundle(c *call) {
	name := c.text(0)
	c.file(2, c.in.lent.Bundles, name)
}

func older(c *call) {
	base := [32]byte(c.view(c.u32(0), 32))
	name := c.text(1)
	if c.in.lent.Older == nil {
		c.fill(3, nil, fs.ErrNotExist)
		return
	}
	files, err := c.in.lent.Older(base)
	if err != nil {
		c.fill(3, nil, err)
		return
	}
	if name == "" {
		list, err := names(files)
		c.fill(3, []byte(strings.Join(list, "\n")), err)
		return
	}
	c.file(3, files, name)
}

// file answers with a file's bytes. One that does not fit is not read.
func (c *call) file(i int, files fs.FS, name string) {
	if files == nil {
		c.fill(i, nil, errNotLent)
		return
	}
	info, err := fs.Stat(files, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > math.MaxInt32) {
		err = fs.ErrInvalid
	}
	if err != nil {
		c.fill(i, nil, err)
		return
	}
	if info.Size() > int64(c.u32(i+1)) {
		c.bytes(i)
		c.stack[0] = uint64(info.Size())
		return
	}
	data, err := fs.ReadFile(files, name)
	c.fill(i, data, err)
}
