package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

type trainFlags struct {
	target
	noWait bool
	asJSON bool
	quiet  bool
}

func newTrain(env *server.Env) *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train MODEL",
		Short: "Train a model and print its evaluation",
		Long: `Trains a new version of the model with the ID MODEL from the inputs labelled with its concepts,
waits until it is done and prints its cross-validated evaluation.

Use at least ten pictures per concept. With fewer, training works and prints a warning.

Exit codes: 0 trained; 1 training failed; 2 usage error.` + targetHelp,
		Example: `  {prog} train pets --data ./data
  {prog} train pets --key 0123456789abcdef0123456789abcdef --json`,
		Args: OneArgument("the model ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open(cmd.Context(), env)
			if err != nil {
				return err
			}
			return errors.Join(f.run(cmd.Context(), s, args[0], env), s.close())
		},
	}
	f.flags(cmd, env)
	flags := cmd.Flags()
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait; print the new version's ID")
	flags.BoolVar(&f.asJSON, "json", false, "print the version as a JSON object, as in the API")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// Status codes of model versions.
const (
	trained       = 21100
	training      = 21101
	trainingQueue = 21103
)

// suggested is the number of pictures of a concept that make a good start.
const suggested = 10

// modelVersion is a model version in an answer.
type modelVersion struct {
	ID      string
	Digest  string
	Status  Status
	Inputs  int `json:"total_input_count"`
	Metrics struct {
		Concepts []conceptMetrics `json:"binary_metrics"`
		Weakest  []struct {
			ID        string
			Predicted []struct {
				Name  string
				Value float64
			} `json:"predicted_concepts"`
			Truth []struct{ Value float64 } `json:"ground_truth_concepts"`
		} `json:"test_set"`
		Extension struct {
			Promised   float64 `json:"promised_precision"`
			MinChecked int     `json:"min_checked_pictures"`
			Concepts   []cutOffMetrics
		} `json:"sightline"`
	}
}

// cutOff returns the metrics of a concept at its cut-off. Older servers send none, so the metrics are nil.
func (v *modelVersion) cutOff(concept int) cutOffMetrics {
	if all := v.Metrics.Extension.Concepts; concept < len(all) {
		return all[concept]
	}
	return cutOffMetrics{}
}

// cutOffMetrics holds the metrics of one concept at its cut-off. Unknown metrics are nil.
type cutOffMetrics struct {
	Precision, Recall *float64
	Supported         *float64 `json:"supported_precision"`
}

// conceptMetrics holds the metrics of a version for one concept.
type conceptMetrics struct {
	Positives int     `json:"num_pos"`
	Negatives int     `json:"num_neg"`
	ROCAUC    float64 `json:"roc_auc"`
	F1        float64
	Concept   struct{ Name string }
}

func (f *trainFlags) run(ctx context.Context, s Session, model string, env *server.Env) error {
	path := "/v2/models/" + url.PathEscape(model) + "/versions"
	var reply struct {
		Model struct {
			Version modelVersion `json:"model_version"`
		}
	}
	if err := SendRequest(ctx, s, "POST", path, nil, &reply); err != nil {
		return err
	}
	id := reply.Model.Version.ID
	if f.noWait {
		_, err := fmt.Fprintln(env.Stdout, id)
		return err
	}
	raw, v, err := f.await(ctx, s, path+"/"+url.PathEscape(id)+"?show=digest", env.Stderr)
	if err != nil {
		return err
	}
	if f.asJSON {
		if _, err := fmt.Fprintf(server.EscapeWriter{W: env.Stdout}, "%s\n", raw); err != nil {
			return err
		}
	}
	if v.Status.Code != trained {
		return fmt.Errorf("version %s: %w", id, v.Status.Err())
	}
	if f.asJSON {
		return nil
	}
	var answer struct {
		Version modelVersion `json:"model_version"`
	}
	if err := SendRequest(ctx, s, "GET", path+"/"+url.PathEscape(id)+"/metrics?show=sightline", nil, &answer); err != nil {
		return err
	}
	answer.Version.Digest = v.Digest // a version without an evaluation has a digest too
	if err := printEvaluation(env.Stdout, &answer.Version); err != nil || f.quiet {
		return err
	}
	advise(env.Stderr, &answer.Version)
	return nil
}

// printEvaluation prints the metrics of a version.
func printEvaluation(w io.Writer, v *modelVersion) error {
	fmt.Fprintf(w, "version %s, trained on %d inputs\n", v.ID, v.Inputs)
	fmt.Fprintf(w, "digest %s\n\n", v.Digest)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONCEPT\tPICTURES\tOTHERS\tPRECISION\tRECALL\tF1\tROC AUC")
	for i, c := range v.Metrics.Concepts {
		share := func(value *float64) string {
			if value == nil {
				return "-"
			}
			return fmt.Sprintf("%.2f", *value)
		}
		at := v.cutOff(i)
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%.2f\t%.2f\n",
			server.Printable(c.Concept.Name), c.Positives, c.Negatives, share(at.Precision), share(at.Recall), c.F1, c.ROCAUC)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, weak := range v.Metrics.Weakest {
		if i == 0 {
			fmt.Fprintln(w, "\nCheck these labels; the model, tested on unseen pictures, disagrees:")
		}
		if len(weak.Predicted) == 0 || len(weak.Truth) == 0 {
			break
		}
		negation := "not "
		if weak.Truth[0].Value > 0 {
			negation = ""
		}
		fmt.Fprintf(w, "  %s  labelled %s%s, predicted %.2f\n", server.Printable(weak.ID), negation, server.Printable(weak.Predicted[0].Name), weak.Predicted[0].Value)
	}
	return nil
}

// advise points out a training without labels, concepts with few pictures or unchecked labels, and cut-offs that do not reach the promised
// precision.
func advise(w io.Writer, v *modelVersion) {
	if v.Status.Details != "" {
		fmt.Fprintln(w, server.Printable(v.Status.Details))
	}
	for i, c := range v.Metrics.Concepts {
		if c.Positives < suggested {
			fmt.Fprintf(w, "%s has only %d pictures; use at least %d for good results\n", server.Printable(c.Concept.Name), c.Positives, suggested)
		}
		if at := v.Metrics.Extension.MinChecked; c.Positives < at {
			fmt.Fprintf(w, "the labels of %s are not checked; that needs at least %d pictures\n", server.Printable(c.Concept.Name), at)
		}
		promised := v.Metrics.Extension.Promised
		if at := v.cutOff(i); at.Supported != nil && *at.Supported < promised {
			fmt.Fprintf(w, "the cut-off of %s does not promise a precision of %.2f: cross-validation supports %.2f; label more pictures\n",
				server.Printable(c.Concept.Name), promised, *at.Supported)
		}
	}
}

// await polls a version until its training has ended.
func (f *trainFlags) await(ctx context.Context, s Session, path string, w io.Writer) (json.RawMessage, modelVersion, error) {
	start, lastCode := system.Now(), 0
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		var answer struct {
			Version json.RawMessage `json:"model_version"`
		}
		if err := SendRequest(ctx, s, "GET", path, nil, &answer); err != nil {
			return nil, modelVersion{}, err
		}
		var v modelVersion
		if err := json.Unmarshal(answer.Version, &v); err != nil {
			return nil, v, fmt.Errorf("model_version: %w", err)
		}
		if v.Status.Code != training && v.Status.Code != trainingQueue {
			return answer.Version, v, nil
		}
		if v.Status.Code != lastCode && !f.quiet && system.Now().Sub(start) > time.Second {
			fmt.Fprintf(w, "%.0f s: %s\n", system.Now().Sub(start).Seconds(), server.Printable(v.Status.Description))
			lastCode = v.Status.Code
		}
		if system.Pause(ctx, wait); ctx.Err() != nil {
			return nil, v, fmt.Errorf("interrupted; the training was not cancelled: %w", ctx.Err())
		}
	}
}
