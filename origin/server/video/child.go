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
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm/host"
)

// The parent and the child that runs the module talk over the child's standard input and output:
//
//	parent ── JSON: setup, then a request for each run; the end of it ends the child ──▶ child
//	       ◀─ messages: a kind, a length as 4 bytes, little-endian, and so many bytes ──
//
//	output    what the module wrote to its standard output
//	ended     the run has ended; JSON: result

// Command is the name of the hidden command that is the child: it calls [Serve].
const Command = "decode-video"

// Names and numbers that parent and child share.
const (
	filmDescriptor = "3"  // of the film in the child
	moduleInput    = "in" // name of the film's file, of all files the only one that the module has

	messageOutput = 'o'
	messageEnded  = 'e'
	maxResult     = 64 << 10 // bytes of a result

	maxHeap = 300 << 20 // bytes of Go's memory above which the child collects garbage at once; compiling takes most
)

// setup has the paths and the limits for the child.
type setup struct {
	Module  string // file of the module
	Cache   string // folder of compiled modules; empty: none
	Scratch string // folder in Cache for this child alone
	Key     [32]byte
	Memory  uint64 // bytes that a run may have
}

// request asks for a run.
type request struct {
	Args []string // with the program's name
}

// result is how a run ended.
type result struct {
	Code   uint32 // exit code
	Memory bool   // it needed more memory than it may have
	Text   string // the end of its standard error, or what went wrong
	Module string // why there is no module that can run; empty: there is one
}

// child is the parent's view of the child.
type child struct {
	*process
	requests *json.Encoder
	in       *os.File // the child's standard input
	out      *bufio.Reader
	clean    func() // removes the scratch folder
	closed   bool
}

// startChild starts the program as the child.
func (s *session) startChild() (*child, error) {
	o := setup{Module: s.d.o.Module, Key: s.d.o.Key, Memory: film.MaxMemory}
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
	_ = stdin.Close() // it is the child's
	if err != nil {
		clean()
		_ = in.Close() // nothing was written
		return nil, err
	}
	c := &child{process: p, requests: json.NewEncoder(in), in: in, out: bufio.NewReaderSize(p, 1<<16), clean: clean}
	_ = c.requests.Encode(o) // a child that has ended sends no result, and that is the error then
	return c, nil
}

// run asks for a run, and has its output read.
func (c *child) run(args []string, use func(io.Reader) error) error {
	_ = c.requests.Encode(request{args})
	o := &output{from: c.out}
	err := use(o)
	switch {
	case !o.ended:
		c.kill(nil)
		return c.end(err)
	case o.result.Module != "":
		c.s.d.o.Log.Warn("videos cannot be decoded", "error", o.result.Module)
		return film.UnsupportedError("%s", o.result.Module)
	case o.result.Code != 0 || o.result.Memory:
		return &exitError{o.result.Memory, fmt.Sprintf("exit code %d: %s", o.result.Code, o.result.Text)}
	}
	return err
}

// end waits for the end of a child that was killed, or ends. used is the error of the output's reader.
func (c *child) end(used error) error {
	err := c.process.end(used)
	_ = c.in.Close() // nobody reads it
	c.clean()
	c.closed = true
	return err
}

// close ends the child.
func (c *child) close() {
	if !c.closed {
		c.kill(nil)
		_ = c.end(nil) // it was killed
	}
}

// output is the output of a run, out of the messages of the child.
type output struct {
	from   io.Reader
	left   int // of the message that is being read
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

// next reads the head of a message, and all of a result.
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

// Serve is the child: it runs the module as the parent asks on in. The end of in ends the process, also within a run,
// which nothing can interrupt: the parent has gone.
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
	runtime.GOMAXPROCS(1) // several threads that compile take more memory
	command, err := o.compile(ctx)
	debug.FreeOSMemory()  // compiling takes far more memory than decoding
	runtime.GOMAXPROCS(2) // one is for the module, which nothing interrupts
	for r := range requests {
		ended := result{}
		if err != nil {
			ended.Module = err.Error()
		} else {
			log := &tail{}
			code, err := command.Run(ctx, r.Args, files, messages{out}, log)
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

// compile compiles the module, or loads it from the cache.
func (o *setup) compile(ctx context.Context) (*host.Command, error) {
	module, err := readModule(o.Module)
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

// messages is a writer of output.
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

// oneFile is a folder that holds one file, for reading.
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

// openFile is the open file, with its own offset.
type openFile struct {
	*io.SectionReader
	info fs.FileInfo
}

// Stat implements [fs.File].
func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements [fs.File].
func (openFile) Close() error { return nil }
