package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// attachTime is the time for which a command waits if a process has the folder open but does not answer, because it is starting or
// stopping.
const attachTime = 15 * time.Second

// Use describes how a command uses a data folder that no other process has open.
type Use struct {
	Create     bool // create the folder if it is missing
	Background bool // run its background work meanwhile: downloads, trainings
}

// Attach gives access to a data folder: through the process that has it open, or by opening it in this process. The caller must call done.
func Attach(ctx context.Context, dir string, env *Env, u Use) (_ control.Folder, done func() error, err error) {
	if !u.Create && !system.IsDir(dir) {
		return nil, nil, fmt.Errorf("data folder %s does not exist", dir)
	}
	log := slog.New(slog.DiscardHandler)
	for start, wait := system.Now(), 5*time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		n, err := OpenNode(ctx, FolderSettings(dir, env), log, u)
		if err == nil {
			return n, n.Close, nil
		}
		if !errors.Is(err, system.ErrLocked) {
			return nil, nil, err
		}
		client := Dial(dir)
		if _, e := control.Apps.Do(ctx, client, control.Nothing{}); e == nil {
			return client, client.Close, nil
		} else if !system.IsNotListening(e) && !errors.Is(e, io.EOF) { // io.EOF: the process has just ended
			return nil, nil, errors.Join(fmt.Errorf("%w, and the server does not respond on its control socket: %w", err, e), client.Close())
		}
		if err := errors.Join(client.Close(), ctx.Err()); err != nil {
			return nil, nil, err
		}
		if system.Now().Sub(start) > attachTime {
			return nil, nil, fmt.Errorf("%w, which accepts no commands; wait until it ends, or stop it", err)
		}
		system.Pause(ctx, wait)
	}
}

// Dial returns a client of the process that has a data folder open. It connects at the first request.
func Dial(dir string) *control.Caller {
	return control.NewCaller(func(ctx context.Context) (net.Conn, error) { return system.DialUnix(ctx, dir, control.Socket) })
}
