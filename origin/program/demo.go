package program

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// demo runs a demonstration: an origin and some edges, each as a process on this machine.
//
//	sightline demo ─┬─▶ sightline serve --demo ◀─ the origin may be stopped and started again
//	                ├─▶ sightline-edge serve          ▲
//	                └─▶ sightline-edge serve ─────────┘ work meanwhile
type demo struct {
	env     *server.Env
	listen  string
	data    string
	edges   int
	open    bool
	program string // path of the executable
	names   []string
	places  []string // addresses: the origin's, then the edges'
	ended   chan end
	origin  *exec.Cmd // nil while it is stopped
}

// end is the end of a process. which is its index in names.
type end struct {
	which int
	err   error
}

func newDemo(env *server.Env) *cobra.Command {
	d := &demo{env: env, ended: make(chan end, 16)}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a local demo: an origin and edges with sample pictures",
		Long: `Runs an origin and edges on this machine with 42 sample pictures and two small models, already
signed in. Each runs as a separate process; --data is the origin's data folder, the edges use
folders next to it.

Press o and Enter to stop the origin, and again to start it. Edges and pages keep working
without it.`,
		Example: `  {prog} demo
  {prog} demo --edges 2 --open`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&d.listen, "listen", "127.0.0.1:8080", "listen `address` of the origin; edges use the ports after it")
	f.StringVar(&d.data, "data", "sightline-demo", "data `folder` of the origin")
	f.IntVar(&d.edges, "edges", 1, "`number` of edges, at most 9")
	f.BoolVar(&d.open, "open", false, "open the pages in the browser, if this machine has a screen")
	return cmd
}

// run starts all processes and supervises them until ctx ends.
func (d *demo) run(ctx context.Context) error {
	if err := d.plan(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running []*exec.Cmd
	defer func() { d.stop(running) }()
	var err error
	if d.origin, err = d.start(0, d.serve()...); err != nil {
		return err
	}
	if err := d.ready(ctx, 0); err != nil || ctx.Err() != nil {
		return err
	}
	for i := 1; i < len(d.places); i++ {
		args, err := d.join(ctx, i)
		if err != nil {
			return err
		}
		edge, err := d.start(i, args...)
		if err != nil {
			return err
		}
		running = append(running, edge)
	}
	d.printAccess()
	for i := 1; i < len(d.places); i++ {
		if err := d.ready(ctx, i); err != nil || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(d.env.Stdout, "%s: http://%s\n", d.names[i], d.places[i])
	}
	fmt.Fprintf(d.env.Stdout, "\nPress o and Enter to stop or start the origin. Press Ctrl-C to quit.\n\n")
	return d.watch(ctx)
}

// plan names the processes and finds their programs and URLs.
func (d *demo) plan(ctx context.Context) error {
	if d.edges < 0 || d.edges > 9 {
		return server.Usagef("--edges %d: must be 0 to 9", d.edges)
	}
	host, port, err := net.SplitHostPort(d.listen)
	first, bad := strconv.Atoi(port)
	if err != nil || bad != nil || !system.IsLoopback(host) {
		return server.Usagef("--listen %q: the demo needs a loopback address, such as 127.0.0.1:8080", d.listen)
	}
	if d.program, err = system.Executable(); err != nil {
		return err
	}
	for i := range d.edges + 1 {
		address := net.JoinHostPort(host, strconv.Itoa(first+i))
		if first == 0 {
			free, err := system.Listen(ctx, d.listen)
			if err != nil {
				return err
			}
			address = free.Addr().String()
			defer free.Close() // only once all have an address, so that the addresses differ
		}
		d.places = append(d.places, address)
		name := "origin"
		if i > 0 {
			name = "edge-" + strconv.Itoa(i)
		}
		d.names = append(d.names, name)
	}
	return nil
}

// serve returns the arguments of the origin.
func (d *demo) serve() []string {
	return []string{"serve", "--demo", "--listen", d.places[0], "--data", d.data, "--log", "warn"}
}

// enrolled is the file of an edge's folder with its enrolment.
const enrolled = "edge.json"

// join returns the arguments of an edge, with an enrolment token if the edge has no folder yet.
func (d *demo) join(ctx context.Context, i int) (args []string, err error) {
	folder := d.data + "-" + d.names[i]
	args = []string{"serve", "--demo", "--origin", "http://" + d.places[0], "--listen", d.places[i], "--data", folder, "--log", "warn", "--pictures", "full"}
	if _, err := system.ReadFile(filepath.Join(folder, enrolled), 1<<20); err == nil {
		return args, nil
	}
	origin, done, err := server.Attach(ctx, d.data, d.env, server.Use{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	var apps []control.App // the origin may answer before its first start has created one
	for ; len(apps) == 0; system.Pause(ctx, 20*time.Millisecond) {
		if apps, err = control.Apps.Do(ctx, origin, control.Nothing{}); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	edge := control.NewEdge{Name: d.names[i]}
	for _, app := range apps {
		edge.Apps = append(edge.Apps, app.ID)
	}
	enrolment, err := control.CreateEdge.Do(ctx, origin, edge)
	return append(args, "--token", enrolment.Token), err
}

// start starts one of the processes. The origin prints its own output; the edges print only errors.
func (d *demo) start(which int, args ...string) (*exec.Cmd, error) {
	program := d.program
	if which > 0 {
		program = filepath.Join(filepath.Dir(program), "sightline-edge")
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = d.env.Environ(), d.env.Stderr, system.ChildAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.names[which], err)
	}
	go func() { d.ended <- end{which, cmd.Wait()} }()
	return cmd, nil
}

// ready waits until a process answers.
func (d *demo) ready(ctx context.Context, which int) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.places[which]+"/readyz", nil)
		if err != nil {
			return err
		}
		if res, err := client.Do(req); err == nil {
			if err := res.Body.Close(); err != nil {
				return err
			}
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case e := <-d.ended:
			d.ended <- e // stop counts it
			return fmt.Errorf("%s stopped: %w", d.names[e.which], errors.Join(e.err, ctx.Err()))
		case <-ctx.Done():
			return nil
		default:
			system.Pause(ctx, 50*time.Millisecond)
		}
	}
}

// printAccess prints the URL of the pages. An edge compiles its module at its first start; printAccess does not wait for that.
func (d *demo) printAccess() {
	fmt.Fprintf(d.env.Stdout, "\nSightline: http://%s\n", d.places[0])
	if d.open {
		browse("http://"+d.places[0], d.env)
	}
}

// watch runs the entered commands until ctx or an edge ends.
func (d *demo) watch(ctx context.Context) error {
	entered := make(chan string)
	go func() {
		for lines := bufio.NewScanner(d.env.Stdin); lines.Scan(); {
			select {
			case entered <- strings.TrimSpace(lines.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	w := d.env.Stdout
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-d.ended:
			if e.which > 0 {
				d.ended <- e // stop counts it
				return fmt.Errorf("%s stopped: %w", d.names[e.which], e.err)
			}
			d.origin = nil
			fmt.Fprintln(w, "The origin is stopped. Press o and Enter to start it.")
		case line := <-entered:
			var err error
			switch {
			case line != "o":
				continue
			case d.origin != nil:
				err = d.origin.Process.Signal(os.Interrupt)
			default:
				if d.origin, err = d.start(0, d.serve()...); err == nil {
					err = d.ready(ctx, 0)
				}
				fmt.Fprintln(w, "The origin is running. Press o and Enter to stop it.")
			}
			if err != nil {
				return err
			}
		}
	}
}

// stop stops the edges and the origin, and waits for them.
func (d *demo) stop(edges []*exec.Cmd) {
	running := edges
	if d.origin != nil {
		running = append(running, d.origin)
	}
	for _, cmd := range running {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
	}
	for range running {
		<-d.ended
	}
}

// browse opens a URL in the user's browser if there is a screen. It ignores errors.
func browse(address string, env *server.Env) {
	opener := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if screen := cmp.Or(env.Lookup("DISPLAY"), env.Lookup("WAYLAND_DISPLAY")); screen != "" {
		opener = cmp.Or(opener, "xdg-open")
	}
	if opener == "" {
		return
	}
	cmd := exec.Command(opener, address)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
