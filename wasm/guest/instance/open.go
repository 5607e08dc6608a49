package instance

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

// Errors of calls that come at the wrong time or to the wrong instance.
var (
	errNoEngine   = fmt.Errorf("%w: the instance has no open engine", api.ErrOptions)
	errNoAnalyser = fmt.Errorf("%w: the instance has no open analyser", api.ErrOptions)
	errOpen       = fmt.Errorf("%w: the instance is already open", api.ErrOptions)
	errEnvelope   = fmt.Errorf("%w: envelope", field.ErrFormat)
)

// Open opens the instance with the Settings in data. [abi.AppendDone] writes the answer.
func (i *Instance) Open(data []byte) []byte {
	err := api.ErrInternal
	i.guard("open", func() { err = i.open(data) }, func() {})
	if err != nil && !errors.Is(err, errOpen) {
		err = errors.Join(err, i.shut())
	}
	i.answer = abi.AppendDone(i.answer, err)
	return i.answer
}

func (i *Instance) open(data []byte) error {
	if i.engine != nil || i.analysts != nil {
		return errOpen
	}
	s, err := abi.ParseSettings(data)
	if err != nil {
		return err
	}
	i.settings = s
	if s.Memory > 0 {
		debug.SetMemoryLimit(int64(min(s.Memory, 1<<32)))
	}
	// Most of the memory that open allocates stays in use. While a heap is small, Go collects often, which would cost more than it frees.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	load := map[abi.Role]func(fs.FS) (*predict.Set, error){
		abi.Engine: predict.LoadTables, abi.Analyser: predict.LoadNetwork, abi.Both: predict.Load,
	}[s.Role]
	older := func(base [32]byte) (*predict.Set, error) {
		files, err := hostapi.Older(i.Imports, base)
		if err != nil {
			return nil, err
		}
		return load(files)
	}
	var bundles fs.FS = hostapi.Bundles(i.Imports, s.Bundles)
	if s.Checked {
		bundles = predict.VerifiedFS{FS: bundles}
	}
	set, err := load(bundles)
	if err != nil {
		return err
	}
	i.network = set.Base()
	if s.Role != abi.Engine {
		i.analysts = &analysts{set: set, older: older, now: hostapi.Clock(i.Imports), time: s.PictureTime}
	}
	if s.Role != abi.Analyser {
		return i.openEngine(set, older)
	}
	return nil
}

// openEngine opens the store and an engine that uses it.
func (i *Instance) openEngine(set *predict.Set, older func([32]byte) (*predict.Set, error)) error {
	s := &i.settings
	o := core.Options{
		App: s.App, Models: set, Older: older,
		Clock: hostapi.Clock(i.Imports), Rand: hostapi.Random{From: i.Imports},
		PublicURL: s.PublicURL, PublicAppID: s.PublicAppID, PredictedTTL: s.KeepPredicted,
		JSON: jsonio.Limits{Bytes: int(s.MaxBytes), Members: int(s.MaxMembers)}, MaxAnswer: int64(s.MaxAnswer),
		Rate: rate(s.Rate, s.Burst, -1), OperatorRate: rate(s.OperatorRate, s.OperatorBurst, 0),
	}
	if s.Tokens {
		o.Tokens = hostapi.Tokens{From: i.Imports}
	}
	if s.Replica != nil {
		o.SyncStatus = i.syncStatus
	}
	if s.Counted {
		o.Calls = hostapi.Calls{From: i.Imports}
	}
	if s.Store != abi.StoreHost && s.App != "" && s.Replica == nil {
		return fmt.Errorf("%w: an instance with its own store must not name an application", api.ErrOptions)
	}
	if s.OpenDoor {
		i.singleApp = &singleApp{instance: i}
		if o.Tokens == nil {
			o.Tokens = noTokens{hostapi.Random{From: i.Imports}}
		}
	}
	var err error
	if o.Store, err = i.openStore(); err != nil {
		return err
	}
	o.NoColumns = s.Store != abi.StoreHost
	if s.Store == abi.StoreHost {
		o.Hosted, o.Thumbnails = hostapi.Pictures{From: i.Imports}, true
	} else {
		if s.Replica != nil {
			if err = i.register(o.Store); err != nil {
				return err
			}
		}
		if i.pictures, err = i.openPictures(); err != nil {
			return err
		}
		o.Hosted = i.pictures
	}
	if i.engine, err = core.Open(o); err != nil {
		return err
	}
	i.close = append(i.close, i.engine.Close)
	i.tasks = map[uint64]core.Task{}
	if s.Replica != nil {
		return i.openReplica(o.Store)
	}
	return nil
}

// rate returns a limit of n calls per second. If n is 0, it returns a Rate with unlimited calls per second, the value that means no limit
// in the field of core.Options. If burst is 0, it is n.
func rate(n, burst uint32, unlimited float64) auth.Rate {
	if n == 0 {
		return auth.Rate{PerSecond: unlimited}
	}
	return auth.Rate{PerSecond: float64(n), Burst: int(cmp.Or(burst, n))}
}

// maxOwnBytes is the maximum number of bytes of keys and values in the instance's own store. A module has 4 GB of memory, and the store's
// tree and the collector need a multiple of the data.
const maxOwnBytes = 1 << 30

// reserveBytes is the number of bytes that the store's files reserve, so that deletions still work if a browser provides no more space.
const reserveBytes = 256 << 10

// Numbers of the host's files in which an instance stores its own records and pictures.
var (
	storeFiles   = [2]int{0, 1}
	pictureFiles = [2]int{2, 3}
)

// openStore opens a store of the kind that the settings specify.
func (i *Instance) openStore() (kv.Store, error) {
	o := memkv.Options{MaxBytes: maxOwnBytes}
	switch i.settings.Store {
	case abi.StoreHost:
		return hostapi.NewStore(i.Imports), nil
	case abi.StoreFiles:
		o.Files = &memkv.Files{Disk: hostapi.Disk{From: i.Imports}, Pair: storeFiles, Reserve: reserveBytes}
		if i.settings.Salvage {
			o.Files.Salvage = &i.salvaged[0]
		}
	}
	s, err := memkv.Open(o)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	i.close = append(i.close, s.Close)
	return s, nil
}

// StoresPictures reports whether the instance has its own store, of records in its memory and of pictures.
func (i *Instance) StoresPictures() bool { return i.pictures != nil }

// shut closes everything that open has opened, in reverse order.
func (i *Instance) shut() error {
	for _, t := range i.trainings {
		t.Training.Close()
	}
	var err error
	for n := len(i.close) - 1; n >= 0; n-- {
		err = errors.Join(err, i.close[n]())
	}
	i.close, i.engine, i.pictures, i.singleApp, i.analysts = nil, nil, nil, nil, nil
	i.calls, i.tasks, i.trainings, i.machine = nil, nil, nil, nil
	return err
}
