package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/wasm/host"
)

// places are the folders in which the compiled module may be, see [server.OpenCodeCache].
type places struct{ user, data string }

// load compiles the program's module, or reads it from the cache. show gets the estimated progress of a compilation in percent.
func (n *Node) load(ctx context.Context, in places, log *slog.Logger, show func(percent int)) (_ *host.Runtime, err error) {
	module, err := wasm.Guest.Read()
	if err != nil {
		return nil, err
	}
	name := host.CacheName(sha256.Sum256(module))
	o := host.Options{Module: module, MemoryPages: uint32(n.memory >> 16), Now: system.Now, Rand: system.Random, Log: log}
	code, err := server.OpenCodeCache(in.user, in.data, server.ModuleCode)
	if err != nil {
		log.Warn("cannot cache compiled modules", "error", err)
		return compile(ctx, o, log, show)
	}
	files, err := system.OpenFolder(code.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	o.Cache = &host.Cache{Files: files, Key: code.Key, Scratch: system.Scratch}
	if !code.Has(name) {
		// If several processes start at once, one compiles, and the others wait for it.
		release, err := system.WaitLock(ctx, code.Dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	if code.Has(name) {
		show = func(int) {}
	}
	rt, err := compile(ctx, o, log, show)
	if err != nil {
		return nil, err
	}
	if err := code.Prune(name); err != nil {
		log.Warn("cannot remove old compiled modules", "error", err)
	}
	return rt, nil
}

const (
	compilingModule = "compiling the module, once"
	usualTime       = 10 * time.Second // usual processor time of a compilation
)

// compile compiles the module or reads it from o.Cache. The compiler does not report its progress, so it is estimated.
func compile(ctx context.Context, o host.Options, log *slog.Logger, show func(percent int)) (*host.Runtime, error) {
	begun := system.Now()
	progress := system.EstimateProgress(os.Getpid(), usualTime)
	stop := system.Repeat(time.Second/4, func() { show(progress()) })
	rt, err := host.NewRuntime(ctx, o)
	stop()
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}
	show(100)
	if rt.WasCompiled() {
		log.Info("compiled the module", "seconds", system.Now().Sub(begun).Round(100*time.Millisecond).Seconds())
	}
	return rt, nil
}

// showCompiling returns a function that shows the progress of compiling the module: a bar on a terminal, elsewhere lines of the log.
func (n *Node) showCompiling(log *slog.Logger) func(percent int) {
	return cli.NewStepProgress(n.screen, compilingModule, func(percent int) { log.Info(compilingModule, "percent", percent) })
}
