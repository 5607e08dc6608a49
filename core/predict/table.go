package predict

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of a bundle's tables. They are far above the sizes of any known network. With them a
// damaged count cannot make the program allocate much memory.
const (
	maxConcepts = math.MaxUint16
	maxClasses  = math.MaxUint16
	maxHeads    = 4096
	maxIDBytes  = 64
)

// A concept is Hidden if its average precision is below hiddenBelow, measured on at least hiddenFrom positives.
const (
	hiddenBelow = 0.1
	hiddenFrom  = 10
)

// rule holds the coefficients that turn the network's outputs into one concept's value.
type rule struct {
	classes    []uint16 // indices into the logits, ascending
	head       int      // index of the head, or −1
	classSlope float64
	headSlope  float64
	intercept  float64
}

// rows splits a table into its rows. The first line must be header, and every row must have as many columns.
func rows(data []byte, header string) ([][]string, error) {
	first, rest, _ := strings.Cut(string(data), "\n")
	if first != header {
		return nil, fmt.Errorf("header %.80q, want %q: %w", first, header, ErrBundle)
	}
	columns := strings.Count(header, "\t") + 1
	var out [][]string
	for line := range strings.Lines(rest) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(row) != columns {
			return nil, fmt.Errorf("line %d: %d columns, want %d: %w", len(out)+2, len(row), columns, ErrBundle)
		}
		if len(out) == maxConcepts {
			return nil, fmt.Errorf("more than %d lines: %w", maxConcepts, ErrBundle)
		}
		out = append(out, row)
	}
	return out, nil
}

// concepts is the content of concepts.tsv and calibration.tsv.
type concepts struct {
	list  []Concept
	rules []rule
	food  []int // indices in list of the food model's concepts
}

const (
	conceptsHeader    = "concept_id\tname\tclasses\tmodels\tkind\thead"
	calibrationHeader = "concept_id\tclass_slope\thead_slope\tintercept\taverage_precision\tpositives\tjudged_on"
	colorsHeader      = "concept_id\tname\thex"
)

// parseConcepts parses concepts.tsv and calibration.tsv. classes and heads are the numbers of the network's classes and heads.
func parseConcepts(table, calibration []byte, classes, heads int) (*concepts, error) {
	list, err := rows(table, conceptsHeader)
	if err != nil {
		return nil, fmt.Errorf("concepts.tsv: %w", err)
	}
	slopes, err := rows(calibration, calibrationHeader)
	if err != nil {
		return nil, fmt.Errorf("calibration.tsv: %w", err)
	}
	if len(list) != len(slopes) || len(list) == 0 {
		return nil, fmt.Errorf("%d concepts and %d calibrations: %w", len(list), len(slopes), ErrBundle)
	}
	c := &concepts{}
	seen := map[string]bool{}
	for i, row := range list {
		if seen[row[0]] {
			return nil, fmt.Errorf("concepts.tsv: line %d: %q twice: %w", i+2, row[0], ErrBundle)
		}
		seen[row[0]] = true
		if err := c.add(row, classes, heads); err != nil {
			return nil, fmt.Errorf("concepts.tsv: line %d: %w", i+2, err)
		}
		if err := c.calibrate(i, slopes[i]); err != nil {
			return nil, fmt.Errorf("calibration.tsv: line %d: %w", i+2, err)
		}
	}
	return c, nil
}

func (c *concepts) add(row []string, classes, heads int) error {
	id, name, models, kind := row[0], row[1], row[3], row[4]
	if err := checkConcept(id, name); err != nil {
		return err
	}
	r := rule{head: -1}
	if row[2] != "" {
		last := -1
		for text := range strings.SplitSeq(row[2], ",") {
			n, err := index(text, classes)
			if err != nil || n <= last {
				return fmt.Errorf("classes of %q: %.20q: want ascending numbers below %d: %w", id, text, classes, ErrBundle)
			}
			r.classes = append(r.classes, uint16(n))
			last = n
		}
	}
	if row[5] != "" {
		n, err := index(row[5], heads)
		if err != nil {
			return fmt.Errorf("head of %q: %.20q: want a number below %d: %w", id, row[5], heads, ErrBundle)
		}
		r.head = n
	}
	switch {
	case len(r.classes) == 0 && r.head < 0:
		return fmt.Errorf("%q has neither classes nor a head: %w", id, ErrBundle)
	case kind != "class" && kind != "group" && kind != "head" && kind != "proxy":
		return fmt.Errorf("unknown kind %.20q of %q: %w", kind, id, ErrBundle)
	}
	switch models {
	case "general":
	case "general,food":
		if len(r.classes) > 0 {
			c.food = append(c.food, len(c.list))
		}
	default:
		return fmt.Errorf("models %.20q of %q: %w", models, id, ErrBundle)
	}
	c.list = append(c.list, Concept{ID: id, Name: name})
	c.rules = append(c.rules, r)
	return nil
}

func (c *concepts) calibrate(i int, row []string) error {
	if row[0] != c.list[i].ID {
		return fmt.Errorf("concept %.80q, want %q as in concepts.tsv: %w", row[0], c.list[i].ID, ErrBundle)
	}
	r := &c.rules[i]
	for j, p := range []*float64{&r.classSlope, &r.headSlope, &r.intercept} {
		v, err := strconv.ParseFloat(row[1+j], 64)
		if err != nil || !(math.Abs(v) <= 1e6) {
			return fmt.Errorf("slope %.20q is not a number: %w", row[1+j], ErrBundle)
		}
		*p = v
	}
	if r.head < 0 && r.headSlope != 0 {
		return fmt.Errorf("%q has a head slope but no head: %w", row[0], ErrBundle)
	}
	positives, err := strconv.ParseUint(row[5], 10, 31)
	if err != nil {
		return fmt.Errorf("positives %.20q: %w", row[5], ErrBundle)
	}
	if row[4] == "" { // never measured
		return nil
	}
	precision, err := strconv.ParseFloat(row[4], 64)
	if err != nil || !(precision >= 0 && precision <= 1) {
		return fmt.Errorf("average precision %.20q: %w", row[4], ErrBundle)
	}
	c.list[i].Hidden = precision < hiddenBelow && positives >= hiddenFrom
	return nil
}

// parseHeads parses heads.f32: weights of shape (heads, Dim), and then one intercept for each head.
func parseHeads(data []byte, heads int) (weights, intercepts []float32, err error) {
	if len(data) != 4*heads*(Dim+1) {
		return nil, nil, fmt.Errorf("heads.f32: %d bytes, want %d: %w", len(data), 4*heads*(Dim+1), ErrBundle)
	}
	all := make([]float32, heads*(Dim+1))
	for i := range all {
		v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if !(math.Abs(float64(v)) <= 1e9) {
			return nil, nil, fmt.Errorf("heads.f32: element %d is %v: %w", i, v, ErrBundle)
		}
		all[i] = v
	}
	return all[: heads*Dim : heads*Dim], all[heads*Dim:], nil
}

// parseColors parses colors.tsv.
func parseColors(data []byte) ([]Color, error) {
	list, err := rows(data, colorsHeader)
	if err != nil {
		return nil, fmt.Errorf("colors.tsv: %w", err)
	}
	if len(list) == 0 || len(list) > maxColors {
		return nil, fmt.Errorf("colors.tsv: %d colours, want 1 to %d: %w", len(list), maxColors, ErrBundle)
	}
	seen := map[string]bool{}
	var out []Color
	for i, row := range list {
		c := Color{ID: row[0], Name: row[1], Hex: row[2]}
		_, ok := parseHex(c.Hex)
		if err := checkConcept(c.ID, c.Name); err != nil || !ok || seen[c.ID] || seen[c.Name] {
			return nil, fmt.Errorf("colors.tsv: line %d: %.80q: %w", i+2, row, ErrBundle)
		}
		seen[c.ID], seen[c.Name] = true, true
		out = append(out, c)
	}
	return out, nil
}

func checkConcept(id, name string) error {
	rest, ok := strings.CutPrefix(id, "ai_")
	ok = ok && rest != "" && len(id) <= maxIDBytes
	for i := range len(rest) {
		c := rest[i]
		ok = ok && ('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return fmt.Errorf("concept id %.80q: want ai_ and letters and digits: %w", id, ErrBundle)
	}
	if name == "" {
		return fmt.Errorf("concept %q has no name: %w", id, ErrBundle)
	}
	return nil
}

// index parses a decimal number below n, without a sign or leading zeros.
func index(s string, n int) (int, error) {
	v, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, err
	}
	if int(v) >= n || strconv.FormatUint(v, 10) != s {
		return 0, strconv.ErrRange
	}
	return int(v), nil
}
