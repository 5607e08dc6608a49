package sim

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// Template is the folder with which all runs begin: an application and an account. Its creation is expensive, because it hashes a password.
type Template struct {
	models  *predict.Set
	batches [][]byte
	app     string
	account string

	returned []returned
}

// NewTemplate creates the folder. models is borrowed by all runs.
func NewTemplate(models *predict.Set) (*Template, error) {
	d, t := &disk{}, &Template{models: models}
	store, err := memkv.Open(memkv.Options{Journal: d})
	if err != nil {
		return nil, err
	}
	random := random(rand.New(rand.NewPCG(1, 1)))
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: random})
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return epoch }
	e, err := core.Open(core.Options{Store: store, Models: models, Hosted: hosted, Clock: now, Rand: random, Seals: random})
	if err != nil {
		return nil, err
	}
	accounts, err := account.Open(accountOptions(store, now, random))
	if err != nil {
		return nil, err
	}
	link, err := accounts.SetupLink()
	if err != nil {
		return nil, err
	}
	_, setup, _ := strings.Cut(link, "setup=")
	operator := account.SignUpForm{Name: "Op", Email: "op@x.example", Password: "correct horse battery", Setup: setup}
	_, a, err := accounts.Create(context.Background(), operator, "192.0.2.1")
	if err != nil {
		return nil, err
	}
	t.account = a.ID
	app, _, err := e.Register.CreateApp(context.Background(), register.Caller{Account: a.ID}, register.NewApp{Name: "sim", Language: "en"})
	if err != nil {
		return nil, err
	}
	id, err := catalog.ParseAppID(app.ID)
	if err != nil {
		return nil, err
	}
	if _, err := e.Origin(app.ID); err != nil {
		return nil, err
	}
	t.app, t.batches = app.ID, slices.Clone(d.batches)
	t.returned, err = entriesToReturn(e, id)
	return t, err
}

func accountOptions(s kv.Store, now func() time.Time, random io.Reader) account.Options {
	return account.Options{
		Store: s, Now: now, Random: random, Log: slog.New(slog.DiscardHandler), Plan: account.Plan{Name: "metered", Calls: monthly},
	}
}
