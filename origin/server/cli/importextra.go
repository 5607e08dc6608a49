package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/sightline-dev/sightline/origin/server/collection"
)

// Lines of an export's other files.
type (
	conceptLine struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Language string `json:"language,omitempty"`
	}
	modelLine struct {
		ID       string                     `json:"id"`
		Name     string                     `json:"name"`
		Concepts []string                   `json:"concepts"`
		Config   map[string]json.RawMessage `json:"output_config,omitempty"`
	}
	workflowLine struct {
		ID    string         `json:"id"`
		Nodes []workflowNode `json:"nodes"`
	}
	workflowNode struct {
		ID    string        `json:"id"`
		Model workflowModel `json:"model"`
	}
	workflowModel struct {
		ID      string           `json:"id"`
		Version *workflowVersion `json:"model_version,omitempty"`
	}
	workflowVersion struct {
		ID string `json:"id"`
	}
)

// Exists reports whether a GET request for path finds an object.
func Exists(ctx context.Context, s Session, path string) (bool, error) {
	err := SendRequest(ctx, s, "GET", path, nil, nil)
	if refusal := new(StatusError); errors.As(err, &refusal) && refusal.HTTP == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// extras creates the objects in a file of lines that the application lacks, by calls of path. It adds their number to count.
func extras[T any](ctx context.Context, im *importer, file, path string, count *int, id func(*T) string, body func(*T) any) error {
	return im.source.Lines(file, func(raw json.RawMessage) error {
		var line T
		if err := json.Unmarshal(raw, &line); err != nil || id(&line) == "" {
			return fmt.Errorf("%s: %.100s: %w", file, raw, collection.ErrFormat)
		}
		found, err := Exists(ctx, im.session, path+"/"+url.PathEscape(id(&line)))
		if err != nil || found {
			return err
		}
		if err := SendRequest(ctx, im.session, "POST", path, body(&line), nil); err != nil {
			return fmt.Errorf("%s: %s: %w", file, id(&line), err)
		}
		*count++
		return nil
	})
}

// name returns a name that the API accepts. Old servers accepted control characters: name replaces them by spaces.
func (im *importer) name(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	im.sum.Renamed++
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

func (im *importer) concepts(ctx context.Context) error {
	return extras(ctx, im, collection.ConceptsFile, "/v2/concepts", &im.sum.Concepts, func(c *conceptLine) string { return c.ID },
		func(c *conceptLine) any {
			return Object{"concepts": []Object{{"id": c.ID, "name": im.name(c.Name), "language": c.Language}}}
		})
}

func (im *importer) models(ctx context.Context) error {
	return extras(ctx, im, collection.ModelsFile, "/v2/models", &im.sum.Models, func(m *modelLine) string { return m.ID },
		func(m *modelLine) any {
			info := Object{"output_config": m.Config}
			if len(m.Concepts) > 0 {
				var concepts []Object
				for _, c := range m.Concepts {
					concepts = append(concepts, Object{"id": c})
				}
				info["data"] = Object{"concepts": concepts}
			}
			return Object{"model": Object{"id": m.ID, "name": im.name(m.Name), "output_info": info}}
		})
}

func (im *importer) workflows(ctx context.Context) error {
	return extras(ctx, im, collection.WorkflowsFile, "/v2/workflows", &im.sum.Workflows, func(w *workflowLine) string { return w.ID },
		func(w *workflowLine) any { return Object{"workflows": []workflowLine{*w}} })
}
