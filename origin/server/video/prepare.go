package video

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm/host"
)

const (
	// CompilingStep names the compilation in lines about its progress.
	CompilingStep = "compiling the decoder of videos, once"

	compileTime    = 10 * time.Minute // limit of the processor time and of the wait for a compilation
	usualTime      = 12 * time.Second // usual processor time of a compilation
	reportInterval = time.Second      // time between two reports of progress
)

// preparation is the compilation of the module before the first film. All films of a process wait for one compilation.
type preparation struct {
	mu      sync.Mutex
	done    bool          // the module is in the cache, or a compilation has failed: films no longer wait
	running chan struct{} // closed when the running compilation ends; nil: none runs
	percent int           // estimated progress of the running compilation
}

// Prepare compiles the decoding modules unless the cache has them. If a compilation runs already, Prepare waits for it. Without a cache, and for
// a missing module and a system's FFmpeg, it does nothing. compiled reports whether this call compiled a module. Its error is that of ctx, or
// the reason why a module cannot be compiled, which films and pictures return too.
func (d *Decoder) Prepare(ctx context.Context) (compiled bool, err error) {
	compiled, err = d.prepare(ctx)
	if ctx.Err() != nil || d.o.Cache == "" || d.isCompiled(raster.JPEGXL) {
		return compiled, err
	}
	failed := d.compileJXL(ctx)
	return compiled || failed == nil, errors.Join(err, failed)
}

// compileJXL has a child compile the module of JPEG XL, in half a second, and store it in the cache. Pictures that come meanwhile do not wait:
// their children compile it, too.
func (d *Decoder) compileJXL(ctx context.Context) (err error) {
	nothing, _, err := system.Open(os.DevNull) // instead of a picture
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nothing.Close()) }()
	s, err := d.start(ctx, raster.JPEGXL, nothing, compileTime)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.child.run(nil, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	if err != nil {
		return fmt.Errorf("decoder of JPEG XL: %w", err)
	}
	return nil
}

// prepare does what Prepare does for the module of videos.
func (d *Decoder) prepare(ctx context.Context) (compiled bool, err error) {
	p := &d.preparation
	for {
		p.mu.Lock()
		if p.done || d.o.System != "" || d.o.Cache == "" || d.isCompiled(raster.FFmpeg) {
			p.done = true
			p.mu.Unlock()
			return false, nil
		}
		running := p.running
		if running == nil {
			p.running = make(chan struct{})
			p.mu.Unlock()
			break
		}
		p.mu.Unlock()
		select {
		case <-running: // if it was cancelled, this call compiles
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	compiled, err = d.compile(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = ctx.Err() == nil
	close(p.running)
	p.running, p.percent = nil, 0
	return compiled, err
}

// Compiling returns the estimated progress of a compilation in percent, or false if none runs.
func (d *Decoder) Compiling() (percent int, running bool) {
	p := &d.preparation
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.percent, p.running != nil
}

// isCompiled reports whether the cache has a module, or has nothing because the module is missing. It does not check the file's seal: a film
// compiles a damaged module again.
func (d *Decoder) isCompiled(m raster.Module) bool {
	if _, _, err := system.ModTimeAndSize(filepath.Join(d.o.Cache, codeName(m))); err == nil {
		return true
	}
	_, _, err := system.ModTimeAndSize(d.file(m))
	return err != nil
}

// CodeNames returns the names of the files with the compiled modules. The first is that of the module of videos.
func CodeNames() []string { return []string{codeName(raster.FFmpeg), codeName(raster.JPEGXL)} }

func codeName(m raster.Module) string {
	hash, err := hex.DecodeString(moduleInfos[m].unpacked)
	if err != nil {
		panic(err)
	}
	return host.CacheName([32]byte(hash))
}

// compile starts a child that compiles the module and stores it in the cache, and reports its progress. If another process compiles, it waits
// for its result and returns false.
func (d *Decoder) compile(ctx context.Context) (compiled bool, err error) {
	release, err := system.WaitLock(ctx, d.o.Cache)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		defer func() { err = errors.Join(err, release()) }()
		if d.isCompiled(raster.FFmpeg) {
			return false, nil
		}
	}
	nothing, _, err := system.Open(os.DevNull) // instead of a film
	if err != nil {
		return false, err
	}
	defer nothing.Close()
	begun := system.Now()
	s := &session{d: d, ctx: ctx, film: nothing, limit: compileTime, left: compileTime, input: "/" + moduleInput} // never a system's FFmpeg
	if s.child, err = s.startChild(); err != nil {
		return false, err
	}
	defer s.close()
	stop := d.reportProgress(s.child.cmd.Process.Pid)
	err = s.run("ffmpeg", []string{"-version"}, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	stop()
	if d.o.Progress != nil {
		d.o.Progress(100)
	}
	if err != nil {
		return false, fmt.Errorf("decoder of videos: %w", err)
	}
	d.o.Log.Info("compiled the decoder of videos", "seconds", system.Now().Sub(begun).Round(100*time.Millisecond).Seconds())
	return true, nil
}

// reportProgress reports the progress of a compilation by a child until stop. The compiler does not report it, so it is estimated.
func (d *Decoder) reportProgress(pid int) (stop func()) {
	d.o.Log.Info(CompilingStep, "percent", 0)
	logged, progress := 0, system.EstimateProgress(pid, usualTime)
	return system.Repeat(reportInterval, func() {
		percent := progress()
		d.preparation.mu.Lock()
		d.preparation.percent = percent
		d.preparation.mu.Unlock()
		if d.o.Progress != nil {
			d.o.Progress(percent)
		}
		if percent >= logged+25 {
			logged = percent
			d.o.Log.Info(CompilingStep, "percent", percent)
		}
	})
}
