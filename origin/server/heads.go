package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/training"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// heads is an engine that exports and imports heads.
type heads interface {
	// ExportHead returns the head of a trained version, or of the newest one if version is empty.
	ExportHead(app, model, version string) (*training.ModelHead, error)
	// ImportHead creates a new version with the head h, and returns the version's id.
	ImportHead(ctx context.Context, app string, h *training.ModelHead) (version string, err error)
}

// heads returns the engine if it can export and import heads and has the application.
func (n *Node) heads(app string) (heads, error) {
	engine, ok := n.Engine.(heads)
	if !ok {
		return nil, mistake{errors.New("heads are exported and imported at the origin")}
	}
	_, err := n.Register.App(app)
	return engine, err
}

func exportHead(_ context.Context, n *Node, of control.HeadID) (control.Head, error) {
	engine, err := n.heads(of.App)
	if err != nil {
		return control.Head{}, err
	}
	h, err := engine.ExportHead(of.App, of.Model, of.Version)
	if err != nil {
		return control.Head{}, headRequestError(err)
	}
	return control.HeadOf(h), nil
}

func importHead(ctx context.Context, n *Node, in control.NewHead) (control.ID, error) {
	engine, err := n.heads(in.App)
	if err != nil {
		return control.ID{}, err
	}
	h, err := in.Head.ModelHead()
	if err != nil {
		return control.ID{}, fmt.Errorf("head: %w", err)
	}
	version, err := engine.ImportHead(ctx, in.App, h)
	return control.ID{ID: version}, headRequestError(err)
}

// headRequestError marks a missing model or version as a mistake of the caller.
func headRequestError(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return mistake{err}
	}
	return err
}

// mistake is an error that the caller can avoid.
type mistake struct{ error }

// Unwrap implements the interface of package errors.
func (m mistake) Unwrap() []error { return []error{m.error, control.ErrArgument} }
