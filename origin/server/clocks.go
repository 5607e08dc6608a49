package server

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// maxBehind is the maximum time by which this machine's clock may be behind a log without a warning.
const maxBehind = time.Minute

// logClocks warns about applications whose newest operation is ahead of this machine's clock. The clock was set back, or was wrong when
// the operation was made. The clock of a log never goes back. So until this machine's clock has caught up, local operations count as newer
// than concurrent operations of replicas.
func logClocks(store kv.Reader, apps []catalog.App, now time.Time, log *slog.Logger) error {
	for i := range apps {
		app, err := catalog.ParseAppID(apps[i].ID)
		if err != nil {
			return err
		}
		h, err := catalog.Read(store, app).Header()
		if err != nil {
			return fmt.Errorf("application %s: %w", apps[i].ID, err)
		}
		if behind := h.Clock.Time().Sub(now); behind > maxBehind {
			log.Warn("the clock of this machine is behind the newest operation of an application; check the clock",
				"app", apps[i].ID, "behind", behind.Round(time.Second).String())
		}
	}
	return nil
}
