package host

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// call is one call of an import: the instance that calls, its memory and the arguments. It is valid while the import runs. In that time the
// memory neither moves nor grows.
type call struct {
	ctx    context.Context
	in     *Instance
	memory wapi.Memory
	stack  []uint64 // parameters, then the result
}

// u32 returns parameter i, of 32 bits.
func (c *call) u32(i int) uint32 { return uint32(c.stack[i]) }

// set sets the result, of 32 bits.
func (c *call) set(v uint32) { c.stack[0] = uint64(v) }

// view returns a range of the memory. If the range is not within the memory, view ends the instance.
func (c *call) view(address, n uint32) []byte {
	p, ok := c.memory.Read(address, n)
	if !ok {
		c.end(fmt.Errorf("%w: %d bytes at %d of %d", abi.ErrRange, n, address, c.memory.Size()))
	}
	return p
}

// bytes returns the range with the address in parameter i and the length in parameter i+1.
func (c *call) bytes(i int) []byte { return c.view(c.u32(i), c.u32(i+1)) }

// bound returns a copy of the range that bytes(i) returns, as the upper bound of keys. The copy of an empty range is not nil. bound returns
// nil, for no upper bound, if the length is math.MaxUint32.
func (c *call) bound(i int) []byte {
	if c.u32(i+1) == math.MaxUint32 {
		return nil
	}
	return append([]byte{}, c.bytes(i)...)
}

// text returns the range that bytes(i) returns, as a string.
func (c *call) text(i int) string { return string(c.bytes(i)) }

// hash returns the 32 bytes at the address in parameter i.
func (c *call) hash(i int) *[32]byte { return (*[32]byte)(c.view(c.u32(i), 32)) }

// end stops the guest and does not return. The running call of the guest returns err, and the guest counts as failed.
func (c *call) end(err error) { panic(err) }

// instanceKey is the context key of the instance that calls an import. wazero passes an import only the context of the call and the
// module.
type instanceKey struct{}

// hostFunc is an import that is implemented in Go.
type hostFunc func(c *call)

// Call implements [wapi.GoModuleFunction].
func (f hostFunc) Call(ctx context.Context, m wapi.Module, stack []uint64) {
	in, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		panic(fmt.Errorf("%w: the module ran before it was initialised", ErrModule))
	}
	f(&call{ctx: ctx, in: in, memory: m.Memory(), stack: stack})
}

// hostImport is a function of module sightline.
type hostImport struct {
	hostFunc
	name            string
	params, results []wapi.ValueType
}

// none returns an import without a result.
func none(name, params string, f hostFunc) hostImport {
	return hostImport{f, name, kernels.Types(params), nil}
}

// short returns an import with a result of 32 bits.
func short(name, params string, f func(c *call) int32) hostImport {
	return hostImport{func(c *call) { c.set(uint32(f(c))) }, name, kernels.Types(params), kernels.Types("i")}
}

// long returns an import with a result of 64 bits.
func long(name, params string, f func(c *call) int64) hostImport {
	return hostImport{func(c *call) { c.stack[0] = wapi.EncodeI64(f(c)) }, name, kernels.Types(params), kernels.Types("I")}
}

// imports call the functions of package hostcalls, in the order of wasm/README.md.
var imports = []hostImport{
	long("now", "", func(c *call) int64 { return c.in.host.Now() }),
	none("random", "ii", func(c *call) { c.in.host.Random(c.bytes(0)) }),
	none("log", "iii", func(c *call) { c.in.host.Log(int32(c.u32(0)), line(c.bytes(1))) }),
	long("bundle", "iiii", func(c *call) int64 { return c.in.host.Bundle(c.text(0), c.bytes(2)) }),
	long("older", "iiiii", func(c *call) int64 { return c.in.host.Older(c.hash(0), c.text(1), c.bytes(3)) }),
	long("kv_get", "iiiii", func(c *call) int64 { return c.in.host.KVGet(c.u32(0), c.bytes(1), c.bytes(3)) }),
	long("kv_scan", "iiiiii", func(c *call) int64 { return c.in.host.KVScan(c.u32(0), c.bytes(1), c.bound(3), c.u32(5) != 0) }),
	long("kv_next", "iii", func(c *call) int64 { return c.in.host.KVNext(c.u32(0), c.bytes(1)) }),
	none("kv_end", "i", func(c *call) { c.in.host.KVEnd(c.u32(0)) }),
	short("kv_snapshot", "", func(c *call) int32 { return int32(c.in.host.KVSnapshot()) }),
	none("kv_release", "i", func(c *call) { c.in.host.KVRelease(c.u32(0)) }),
	short("kv_apply", "ii", kvApply),
	short("kv_commit", "ii", kvCommit),
	short("kv_room", "", func(c *call) int32 { return c.in.host.KVRoom() }),
	short("kv_compact", "iiii", func(c *call) int32 { return c.in.host.KVCompact(c.bytes(0), c.bound(2)) }),
	long("file_size", "i", func(c *call) int64 { return c.in.host.FileSize(c.u32(0)) }),
	short("file_read", "iIii", func(c *call) int32 { return c.in.host.FileRead(c.u32(0), int64(c.stack[1]), c.bytes(2)) }),
	short("file_write", "iIii", func(c *call) int32 { return c.in.host.FileWrite(c.u32(0), int64(c.stack[1]), c.bytes(2)) }),
	short("file_truncate", "iI", func(c *call) int32 { return c.in.host.FileTruncate(c.u32(0), int64(c.stack[1])) }),
	short("file_sync", "i", func(c *call) int32 { return c.in.host.FileSync(c.u32(0)) }),
	short("picture_add", "iiiiIi", pictureAdd),
	short("picture_release", "i", func(c *call) int32 { return c.in.host.PictureRelease(c.hash(0)) }),
	short("picture_drop", "i", func(c *call) int32 { return c.in.host.PictureDrop(c.hash(0)) }),
	long("picture_lookup", "iii", pictureLookup),
	short("picture_has", "i", func(c *call) int32 { return c.in.host.PictureHas(c.hash(0)) }),
	long("picture_get", "iii", func(c *call) int64 { return c.in.host.PictureGet(c.hash(0), c.bytes(1)) }),
	short("picture_put", "iii", func(c *call) int32 { return c.in.host.PicturePut(c.hash(0), c.bytes(1)) }),
	long("register_seq", "", func(c *call) int64 { return c.in.host.AppRecordSeq() }),
	short("register_take", "Iii", func(c *call) int32 { return c.in.host.RegisterTake(int64(c.stack[0]), c.bytes(1)) }),
	long("token_issue", "iiii", func(c *call) int64 { return c.in.host.TokenIssue(c.bytes(0), c.bytes(2)) }),
	long("token_read", "iiii", func(c *call) int64 { return c.in.host.TokenRead(c.text(0), c.bytes(2)) }),
	long("count", "ii", func(c *call) int64 { return c.in.host.Count(c.bytes(0)) }),
}

// maxLine is the maximum length of a guest's log line.
const maxLine = 4 << 10

// line returns a line of the log, cut to maxLine bytes.
func line(text []byte) string {
	if len(text) > maxLine {
		text = text[:maxLine]
		for len(text) > 0 && !utf8.Valid(text[len(text)-1:]) {
			text = text[:len(text)-1]
		}
	}
	return string(text)
}

func kvApply(c *call) int32 {
	c.in.writes++
	code := c.in.host.KVApply(c.bytes(0))
	if code == 0 {
		c.in.rt.running.wrote(c.in, c.in.rt.o.Now())
	}
	return code
}

func kvCommit(c *call) int32 {
	c.in.writes++
	c.in.commits++
	return c.in.host.KVCommit(c.bytes(0))
}

func pictureAdd(c *call) int32 {
	const room = abi.PictureNameBytes + 32
	dst := c.view(c.u32(5), room)
	return c.in.host.PictureAdd(c.bytes(0), c.text(2), int64(c.stack[4]), (*[room]byte)(dst))
}

func pictureLookup(c *call) int64 {
	name := c.view(c.u32(0), abi.PictureNameBytes)
	return c.in.host.PictureLookup((*[abi.PictureNameBytes]byte)(name), c.bytes(1))
}
