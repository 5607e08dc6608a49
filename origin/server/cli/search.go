package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

type searchFlags struct {
	target
	concepts, notConcepts []string // predicted concepts
	labels, notLabels     []string // concepts that users labelled
	metadata              []string
	urls, ids             []string
	near, box             string
	similar, crop         string
	language              string
	minScore              float64
	page, perPage         int
	asJSON                bool
}

func newSearch(env *server.Env) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Search pictures",
		Long: `Searches inputs. All conditions must match. Without conditions, lists all inputs, oldest first.

Concepts are names (in --language) or IDs. --concept matches predictions and ranks by
probability; --label matches labels set by people; --similar ranks by similarity to a file, a URL
or, with id:, a stored input. Repeat a flag to require several concepts, labels or metadata.
Names of unknown concepts are printed with the nearest known name.` + targetHelp,
		Example: `  {prog} search --concept dog --concept beach --data ./data
  {prog} search --similar holiday.jpg --metadata '{"shelf":7}' --key 0123456789abcdef0123456789abcdef
  {prog} search --label cat --not-label dog --near 48.14,11.58,5km --json --data ./data
  {prog} search --similar id:a/1.jpg --box 47,10,49,12 --data ./data`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := f.query()
			if err != nil {
				return err
			}
			s, err := f.open(cmd.Context(), env)
			if err != nil {
				return err
			}
			return errors.Join(f.run(cmd.Context(), s, query, env), s.close())
		},
	}
	f.flags(cmd, env)
	flags := cmd.Flags()
	// Names, metadata and URLs may contain commas.
	flags.StringArrayVar(&f.concepts, "concept", nil, "`name` or ID of a predicted concept")
	flags.StringArrayVar(&f.notConcepts, "not-concept", nil, "`name` or ID of a concept that is not predicted")
	flags.StringArrayVar(&f.labels, "label", nil, "`name` or ID of a concept labelled as present")
	flags.StringArrayVar(&f.notLabels, "not-label", nil, "`name` or ID of a concept labelled as absent")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "`JSON` object that the metadata must contain")
	flags.StringArrayVar(&f.urls, "image-url", nil, "`URL` that the picture was added from")
	flags.StringArrayVar(&f.ids, "id", nil, "`ID` of the input")
	flags.StringVar(&f.near, "near", "", "location and distance: `LAT,LON,RADIUS`, such as 48.1,11.6,5km; units km, mi, deg, rad")
	flags.StringVar(&f.box, "box", "", "area between two corners: `LAT,LON,LAT,LON`")
	flags.StringVar(&f.similar, "similar", "", "rank by similarity to `picture`: a file, a URL, or id:INPUT")
	flags.StringVar(&f.crop, "crop", "", "crop of the --similar picture: `TOP,LEFT,BOTTOM,RIGHT`, from 0 to 1")
	flags.StringVar(&f.language, "language", "", "language `code` of concept names (default: the application's)")
	flags.Float64Var(&f.minScore, "min-score", 0, "minimum `score` of the results, from 0 to 1")
	flags.IntVar(&f.page, "page", 1, "page `number`")
	flags.IntVar(&f.perPage, "per-page", 20, "`results` per page, at most 1000")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per result and line, as in the API")
	return cmd
}

// query returns the body of the search request.
func (f *searchFlags) query() (Object, error) {
	ands := []Object{}
	input := func(member string, v any) { ands = append(ands, Object{"input": Object{"data": Object{member: v}}}) }
	for value, names := range map[bool][]string{true: f.concepts, false: f.notConcepts} {
		for _, name := range names {
			ands = append(ands, Object{"output": Object{"data": Object{"concepts": []Object{reference(name, value)}}}})
		}
	}
	for value, names := range map[bool][]string{true: f.labels, false: f.notLabels} {
		for _, name := range names {
			input("concepts", []Object{reference(name, value)})
		}
	}
	for _, m := range f.metadata {
		if !json.Valid([]byte(m)) {
			return nil, server.Usagef("--metadata %s: not valid JSON", m)
		}
		input("metadata", json.RawMessage(m))
	}
	for _, u := range f.urls {
		input("image", Object{"url": u})
	}
	for _, id := range f.ids {
		ands = append(ands, Object{"input": Object{"id": id}})
	}
	if f.near != "" {
		geo, err := near(f.near)
		if err != nil {
			return nil, err
		}
		input("geo", geo)
	}
	if f.box != "" {
		n, err := numbers("box", f.box, 4)
		if err != nil {
			return nil, err
		}
		input("geo", Object{"geo_box": []Object{{"geo_point": point(n[0], n[1])}, {"geo_point": point(n[2], n[3])}}})
	}
	if f.similar != "" {
		like, err := f.like()
		if err != nil {
			return nil, err
		}
		ands = append(ands, Object{"output": Object{"input": like}})
	} else if f.crop != "" {
		return nil, server.Usagef("--crop needs --similar")
	}
	query := Object{"ands": ands}
	if f.language != "" {
		query["language"] = f.language
	}
	if f.minScore != 0 {
		query["min_score"] = f.minScore
	}
	return Object{"query": query, "pagination": Object{"page": f.page, "per_page": f.perPage}}, nil
}

// reference returns a reference to a concept. Public ids begin with ai_; any other text is a name.
func reference(name string, value bool) Object {
	if strings.HasPrefix(name, "ai_") {
		return Object{"id": name, "value": value}
	}
	return Object{"name": name, "value": value}
}

func point(lat, lon float64) Object { return Object{"longitude": lon, "latitude": lat} }

// units lists the API's names of the units of a radius.
var units = []struct{ suffix, name string }{
	{"km", "withinKilometers"}, {"mi", "withinMiles"}, {"deg", "withinDegrees"}, {"rad", "withinRadians"},
}

// near reads a place and a radius around it.
func near(text string) (Object, error) {
	unit := units[0].name
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = rest, u.name
		}
	}
	n, err := numbers("near", text, 3)
	if err != nil {
		return nil, err
	}
	return Object{"geo_point": point(n[0], n[1]), "geo_limit": Object{"type": unit, "value": n[2]}}, nil
}

// numbers reads a list of exactly n numbers.
func numbers(flag, text string, n int) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, server.Usagef("--%s: %q is not a number", flag, part)
		}
		out = append(out, x)
	}
	if len(out) != n {
		return nil, server.Usagef("--%s: expected %[3]d numbers, got %[2]d", flag, len(out), n)
	}
	return out, nil
}

// like returns the query input of a search for similar pictures.
func (f *searchFlags) like() (Object, error) {
	in, image := Object{}, Object{}
	if f.crop != "" {
		n, err := numbers("crop", f.crop, 4)
		if err != nil {
			return nil, err
		}
		image["crop"] = n
	}
	id, stored := strings.CutPrefix(f.similar, "id:")
	lower := strings.ToLower(f.similar)
	switch {
	case stored:
		in["id"] = id
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		image["url"] = f.similar
	default:
		picture, err := system.ReadFile(f.similar, MaxPictureBytes)
		if err != nil {
			return nil, fmt.Errorf("--similar: %w", err)
		}
		image["base64"] = base64.StdEncoding.EncodeToString(picture)
	}
	in["data"] = Object{"image": image}
	return in, nil
}

// hit is one search result.
type hit struct {
	Score float64
	Input struct {
		ID   string
		Data struct {
			Image    struct{ URL string }
			Concepts []struct {
				Name  string
				Value float64
			}
		}
	}
}

func (f *searchFlags) run(ctx context.Context, s Session, query Object, env *server.Env) error {
	var answer struct{ Hits []json.RawMessage }
	notices, err := ask(ctx, s, "POST", "/v2/searches", query, &answer)
	if err != nil {
		return err
	}
	for _, n := range notices {
		fmt.Fprintln(env.Stderr, server.Printable(n.Text))
	}
	w := env.Stdout
	if f.asJSON {
		for _, raw := range answer.Hits {
			if _, err := fmt.Fprintf(server.EscapeWriter{W: w}, "%s\n", raw); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCORE\tID\tCONCEPTS\tPICTURE")
	for _, raw := range answer.Hits {
		var h hit
		if err := json.Unmarshal(raw, &h); err != nil {
			return fmt.Errorf("hit: %w", err)
		}
		var concepts []string
		for _, c := range h.Input.Data.Concepts {
			name := c.Name
			if c.Value == 0 {
				name = "not " + name
			}
			concepts = append(concepts, server.Printable(name))
		}
		fmt.Fprintf(table, "%.4f\t%s\t%s\t%s\n", h.Score, server.Printable(h.Input.ID), strings.Join(concepts, ", "), server.Printable(h.Input.Data.Image.URL))
	}
	return table.Flush()
}
