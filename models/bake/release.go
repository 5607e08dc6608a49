package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/models/onnx"
)

// release is the content of a folder that the network's developers released.
type release struct {
	graph    *onnx.Graph
	concepts []concept
	heads    heads
	files    map[string][]byte // files that are copied unchanged, by their names in the bundle
	sources  []source          // sources of the calibration pictures
	expected []expectation
}

// concept is one line of concepts.tsv and of calibration.tsv.
type concept struct {
	id, name                         string
	classes                          []int
	food                             bool
	head                             int // -1: none
	classSlope, headSlope, intercept float64
	precision                        float64 // average precision when fitted; 0 if unknown, never NaN
	positives                        int
}

// isHidden reports whether the concept is never shown. The release's README defines the condition.
func (c concept) isHidden() bool { return c.positives >= 10 && c.precision < 0.1 }

// source has the number of calibration pictures from one source.
type source struct {
	Name  string
	Count int
}

// expectation is one line of expected.tsv: the first ten concepts of the reference, and the first elements of its embedding.
type expectation struct {
	photo string
	names []string
	unit  []float64
}

func readRelease(from string) (*release, error) {
	r := &release{files: map[string][]byte{}}
	data, err := os.ReadFile(filepath.Join(from, "general.onnx"))
	if err != nil {
		return nil, err
	}
	if r.graph, err = onnx.Read(data); err != nil {
		return nil, err
	}
	for _, name := range []string{"concepts.tsv", "calibration.tsv", "background.f16"} {
		if r.files[name], err = os.ReadFile(filepath.Join(from, name)); err != nil {
			return nil, err
		}
	}
	if r.heads, err = headsOf(r.graph); err != nil {
		return nil, err
	}
	r.files["heads.f32"] = r.heads.marshal()
	if err := r.readConcepts(); err != nil {
		return nil, err
	}
	if err := r.readNames(filepath.Join(from, "names")); err != nil {
		return nil, err
	}
	if err := r.readSources(filepath.Join(from, "calibration", "sources.tsv")); err != nil {
		return nil, err
	}
	if want := r.heads.dim * 2; len(r.files["background.f16"])%want != 0 {
		return nil, fmt.Errorf("background.f16 does not consist of complete rows of %d bytes", want)
	}
	return r, r.readExpected(filepath.Join(from, "expected.tsv"))
}

// table splits a tab-separated table with a header into rows of exactly the named columns.
func table(name string, data []byte, columns ...string) ([][]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != strings.Join(columns, "\t") {
		return nil, fmt.Errorf("%s: header %q, want %q", name, lines[0], columns)
	}
	rows := make([][]string, 0, len(lines)-1)
	for i, line := range lines[1:] {
		row := strings.Split(line, "\t")
		if len(row) != len(columns) {
			return nil, fmt.Errorf("%s line %d: %d columns, want %d", name, i+2, len(row), len(columns))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (r *release) readConcepts() error {
	rows, err := table("concepts.tsv", r.files["concepts.tsv"], "concept_id", "name", "classes", "models", "kind", "head")
	if err != nil {
		return err
	}
	fits, err := table("calibration.tsv", r.files["calibration.tsv"],
		"concept_id", "class_slope", "head_slope", "intercept", "average_precision", "positives", "judged_on")
	if err != nil {
		return err
	}
	if len(rows) != len(fits) {
		return fmt.Errorf("%d concepts and %d calibrations", len(rows), len(fits))
	}
	for i, row := range rows {
		c := concept{id: row[0], name: row[1], head: -1, food: row[3] == "general,food" && row[2] != ""}
		if fits[i][0] != c.id {
			return fmt.Errorf("calibration.tsv line %d has concept %s, want %s", i+2, fits[i][0], c.id)
		}
		if err := c.parse(row, fits[i], r.heads.count); err != nil {
			return fmt.Errorf("concept %s: %w", c.id, err)
		}
		r.concepts = append(r.concepts, c)
	}
	return nil
}

func (c *concept) parse(row, fit []string, heads int) error {
	if row[2] != "" {
		for _, s := range strings.Split(row[2], ",") {
			i, err := strconv.Atoi(s)
			if err != nil {
				return err
			}
			c.classes = append(c.classes, i)
		}
	}
	if row[5] != "" {
		h, err := strconv.Atoi(row[5])
		if err != nil || h < 0 || h >= heads {
			return fmt.Errorf("head %q of %d", row[5], heads)
		}
		c.head = h
	}
	numbers := []*float64{&c.classSlope, &c.headSlope, &c.intercept, &c.precision}
	for i, p := range numbers {
		s := fit[1+i]
		if s == "" && p == &c.precision {
			continue
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return err
		}
		*p = v
	}
	if fit[5] == "" {
		return nil
	}
	n, err := strconv.Atoi(fit[5])
	c.positives = n
	return err
}

// readNames copies the names of every language. It checks that each language names all concepts, and no two alike.
func (r *release) readNames(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		name := "names/" + e.Name()
		rows, err := table(name, append([]byte("concept_id\tname\n"), data...), "concept_id", "name") // it has no header
		if err != nil {
			return err
		}
		if len(rows) != len(r.concepts) {
			return fmt.Errorf("%s has %d names for %d concepts", name, len(rows), len(r.concepts))
		}
		seen := map[string]bool{}
		for i, row := range rows {
			if row[0] != r.concepts[i].id || row[1] == "" || seen[row[1]] {
				return fmt.Errorf("%s line %d: %q for %s, which is empty, a duplicate or out of order", name, i+1, row[1], row[0])
			}
			seen[row[1]] = true
		}
		r.files[name] = data
	}
	return nil
}

func (r *release) readSources(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rows, err := table("sources.tsv", data, "file", "source and licence", "original")
	if err != nil {
		return err
	}
	for _, row := range rows {
		at := slices.IndexFunc(r.sources, func(s source) bool { return s.Name == row[1] })
		if at < 0 {
			at = len(r.sources)
			r.sources = append(r.sources, source{Name: row[1]})
		}
		r.sources[at].Count++
	}
	return nil
}

func (r *release) readExpected(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rows, err := table("expected.tsv", data, "photo", "first ten concepts with values", "first eight of the unit embedding")
	if err != nil {
		return err
	}
	for _, row := range rows {
		e := expectation{photo: row[0]}
		for _, s := range strings.Split(row[1], ", ") {
			e.names = append(e.names, s[:strings.LastIndex(s, " ")])
		}
		for _, s := range strings.Fields(row[2]) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return err
			}
			e.unit = append(e.unit, v)
		}
		r.expected = append(r.expected, e)
	}
	return nil
}

// folder returns the paths of the pictures in a folder, in the order of their names.
func folder(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s holds no pictures", dir)
	}
	return paths, err
}
