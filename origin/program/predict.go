package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// predictFlags are the flags of a prediction.
type predictFlags struct {
	model        string
	language     string
	top          int
	minValue     float64
	asJSON       bool
	workers      int
	allowPrivate bool
	quiet        bool
	hidden       bool
	every        time.Duration // time from one analysed frame of a video to the next
	animations   bool          // GIF and animated WebP count as videos
	videoModule  string
	videoDecoder string
}

func newPredict(env *server.Env) *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict FILE|URL|-|DIR...",
		Short: "Recognise what is in pictures and videos",
		Long: `Recognises what is in pictures and videos: files, folders, URLs, or "-" for standard input.

Runs locally without a server. Only URLs are downloaded. A folder means all pictures and videos
below it, recognised by their content and sorted by name. It leaves out the same files as
'{prog} import'; --hidden reads hidden files, too.

Prints a table, and for a video a line per frame with its time. --every sets the time from one
frame to the next; with it, GIF and animated WebP files count as videos. With --json, prints one
Output object of POST /v2/models/{id}/outputs per file and line, with the path as its url. Results
are in the order of the arguments. Progress and errors go to standard error.

A video has at most 10 minutes and 600 frames, and 80 MB from a URL or standard input. The decoder
is compiled for the first video, which takes about 16 seconds, and then kept in the user's cache
folder. '{prog} precompile' compiles it in advance.

Exit codes: 0 all pictures predicted; 1 all failed, or interrupted; 2 usage error; 3 some
pictures failed.`,
		Example: `  {prog} predict holiday.jpg
  {prog} predict --language de --top 10 photos/
  {prog} predict --every 2s film.mp4
  {prog} predict --model food-items-v1.0 https://example.com/ramen.jpg
  cat picture.png | {prog} predict --json -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return server.Usagef("no pictures given: pass files, folders, URLs, or - for standard input")
			}
			if n := len(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a != "-" })); n > 1 {
				return server.Usagef("- (standard input) can be given only once")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.animations = cmd.Flags().Changed("every")
			p, err := newPredictor(cmd.Context(), &f)
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), args, env)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "general-v1.3", "`name` or ID of a public model")
	flags.StringVar(&f.language, "language", "", "language `code` of concept names, such as de or zh-TW; the general model supports 23")
	flags.IntVar(&f.top, "top", 0, "maximum `number` of concepts per picture or frame, 1 to 200 (default: 5 in a table, 20 in JSON)")
	flags.Float64Var(&f.minValue, "min-value", 0, "minimum `probability`, 0 to 1")
	flags.BoolVar(&f.asJSON, "json", false, "print one Output object per line")
	flags.IntVar(&f.workers, "workers", 0, "`number` of pictures analysed in parallel (default: number of CPU cores)")
	flags.BoolVar(&f.allowPrivate, "allow-private-fetch", false, "allow downloads from private networks and any port")
	flags.DurationVar(&f.every, "every", time.Second, "`time` from one frame of a video to the next, 100ms to 10m")
	flags.BoolVar(&f.hidden, "hidden", false, "read hidden files in folders, too")
	flags.StringVar(&f.videoModule, "video-module", "", server.VideoModuleHelp)
	flags.StringVar(&f.videoDecoder, "video-decoder", "", server.VideoDecoderHelp)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// predictor predicts pictures and videos with its own engine.
type predictor struct {
	flags    *predictFlags
	set      *predict.Set
	model    *predict.Model
	engine   *core.Engine
	app      string // the only application of the engine; it is empty
	fetcher  *fetch.Fetcher
	decoder  func() (*video.Decoder, error) // returns the decoder of videos, created for the first one
	films    chan struct{}                  // a token for each video that is being decoded
	maxVideo int64                          // maximum size of a video that is not in a file, in bytes

	cache     string            // folder of the user for the compiled module; empty: there is none
	compiling func(percent int) // shows the progress of compiling the module; nil: nothing does
}

// newPredictor checks the flags against the models. Most of its errors are usage errors.
func newPredictor(ctx context.Context, f *predictFlags) (*predictor, error) {
	if f.top < 0 || f.top > 200 {
		return nil, server.Usagef("--top %d: must be 1 to 200", f.top)
	}
	if !(f.minValue >= 0 && f.minValue <= 1) {
		return nil, server.Usagef("--min-value %v: must be 0 to 1", f.minValue)
	}
	if f.workers < 0 {
		return nil, server.Usagef("--workers %d: must not be negative", f.workers)
	}
	if ms := f.every.Milliseconds(); ms < api.MinSampleMS || ms > api.MaxSampleMS || f.every%time.Millisecond != 0 {
		return nil, server.Usagef("--every %v: must be 100ms to 10m, in whole milliseconds", f.every)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		return nil, err
	}
	p := &predictor{flags: f, set: set, films: make(chan struct{}, max(1, system.Cores()/2))}
	p.decoder = sync.OnceValues(p.newDecoder)
	if p.maxVideo, err = server.ParseSize(server.DefaultMaxVideo); err != nil {
		return nil, err
	}
	if p.model, err = findModel(set, f.model); err != nil {
		return nil, err
	}
	if _, err := lang.Choose(f.language, lang.English, p.model.Languages); err != nil {
		return nil, server.Usagef("--language %s: %w", f.language, err)
	}
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: system.Random})
	if err != nil {
		return nil, err
	}
	p.engine, err = core.Open(core.Options{Store: memkv.New(), Models: set, Hosted: hosted, Clock: system.Now, Rand: system.Random})
	if err != nil {
		return nil, err
	}
	app, _, err := p.engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: server.LocalApp, Language: lang.English})
	if err != nil {
		return nil, err
	}
	p.app = app.ID
	p.fetcher = fetch.New(fetch.Options{Policy: fetch.Policy{AllowPrivate: f.allowPrivate}, Resolve: system.Resolve, Dial: system.Dial})
	return p, nil
}

// findModel returns the model with an ID or else a name. If several models have the name, it returns the
// first that has concepts or colours to show.
func findModel(set *predict.Set, idOrName string) (*predict.Model, error) {
	if m, ok := set.Model(idOrName); ok {
		return m, nil
	}
	matches := set.ByName(idOrName)
	for _, m := range matches {
		if m.Type != predict.TypeEmbed {
			return m, nil
		}
	}
	if len(matches) > 0 {
		return matches[0], nil
	}
	var known []string
	for _, m := range set.Models() {
		known = append(known, m.Name+" ("+m.ID+")")
	}
	return nil, server.Usagef("--model %s: model not found; available:\n  %s", idOrName, strings.Join(known, "\n  "))
}

// run predicts the arguments and writes the answers in their order.
func (p *predictor) run(ctx context.Context, args []string, env *server.Env) error {
	pictures, leftOut := expand(args, collection.Options{Hidden: p.flags.hidden})
	if len(pictures) == 0 {
		return fmt.Errorf("no pictures in %s%s", strings.Join(args, ", "), cli.LeftOutText(leftOut))
	}
	p.cache, _ = system.CacheFolder(env.Lookup) // without one, each video compiles the decoder
	if !p.flags.quiet {
		p.compiling = cli.PrintProgress(env.Stderr, video.CompilingStep)
	}
	var out writer = &table{
		w: env.Stdout, model: p.model, several: len(pictures) > 1,
		color: server.IsTerminal(env.Stdout) && env.Lookup("NO_COLOR") == "",
	}
	if p.flags.asJSON {
		out = jsonLines{env.Stdout}
	}
	progress := cli.NewProgress(env.Stderr, cli.ProgressOptions{Verb: "predicting", Noun: "pictures", Total: len(pictures), Quiet: p.flags.quiet, Shared: server.IsTerminal(env.Stdout)})
	failed, err := p.all(ctx, pictures, env.Stdin, out, progress)
	if system.IsBrokenPipe(err) {
		return err // the reader has closed the output, which is not an error
	}
	progress.LeftOut = cli.LeftOutText(leftOut)
	progress.Finish()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d of %d %s", progress.Done, len(pictures), progress.Noun)
	case failed == len(pictures):
		return server.ExitError(server.ExitFailed)
	case failed > 0:
		return server.ExitError(server.ExitPartial)
	}
	return nil
}

// answer is the result of one picture or video.
type answer struct {
	picture picture
	video   bool
	output  []byte // the Output object
	err     error  // reason for the failure; output then has the API's status of it
	fatal   error  // error after which no picture can be predicted
}

// all predicts pictures and videos, and writes the answers to out in order. failed is the number of failed ones.
func (p *predictor) all(ctx context.Context, pictures []picture, stdin io.Reader, out writer, progress *cli.Progress) (failed int, err error) {
	for a := range p.answers(ctx, pictures, stdin, progress) {
		if a.fatal != nil || ctx.Err() != nil {
			return failed, a.fatal
		}
		if a.video {
			progress.Noun = "pictures and videos"
		}
		if a.err != nil {
			failed++
			progress.Failure(a.picture.name, a.err)
		}
		progress.Clear()
		err := out.write(&a)
		progress.Step(a.err)
		if err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// answers predicts pictures on all workers and yields the answers in the order of the pictures, until ctx ends. Each picture has its place
// in the ordered channel before a worker takes it. The channel's length bounds the number of waiting answers, so memory does not grow with
// the number of pictures.
func (p *predictor) answers(ctx context.Context, pictures []picture, stdin io.Reader, progress *cli.Progress) iter.Seq[answer] {
	type task struct {
		picture picture
		done    chan answer
	}
	return func(yield func(answer) bool) {
		workers := min(cmp.Or(p.flags.workers, system.Cores()), len(pictures))
		tasks, ordered := make(chan task), make(chan task, 4*workers)
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		running.Go(func() {
			defer close(ordered)
			defer close(tasks)
			for _, picture := range pictures {
				t := task{picture, make(chan answer, 1)}
				for _, to := range []chan task{ordered, tasks} {
					select {
					case to <- t:
					case <-ctx.Done():
						return
					}
				}
			}
		})
		for range workers {
			running.Go(func() {
				w := p.newWorker(stdin, progress)
				for t := range tasks {
					t.done <- w.predict(ctx, t.picture)
				}
			})
		}
		for t := range ordered {
			select {
			case a := <-t.done:
				if !yield(a) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
