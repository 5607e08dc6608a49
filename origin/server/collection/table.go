package collection

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// column sets an input's data from a cell of one column.
type column func(in *row, cell string) error

// row is an input while its row is read.
type row struct {
	Input
	separator rune // that of the table's cells
	lat, lon  string
	meta      map[string]any
}

// columns maps the fixed column names to their columns.
var columns = map[string]column{
	"id":           func(in *row, cell string) error { in.ID = cell; return nil },
	"url":          func(in *row, cell string) error { in.URL = cell; return nil },
	"path":         func(in *row, cell string) error { in.Path = cell; return nil },
	"concepts":     func(in *row, cell string) error { in.label(cell, false); return nil },
	"not_concepts": func(in *row, cell string) error { in.label(cell, true); return nil },
	"lat":          func(in *row, cell string) error { in.lat = cell; return nil },
	"lon":          func(in *row, cell string) error { in.lon = cell; return nil },
}

// label adds the concepts in a cell. Semicolons separate them.
func (in *row) label(cell string, absent bool) {
	for id := range strings.SplitSeq(cell, ";") {
		if id = strings.TrimSpace(id); id != "" {
			in.Concepts = append(in.Concepts, Concept{ID: id, False: absent})
		}
	}
}

// metadata returns the column that sets the metadata member at a dotted path.
func metadata(name string) (column, error) {
	names := strings.Split(name, ".")
	for _, part := range names {
		if part == "" {
			return nil, fmt.Errorf("column metadata.%s has an empty name: %w", name, ErrFormat)
		}
	}
	return func(in *row, cell string) error {
		if in.meta == nil {
			in.meta = map[string]any{}
		}
		at := in.meta
		for _, part := range names[:len(names)-1] {
			if at[part] == nil {
				at[part] = map[string]any{}
			}
			below, ok := at[part].(map[string]any)
			if !ok {
				return fmt.Errorf("column metadata.%s conflicts with another metadata column", name)
			}
			at = below
		}
		last := names[len(names)-1]
		if at[last] != nil {
			return fmt.Errorf("column metadata.%s conflicts with another metadata column", name)
		}
		at[last] = scalar(cell)
		return nil
	}, nil
}

// scalar returns the value of a cell: a JSON number, true or false, or else the text.
func scalar(cell string) any {
	if cell == "true" || cell == "false" {
		return cell == "true"
	}
	if c := cell[0]; (c == '-' || '0' <= c && c <= '9') && json.Valid([]byte(cell)) {
		return json.Number(cell)
	}
	return cell
}

// readTable reads inputs from the rows of a table with a header.
func readTable(r io.Reader, name string, yield func(Input) error) error {
	text := bufio.NewReaderSize(decoded(r), maxHeader)
	table := csv.NewReader(text)
	table.FieldsPerRecord = -1
	table.Comma = separator(text)
	header, err := table.Read()
	if err != nil {
		return fmt.Errorf("%s: header: %w: %w", name, ErrFormat, err)
	}
	set := make([]column, len(header))
	for i, title := range header {
		title = strings.TrimSpace(title)
		set[i] = columns[strings.ToLower(title)]
		if path, ok := strings.CutPrefix(title, "metadata."); ok {
			if set[i], err = metadata(path); err != nil {
				return err
			}
		}
		if set[i] == nil {
			return fmt.Errorf("%s: unknown column %q: expected id, url, path, concepts, not_concepts, lat, lon or metadata.NAME: %w", name, title, ErrFormat)
		}
	}
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		in := row{separator: table.Comma}
		if err == nil {
			err = in.fill(set, cells)
		}
		line := 0
		if parse := new(csv.ParseError); errors.As(err, &parse) {
			line = parse.StartLine
		} else if len(cells) > 0 {
			line, _ = table.FieldPos(0)
		} else {
			return err // the rest of the file is unreadable
		}
		in.Name, in.Err = fmt.Sprintf("%s:%d", name, line), err
		if in.Path != "" {
			in.Name = in.Path
		}
		if err := yield(in.Input); err != nil {
			return err
		}
	}
}

func (in *row) fill(set []column, cells []string) error {
	if len(cells) != len(set) {
		return fmt.Errorf("%d cells for %d columns", len(cells), len(set))
	}
	for i, cell := range cells {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}
		if !utf8.ValidString(cell) {
			return errNotUTF8
		}
		if err := set[i](in, cell); err != nil {
			return err
		}
	}
	if in.meta != nil {
		var err error
		if in.Metadata, err = json.Marshal(in.meta); err != nil {
			return err
		}
	}
	if (in.lat == "") != (in.lon == "") {
		return errors.New("lat and lon must be set together")
	}
	if in.lat != "" {
		lat, err1 := in.degrees(in.lat)
		lon, err2 := in.degrees(in.lon)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if in.Geo, err1 = geoPoint(lat, lon); err1 != nil {
			return err1
		}
	}
	if in.URL == "" && in.Path == "" {
		return errors.New("url or path is required")
	}
	return nil
}

// degrees reads a number of a place. It may have a decimal comma where commas do not separate cells.
func (in *row) degrees(cell string) (float64, error) {
	if in.separator != ',' && !strings.Contains(cell, ".") {
		cell = strings.Replace(cell, ",", ".", 1)
	}
	return strconv.ParseFloat(cell, 64)
}

// geoPoint returns a place as in /v2. It returns an error for NaN and infinity.
func geoPoint(latitude, longitude float64) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"geo_point": map[string]any{"longitude": longitude, "latitude": latitude}})
}
