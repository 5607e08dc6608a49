package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// The functions of wasi_snapshot_preview1 that the Go runtime inside the guest uses. There are no arguments, no environment, no file
// systems and no sockets.
//
//	function             reads            writes            answer
//	clock_time_get                        u64               nanoseconds since the runtime was created
//	random_get                            len bytes         random bytes, for seeds
//	args_sizes_get, environ_sizes_get     two u32           0, 0
//	args_get, environ_get                                   nothing
//	fd_write             vectors          u32               files 1 and 2 go to the log if the guest crashes; others are closed
//	poll_oneoff          subscriptions    events, u32       all events have happened, so the guest never sleeps
//	sched_yield                                             nothing
//	proc_exit                                               ends the instance
//	any other                                               fd_…: the file is closed; others: not supported
const wasiModule = "wasi_snapshot_preview1"

// Error numbers of WASI.
const (
	wasiOK    = 0
	wasiBadF  = 8
	wasiFault = 21
	wasiInval = 28
	wasiNoSys = 52
)

// Sizes of WASI's structures, and limits of this host.
const (
	subscriptionBytes = 48
	eventBytes        = 32
	maxSubscriptions  = 64
	maxVectors        = 64
	maxPrinted        = 8 << 10 // bytes at the end of a guest's output that the host stores
)

var wasi = map[string]struct {
	params string // types of the parameters that an import must have
	do     hostFunc
}{
	"args_get":          {"ii", func(c *call) { c.set(wasiOK) }},
	"args_sizes_get":    {"ii", wasiNone},
	"environ_get":       {"ii", func(c *call) { c.set(wasiOK) }},
	"environ_sizes_get": {"ii", wasiNone},
	"clock_time_get":    {"iIi", wasiClock},
	"random_get":        {"ii", wasiRandom},
	"fd_write":          {"iiii", wasiWrite},
	"poll_oneoff":       {"iiii", wasiPoll},
	"sched_yield":       {"", func(c *call) { c.set(wasiOK) }},
	"proc_exit":         {"i", func(c *call) { panic(sys.NewExitError(c.u32(0))) }},
}

// linkWASI defines the WASI functions that the module imports. It returns ErrModule if an import has another type than WASI's.
func linkWASI(ctx context.Context, r wazero.Runtime, m wazero.CompiledModule) error {
	b := r.NewHostModuleBuilder(wasiModule)
	seen := map[string]bool{}
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != wasiModule || seen[name] {
			continue
		}
		seen[name] = true
		one, known := wasi[name]
		switch {
		case known && !sameTypes(f.ParamTypes(), kernels.Types(one.params)):
			return fmt.Errorf("%w: %s has another type", ErrModule, name)
		case !known && !sameTypes(f.ResultTypes(), kernels.Types("i")):
			return fmt.Errorf("%w: WASI has no %s with this type", ErrModule, name)
		case !known:
			one.do = wasiUnknown(name)
		}
		b.NewFunctionBuilder().WithGoModuleFunction(one.do, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	return nil
}

// wasiUnknown returns a function that only fails, because a guest has no files and no sockets. Names starting with fd_ report a closed
// file, and all others an unsupported function.
func wasiUnknown(name string) hostFunc {
	answer := uint64(wasiNoSys)
	if strings.HasPrefix(name, "fd_") {
		answer = wasiBadF
	}
	return func(c *call) { c.stack[0] = answer }
}

func wasiNone(c *call) {
	binary.LittleEndian.PutUint32(c.view(c.u32(0), 4), 0)
	binary.LittleEndian.PutUint32(c.view(c.u32(1), 4), 0)
	c.set(wasiOK)
}

// wasiClock returns the time since the runtime was created, for every clock. The Go runtime in the guest schedules and collects by it.
// Times in answers come from the import now.
func wasiClock(c *call) {
	d := c.in.rt.o.Now().Sub(c.in.rt.begun)
	binary.LittleEndian.PutUint64(c.view(c.u32(2), 8), uint64(d.Nanoseconds())+1)
	c.set(wasiOK)
}

func wasiRandom(c *call) {
	if _, err := io.ReadFull(c.in.rt.o.Rand, c.bytes(0)); err != nil {
		c.end(fmt.Errorf("random source: %w", err))
	}
	c.set(wasiOK)
}

func wasiWrite(c *call) {
	file, vectors, n := c.u32(0), c.u32(1), c.u32(2)
	if file != 1 && file != 2 {
		c.set(wasiBadF)
		return
	}
	if n > maxVectors {
		c.set(wasiInval)
		return
	}
	var written uint32
	for i := range n {
		v := c.view(vectors+8*i, 8)
		data := c.view(binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
		written += uint32(len(data))
		c.in.print(data)
	}
	binary.LittleEndian.PutUint32(c.view(c.u32(3), 4), written)
	c.set(wasiOK)
}

func wasiPoll(c *call) {
	in, out, n := c.u32(0), c.u32(1), c.u32(2)
	if n == 0 || n > maxSubscriptions {
		c.set(wasiInval)
		return
	}
	for i := range n {
		s := c.view(in+subscriptionBytes*i, subscriptionBytes)
		e := c.view(out+eventBytes*i, eventBytes)
		user, kind := binary.LittleEndian.Uint64(s), s[8]
		clear(e)
		binary.LittleEndian.PutUint64(e, user)
		if e[10] = kind; kind != 0 { // not a clock but a file, and all files are closed
			e[8] = wasiBadF
		}
	}
	binary.LittleEndian.PutUint32(c.view(c.u32(3), 4), n)
	c.set(wasiOK)
}

// print stores the last maxPrinted bytes of the guest's output. They contain the reason of a crash.
func (in *Instance) print(data []byte) {
	if len(data) > maxPrinted {
		data = data[len(data)-maxPrinted:]
	}
	if over := len(in.printed) + len(data) - maxPrinted; over > 0 {
		in.printed = append(in.printed[:0], in.printed[over:]...)
	}
	in.printed = append(in.printed, data...)
}
