package program

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"slices"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web"
)

// demoApp is the name of the application of a demonstration.
const demoApp = "Samples"

// unfilled is a file in a demonstration's folder that exists while samples may be missing: from the start that
// creates the folder until all samples are stored. Samples that a user deletes afterwards stay deleted.
const unfilled = "samples-unfinished"

// taught are the models of the demonstration, with the samples that each concept is trained on.
var taught = []subject{
	{"bird-or-insect", "Bird or insect", []lesson{
		{"bird", "Bird", []string{"07", "12", "16", "23", "40"}},
		{"insect", "Insect", []string{"10", "21", "22", "37"}},
	}, []string{"09", "14", "15", "19", "33"}},
	{"town-or-sea", "Town or sea", []lesson{
		{"town", "Town", []string{"01", "05", "20", "24", "28", "38"}},
		{"seaside", "Seaside", []string{"08", "30", "34", "42"}},
	}, []string{"13", "31", "36"}},
}

type subject struct {
	id, name  string
	concepts  []lesson
	negatives []string // samples that show none of the concepts
}

type lesson struct {
	id, name string
	samples  []string // numbers at the start of their file names
}

// markDemo marks a new folder as a demonstration's, before anything is stored in it.
func markDemo(n *server.Node) error {
	return system.ReplaceIn(n.Folder.Files, unfilled, nil)
}

// fillDemo adds the samples, with their places and credits, to the application of a demonstration, and trains two models on some of
// them. It continues after an interrupted start, and does nothing once all is done.
func fillDemo(ctx context.Context, n *server.Node) error {
	if _, err := n.Folder.Files.Size(unfilled); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	apps, err := control.Apps.Do(ctx, n, control.Nothing{})
	if err != nil || len(apps) == 0 {
		return err
	}
	name := demoApp
	if _, err := control.ChangeApp.Do(ctx, n, control.ChangedApp{ID: apps[0].ID, Change: register.AppChange{Name: &name}}); err != nil {
		return err
	}
	to := cli.LocalSession(n, apps[0].ID)
	if err := addSamples(ctx, to); err != nil {
		return err
	}
	for _, m := range taught {
		if err := m.teach(ctx, to); err != nil {
			return err
		}
	}
	return errors.Join(n.Folder.Files.Remove(unfilled), n.Folder.Files.SyncDir("."))
}

// untrained is the status of a model that was never trained and is not in training.
const untrained = 21102

// teach creates the model if it is missing, and trains it if it is untrained.
func (m *subject) teach(ctx context.Context, to cli.Session) error {
	path := "/v2/models/" + url.PathEscape(m.id)
	exists, err := cli.Exists(ctx, to, path)
	if err != nil {
		return err
	}
	if !exists {
		concepts := make([]cli.Object, len(m.concepts))
		for i, c := range m.concepts {
			concepts[i] = cli.Object{"id": c.id}
		}
		if err := cli.SendRequest(ctx, to, "POST", "/v2/models", cli.Object{"model": cli.Object{
			"id": m.id, "name": m.name, "output_info": cli.Object{
				"data": cli.Object{"concepts": concepts}, "output_config": cli.Object{"concepts_mutually_exclusive": true},
			},
		}}, nil); err != nil {
			return err
		}
	}
	var answer struct {
		Model struct {
			Version struct{ Status cli.Status } `json:"model_version"`
		}
	}
	if err := cli.SendRequest(ctx, to, "GET", path, nil, &answer); err != nil || answer.Model.Version.Status.Code != untrained {
		return err
	}
	return cli.SendRequest(ctx, to, "POST", path+"/versions", nil, nil)
}

// addSamples adds the pictures and creates the concepts with their names.
func addSamples(ctx context.Context, to cli.Session) error {
	labels := map[string][]cli.Object{}
	for _, m := range taught {
		for _, c := range m.concepts {
			exists, err := cli.Exists(ctx, to, "/v2/concepts/"+url.PathEscape(c.id))
			if err == nil && !exists {
				err = cli.SendRequest(ctx, to, "POST", "/v2/concepts", cli.Object{"concepts": []cli.Object{{"id": c.id, "name": c.name}}}, nil)
			}
			if err != nil {
				return err
			}
			for _, sample := range c.samples {
				labels[sample] = append(labels[sample], cli.Object{"id": c.id, "value": 1})
			}
			for _, sample := range m.negatives {
				labels[sample] = append(labels[sample], cli.Object{"id": c.id, "value": 0})
			}
		}
	}
	credits, err := web.Credits()
	if err != nil {
		return err
	}
	slices.Reverse(credits) // the newest inputs are shown first
	var inputs []cli.Object
	for _, c := range credits {
		picture, err := fs.ReadFile(web.Samples(), c.File)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(picture)
		id := hex.EncodeToString(sum[:16]) // the ID that the pages give a picture: the same file is the same input
		exists, err := cli.Exists(ctx, to, "/v2/inputs/"+id)
		if err != nil {
			return err
		}
		if exists {
			continue
		}
		inputs = append(inputs, cli.Object{
			"id": id,
			"data": cli.Object{
				"image":    cli.Object{"base64": base64.StdEncoding.EncodeToString(picture)},
				"geo":      cli.Object{"geo_point": cli.Object{"latitude": c.Latitude, "longitude": c.Longitude}},
				"concepts": labels[c.File[:2]],
				"metadata": cli.Object{
					"name": c.Title, "author": c.Author, "licence": c.Licence, "page": c.Page, "place": c.Place,
				},
			},
		})
	}
	if len(inputs) == 0 {
		return nil
	}
	return cli.SendRequest(ctx, to, "POST", "/v2/inputs", cli.Object{"inputs": inputs}, nil)
}
