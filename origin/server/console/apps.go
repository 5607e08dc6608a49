package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// appView is an application in an answer.
type appView struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Language     string `json:"language"`
	DefaultModel string `json:"default_model"`
	Created      string `json:"created_at"`
	LocalOnly    bool   `json:"local_only,omitempty"`
}

func viewOf(a *catalog.App) appView {
	return appView{a.ID, a.Name, a.Language, a.DefaultModel, timestamp(a.Created.Time()), a.LocalOnly}
}

// owns reports whether an application belongs to the account. Applications without an owner belong to the operator's account. At a demo's
// edge every visitor has all applications.
func (c *call) owns(a *catalog.App) bool {
	if c.o.Edge != nil {
		return c.o.Edge.Open
	}
	return c.account.Owns(a.Owner)
}

// ownApp returns the application in the path. For an application of another account it returns errMissing.
func (c *call) ownApp() (catalog.App, error) {
	a, err := c.o.Register.App(c.id)
	if err == nil && !c.owns(&a) {
		err = errMissing
	}
	return a, err
}

// by returns the caller of a change.
func (c *call) by() register.Caller {
	return register.Caller{Account: c.account.ID, Remote: c.r.Remote}
}

// ownedApps returns the account's applications, oldest first.
func (c *call) ownedApps() ([]catalog.App, error) {
	all, err := c.o.Register.Apps()
	apps := slices.DeleteFunc(all, func(a catalog.App) bool { return !c.owns(&a) })
	slices.SortFunc(apps, func(a, b catalog.App) int {
		return cmp.Or(a.Created.Time().Compare(b.Created.Time()), strings.Compare(a.ID, b.ID))
	})
	return apps, err
}

func (c *call) apps() (any, error) { return c.listApps(c.ownedApps()) }

// listApps returns applications with the number of inputs of each.
func (c *call) listApps(apps []catalog.App, err error) (any, error) {
	type view struct {
		appView
		Inputs int `json:"inputs"`
	}
	views := []view{}
	for i := range apps {
		n, err := c.o.Register.Contents(apps[i].ID)
		if errors.Is(err, register.ErrApplication) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		views = append(views, view{viewOf(&apps[i]), n.Inputs})
	}
	return map[string]any{"apps": views}, err
}

func (c *call) createApp(in register.NewApp) (any, error) {
	apps, err := c.ownedApps()
	if err != nil {
		return nil, err
	}
	if len(apps) >= api.MaxApps && !c.account.Operator {
		return nil, fmt.Errorf("%w: an account can have at most %d applications", errMany, api.MaxApps)
	}
	in.Owner = c.account.ID
	a, client, err := c.o.Register.CreateApp(c.ctx, c.by(), in)
	return map[string]any{"app": viewOf(&a), "client": client}, err
}

// app returns an application with the sizes of its data.
func (c *call) app(a *catalog.App) (any, error) {
	n, err := c.o.Register.Contents(a.ID)
	if err != nil {
		return nil, err
	}
	view := struct {
		appView
		Client string            `json:"client_id"`
		Counts register.Contents `json:"counts"`
	}{appView: viewOf(a), Counts: n}
	if client, err := c.o.Register.Client(a.ID); err == nil { // an application from before clients existed has none
		view.Client = client.ID
	}
	return map[string]any{"app": view}, nil
}

// appChange is a page's change to an application.
type appChange struct {
	Name         *string
	DefaultModel *string `json:"default_model"`
	LocalOnly    *bool   `json:"local_only"`
}

func (c *call) changeApp(a *catalog.App, in appChange) (any, error) {
	change := register.AppChange{Name: in.Name, DefaultModel: in.DefaultModel, LocalOnly: in.LocalOnly}
	changed, err := c.o.Register.ChangeApp(c.ctx, c.by(), a.ID, change)
	return map[string]any{"app": viewOf(&changed)}, err
}

// deleteApp deletes an application if the user has typed its name.
func (c *call) deleteApp(a *catalog.App, in struct{ Name string }) (any, error) {
	if in.Name != a.Name {
		return nil, errName
	}
	if err := c.o.Register.DeleteApp(c.ctx, c.by(), a.ID); err != nil {
		return nil, err
	}
	return nil, c.o.Accounts.DropUsage(a.ID)
}

// usageDays is the number of days of usage that pages show.
const usageDays = 30

func (c *call) usage(a *catalog.App) (any, error) {
	u, err := c.o.Accounts.Usage(a.ID, usageDays)
	if err != nil {
		return nil, err
	}
	keys, err := c.o.Register.Keys(a.ID)
	if err != nil {
		return nil, err
	}
	descriptions := map[string]string{}
	for i := range keys {
		descriptions[auth.ByKey(keys[i].Hash)] = keys[i].Description
	}
	type key struct {
		ID          string `json:"id"`
		Description string `json:"description"`
		Calls       int64  `json:"calls"`
	}
	type endpoint struct {
		Endpoint string `json:"endpoint"`
		Calls    int64  `json:"calls"`
	}
	out := struct {
		Total     int64         `json:"total"`
		Days      []account.Day `json:"days"`
		Keys      []key         `json:"keys"`
		Endpoints []endpoint    `json:"endpoints"`
	}{u.Total, u.Days, []key{}, []endpoint{}}
	for _, k := range u.Keys {
		out.Keys = append(out.Keys, key{k.Name, descriptions[k.Name], k.Calls})
	}
	for _, e := range u.Endpoints {
		out.Endpoints = append(out.Endpoints, endpoint{e.Name, e.Calls})
	}
	return map[string]any{"usage": out}, nil
}

func (c *call) models() (any, error) {
	return map[string]any{"models": append([]Model{}, c.o.Models...)}, nil
}
