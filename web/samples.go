// Package web embeds the web application and the photographs of the demonstration: 42 pictures of at most 299 px on a side.
// samples/credits.tsv lists the author, licence, page and place of each picture.
package web

import (
	"embed"
	"encoding/csv"
	"fmt"
	"io/fs"
	"strconv"
)

//go:embed samples/*.jpg samples/credits.tsv
var samples embed.FS

// Samples returns the folder of the demonstration's photographs. It contains the JPEG files and credits.tsv.
func Samples() fs.FS {
	sub, err := fs.Sub(samples, "samples")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return sub
}

// Credit describes a sample: its author, licence, source page and location.
type Credit struct {
	File, Title, Author, Licence, Page string
	Latitude, Longitude                float64 // degrees, SRID 4326
	Place                              string  // "as shown", or a note that the location is invented
}

// Credits returns the rows of samples/credits.tsv, in their order.
func Credits() ([]Credit, error) {
	f, err := Samples().Open("credits.tsv")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, 8
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("credits: %w", err)
	}
	credits := make([]Credit, 0, len(rows))
	for _, row := range rows[1:] {
		lat, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			return nil, fmt.Errorf("credits of %q: latitude: %w", row[0], err)
		}
		long, err := strconv.ParseFloat(row[6], 64)
		if err != nil {
			return nil, fmt.Errorf("credits of %q: longitude: %w", row[0], err)
		}
		credits = append(credits, Credit{row[0], row[1], row[2], row[3], row[4], lat, long, row[7]})
	}
	return credits, nil
}
