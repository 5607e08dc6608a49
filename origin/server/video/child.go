package video

import (
	"bufio"
	"cmp"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"

	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm/host"
)

// The child runs the module. The parent and the child use the child's standard input and output:
//
//	parent ── JSON: setup, then a request for each run; the end of input ends the child ──▶ child
//	       ◀─ messages: kind (1 byte), length (4 bytes, little-endian), content ──────────
//
//	output    what the module wrote to its standard output
//	ended     the run has ended; JSON: result

// Command is the name of the hidden command with which the program runs as the child. The command calls [Serve].
const Command = "decode-video"

// Names and limits that parent and child share.
const (
	filmDescriptor = "3"  // descriptor of the film, or of a picture, in the child
	moduleInput    = "in" // name of the film for the module, which has no other file

	messageOutput = 'o'
	messageEnded  = 'e'
	maxResult     = 64 << 10 // maximum size of a result in bytes

	maxHeap = 300 << 20 // memory limit of the child's Go runtime in bytes; compiling needs the most memory
)

// setup has the paths and the limits for the child.
type setup struct {
	Which   raster.Module
	Module  string // path of the module's file
	Cache   string // folder of compiled modules; empty: no cache
	Scratch string // temporary folder of this child only
	Key     [32]byte
	Memory  uint64 // memory limit of a run in bytes
}

// request is the parent's request for one run of the module.
type request struct {
	Args []string // arguments, starting with the program's name; of a reactor: see react
}

// result is the outcome of a run.
type result struct {
	Code   uint32 // exit code
	Memory bool   // true if the run needed more memory than its limit
	Text   string // end of its standard error, and the host's error if it has one
	Module string // reason why the module cannot run; empty: it can
}

// child is the parent's view of the child.
type child struct {
	*process
	requests *json.Encoder
	in       *os.File      // the child's standard input
	out      *bufio.Reader // the child's standard output
	clean    func()        // removes the scratch folder
	closed   bool          // true once end has returned
}

// startChild starts this program as the child and sends it the setup.
func (s *session) startChild() (*child, error) {
	o := setup{Which: s.module, Module: s.d.file(s.module), Key: s.d.o.Key, Memory: film.MaxMemory}
	clean := func() {}
	if s.d.o.Cache != "" {
		scratch, done, err := system.TempFolder(cmp.Or(s.d.o.Scratch, s.d.o.Cache))
		if err != nil {
			s.d.o.Log.Warn("cannot cache the compiled decoding module", "error", err)
		} else {
			o.Cache, o.Scratch, clean = s.d.o.Cache, scratch, done
		}
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		clean()
		return nil, fmt.Errorf("%w: %w", errStart, err)
	}
	cmd := exec.Command(s.d.o.Program, Command)
	cmd.Stdin = stdin
	p, err := s.launch(cmd, 0)
	_ = stdin.Close() // the child has its own
	if err != nil {
		clean()
		_ = in.Close() // nothing was written
		return nil, err
	}
	c := &child{process: p, requests: json.NewEncoder(in), in: in, out: bufio.NewReaderSize(p, 1<<16), clean: clean}
	_ = c.requests.Encode(o) // if the child has ended, reading its result fails
	return c, nil
}

// run runs the module with args. use reads the output. If use stops before the end of the output, run kills the child.
func (c *child) run(args []string, use func(io.Reader) error) error {
	_ = c.requests.Encode(request{args})
	o := &output{from: c.out}
	err := use(o)
	switch {
	case !o.ended:
		c.kill(nil)
		return c.end(err)
	case o.result.Module != "":
		c.s.d.o.Log.Warn("a decoding module cannot run", "error", o.result.Module)
		return film.UnsupportedError("%s", o.result.Module)
	case o.result.Code != 0 || o.result.Memory:
		return &exitError{o.result.Memory, fmt.Sprintf("exit code %d: %s", o.result.Code, o.result.Text)}
	}
	return err
}

// end waits for the end of a child that was killed or ends by itself. used is the error of the output's reader.
func (c *child) end(used error) error {
	err := c.process.end(used)
	_ = c.in.Close() // nobody reads it
	c.clean()
	c.closed = true
	return err
}

// close kills the child and waits for its end.
func (c *child) close() {
	if !c.closed {
		c.kill(nil)
		_ = c.end(nil) // it was killed
	}
}

// output is the output of a run. It reads the messages of the child.
type output struct {
	from   io.Reader
	left   int // unread bytes of the current message
	ended  bool
	result result
}

// Read implements [io.Reader].
func (o *output) Read(b []byte) (int, error) {
	for o.left == 0 {
		if o.ended {
			return 0, io.EOF
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n, err := o.from.Read(b[:min(len(b), o.left)])
	o.left -= n
	return n, err
}

// next reads the head of a message. If the message is a result, next reads all of it.
func (o *output) next() error {
	var head [5]byte
	if _, err := io.ReadFull(o.from, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	switch {
	case head[0] == messageOutput:
		o.left = int(n)
		return nil
	case head[0] != messageEnded || n > maxResult:
		return fmt.Errorf("message %q of %d bytes", head[0], n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(o.from, text); err != nil {
		return err
	}
	o.ended = true
	return json.Unmarshal(text, &o.result)
}

// Serve is the main function of the child. It runs the module for every request that it reads from in. When in ends, the
// parent has ended, and Serve ends the process, even during a run, which nothing else can interrupt.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(maxHeap)
	return serve(ctx, in, out, oneFile{os.NewFile(3, moduleInput)}, func() { os.Exit(0) })
}

func serve(ctx context.Context, in io.Reader, out io.Writer, files oneFile, exit func()) error {
	d := json.NewDecoder(in)
	var o setup
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	requests := make(chan request)
	go func() {
		for {
			var r request
			if d.Decode(&r) != nil {
				exit()
				close(requests)
				return
			}
			requests <- r
		}
	}()
	runtime.GOMAXPROCS(1) // several compiling threads take more memory
	command, err := o.compile(ctx)
	debug.FreeOSMemory()  // compiling takes far more memory than decoding
	runtime.GOMAXPROCS(2) // one for the module, which cannot be interrupted, and one for reading in
	for r := range requests {
		ended := result{}
		if err != nil {
			ended.Module = err.Error()
		} else {
			log := &tail{}
			code, err := o.run(ctx, command, r.Args, files, out, log)
			ended = result{Code: code, Memory: errors.Is(err, host.ErrMemory), Text: log.String()}
			if err != nil {
				ended.Code, ended.Text = max(ended.Code, 1), ended.Text+"\n"+err.Error()
			}
		}
		text, err := json.Marshal(ended)
		if err == nil {
			err = writeMessage(out, messageEnded, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs the module once. The output goes to out.
func (o *setup) run(ctx context.Context, command *host.Command, args []string, files oneFile, out, log io.Writer) (code uint32, err error) {
	if o.Which == raster.JPEGXL {
		return 0, react(ctx, command, args, files.file, messages{out})
	}
	return command.Run(ctx, args, files, messages{out}, log)
}

// compile compiles the module, or loads it from the cache.
func (o *setup) compile(ctx context.Context) (*host.Command, error) {
	module, err := readModule(o.Which, o.Module)
	if err != nil {
		return nil, err
	}
	if o.Cache == "" {
		return host.NewCommand(ctx, module, nil, o.Memory)
	}
	files, err := system.OpenFolder(o.Cache)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	return host.NewCommand(ctx, module, &host.Cache{Files: files, Key: o.Key, Scratch: system.ScratchIn(o.Scratch)}, o.Memory)
}

// messages is a writer that sends each write as a message with output.
type messages struct{ to io.Writer }

// Write implements [io.Writer].
func (m messages) Write(b []byte) (int, error) {
	if err := writeMessage(m.to, messageOutput, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func writeMessage(to io.Writer, kind byte, b []byte) error {
	if _, err := to.Write(binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(b)))); err != nil {
		return err
	}
	_, err := to.Write(b)
	return err
}

// oneFile is a read-only file system with one file, moduleInput.
type oneFile struct{ file *os.File }

var _ fs.FS = oneFile{}

// Open implements [fs.FS].
func (o oneFile) Open(name string) (fs.File, error) {
	switch name {
	case ".":
		return embed.FS{}.Open(name) // a folder that lists nothing
	case moduleInput:
		info, err := o.file.Stat()
		if err != nil {
			return nil, err
		}
		return openFile{io.NewSectionReader(o.file, 0, info.Size()), info}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// openFile is an open file of oneFile. Every openFile has its own offset.
type openFile struct {
	*io.SectionReader
	info fs.FileInfo
}

// Stat implements [fs.File].
func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements [fs.File].
func (openFile) Close() error { return nil }
