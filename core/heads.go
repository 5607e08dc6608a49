package core

import (
	"context"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/training"
)

// ExportHead returns the head of a trained version of an application's model. [training.Export] describes the arguments and errors.
func (e *Engine) ExportHead(app, model, version string) (*training.ModelHead, error) {
	open, err := e.apps.application(app)
	if err != nil {
		return nil, err
	}
	view := open.Partition.View()
	defer view.Close()
	return training.Export(view, model, version)
}

// ImportHead creates a trained version from a head that was trained elsewhere, and returns the version's ID. [training.Import] describes
// the errors.
func (e *Engine) ImportHead(ctx context.Context, app string, h *training.ModelHead) (version string, err error) {
	open, err := e.apps.application(app)
	if err != nil {
		return "", err
	}
	if version, err = log.NewID(e.apps.o.Rand); err != nil {
		return "", err
	}
	return version, training.Import(ctx, open.Partition, h, version)
}
