package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/origin/server"
)

// writer writes one answer. An error of write ends the run.
type writer interface{ write(a *answer) error }

// jsonLines writes Output objects, one per line.
type jsonLines struct{ w io.Writer }

func (j jsonLines) write(a *answer) error {
	_, err := server.EscapeWriter{W: j.w}.Write(append(a.output, '\n'))
	return err
}

// table writes answers for people:
//
//	photos/051_cat.jpg
//	  cat      0.998  ████████████████████
//	  animal   0.991  ███████████████████▉
type table struct {
	w       io.Writer
	model   *predict.Model
	several bool
	color   bool
	begun   bool
}

// row is one line of a picture's table.
type row struct {
	name  string
	value float64
	hex   string // colour in hex; empty: the row is not a colour
}

func (t *table) write(a *answer) error {
	if a.err != nil {
		return nil // already reported on standard error
	}
	var output struct {
		Data struct {
			prediction
			Frames []frame
		}
	}
	if err := json.Unmarshal(a.output, &output); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	b := bufio.NewWriter(t.w)
	if t.several {
		if t.begun {
			fmt.Fprintln(b)
		}
		fmt.Fprintln(b, t.style("1", server.Printable(a.picture.name)))
	}
	t.begun = true
	rows := output.Data.rows()
	switch {
	case a.video:
		t.frames(b, output.Data.Frames)
	case len(output.Data.Embeddings) > 0:
		t.vector(b, output.Data.Embeddings[0].Vector)
	case len(rows) == 0:
		fmt.Fprintf(b, "  %s\n", t.style("2", t.nothing()))
	default:
		t.rows(b, rows)
	}
	return b.Flush()
}

// prediction is the data of an Output for a picture, or for a frame of a video.
type prediction struct {
	Concepts []struct {
		Name  string
		Value float64
	}
	Colors []struct {
		RawHex string `json:"raw_hex"`
		W3C    struct{ Name string }
		Value  float64
	}
	Embeddings []struct{ Vector []float64 }
}

func (p *prediction) rows() (rows []row) {
	for _, c := range p.Concepts {
		if c.Value >= 0.0005 { // smaller values would read as 0.000
			rows = append(rows, row{name: c.Name, value: c.Value})
		}
	}
	for _, c := range p.Colors {
		rows = append(rows, row{name: c.W3C.Name + " " + c.RawHex, value: c.Value, hex: c.RawHex})
	}
	return rows
}

// frame is a frame of a video in an Output.
type frame struct {
	FrameInfo struct{ Time int64 } `json:"frame_info"`
	Data      prediction
}

// frames writes one line per frame:
//
//	0:00  cat 0.998  animal 0.991
//	0:02  dog 0.973  animal 0.970
func (t *table) frames(b *bufio.Writer, frames []frame) {
	decimals, width := 0, 0
	for _, f := range frames {
		for fraction := f.FrameInfo.Time % 1000; decimals < 3 && fraction*pow10[decimals]%1000 != 0; {
			decimals++
		}
	}
	for _, f := range frames {
		width = max(width, len(clock(f.FrameInfo.Time, decimals)))
	}
	for _, f := range frames {
		fmt.Fprintf(b, "  %s", t.style("36", fmt.Sprintf("%*s", width, clock(f.FrameInfo.Time, decimals))))
		rows := f.Data.rows()
		switch {
		case len(f.Data.Embeddings) > 0:
			t.vector(b, f.Data.Embeddings[0].Vector)
			continue
		case len(rows) == 0:
			fmt.Fprintf(b, "  %s", t.style("2", t.nothing()))
		}
		for _, r := range rows {
			name := server.Printable(r.name)
			if r.hex != "" {
				name = t.swatch(r.hex) + name
			}
			fmt.Fprintf(b, "  %s %s", name, t.style("2", strconv.FormatFloat(r.value, 'f', 3, 64)))
		}
		fmt.Fprintln(b)
	}
}

var pow10 = [...]int64{1, 10, 100}

// clock writes a time in a video, in minutes and seconds.
func clock(ms int64, decimals int) string {
	seconds := fmt.Sprintf("%06.3f", float64(ms%60_000)/1000)
	return fmt.Sprintf("%d:%s", ms/60_000, strings.TrimSuffix(seconds[:3+decimals], "."))
}

// nothing returns the text for an empty result.
func (t *table) nothing() string {
	if strings.HasPrefix(t.model.Name, "food") {
		return "no food"
	}
	return "no result reaches --min-value"
}

// barCells is the number of cells of a bar for the value 1.
const barCells = 20

func (t *table) rows(b *bufio.Writer, rows []row) {
	width := 0
	for _, r := range rows {
		width = max(width, uniseg.StringWidth(server.Printable(r.name)))
	}
	for _, r := range rows {
		name := server.Printable(r.name)
		pad := strings.Repeat(" ", width-uniseg.StringWidth(name))
		if r.hex != "" {
			name = t.swatch(r.hex) + name
		}
		fmt.Fprintf(b, "  %s%s  %s  %s\n", name, pad, strconv.FormatFloat(r.value, 'f', 3, 64), t.style("36", bar(r.value)))
	}
}

// bar returns a bar for a value from 0 to 1, with a resolution of an eighth of a cell.
func bar(value float64) string {
	eighths := int(value*barCells*8 + 0.5)
	out := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		out += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return out
}

// swatch returns a sample of a colour, for a terminal with 24-bit colours.
func (t *table) swatch(hex string) string {
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 24)
	if !t.color || err != nil {
		return ""
	}
	return fmt.Sprintf("\x1b[48;2;%d;%d;%dm  \x1b[0m ", n>>16, n>>8&255, n&255)
}

// vector writes the start of an embedding, since nobody reads all of it.
func (t *table) vector(b *bufio.Writer, v []float64) {
	fmt.Fprint(b, "  [")
	for i, f := range v[:min(6, len(v))] {
		if i > 0 {
			fmt.Fprint(b, ", ")
		}
		fmt.Fprintf(b, "%+.4f", f)
	}
	fmt.Fprintf(b, ", …]  %d numbers, all of them with --json\n", len(v))
}

func (t *table) style(code, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
