package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// openNamed opens a replica's store. Openings with the same name draw the same writer.
func openNamed(t testing.TB, store kv.Store, name byte) *partition.Replica {
	t.Helper()
	p, err := partition.OpenReplica(partition.Options{Store: store, App: app, Clock: clock, Epoch: log.Epoch{name}}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// imageOf copies a store.
func imageOf(t testing.TB, store kv.Store) kv.Store {
	t.Helper()
	var b kv.Batch
	err := store.Scan(nil, nil, func(key, value []byte) bool {
		b.Put(key, value)
		return true
	})
	out := kvtest.OrLate(t, memkv.New())
	if err == nil {
		err = out.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sendAllPending pushes what is pending at a replica.
func sendAllPending(t testing.TB, p *partition.Replica, to *partition.Origin) {
	t.Helper()
	(&testReplica{Replica: p}).push(t, to, 1<<30)
}

// sealing opens an origin whose log has seals.
func sealing(t testing.TB, store kv.Store) *partition.Origin {
	t.Helper()
	return sealingAs(t, store, opening())
}

// sealingAs is sealing in an opening with a name.
func sealingAs(t testing.TB, store kv.Store, name log.Epoch) *partition.Origin {
	t.Helper()
	p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock, Epoch: name, Secret: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openRestored opens an origin from an image of its store, as a restore leaves it, in an opening with a name.
func openRestored(t testing.TB, image kv.Store, name byte) *partition.Origin {
	t.Helper()
	return sealingAs(t, imageOf(t, image), log.Epoch{name})
}

// sealedRuns returns the entries of an origin's log after an entry as the origin sends them: each run has one epoch and a seal.
func sealedRuns(t testing.TB, origin *partition.Origin, after uint64) (runs []partition.Run) {
	t.Helper()
	l := origin.Log()
	for after < l.Head() {
		r := run(t, origin, partition.Cursor{Seq: after}, int(min(l.EpochOf(after+1).To-after, log.MaxRows)))
		r.Seal, r.Stable = origin.Seal(r.To, r.Chain), 0
		var err error
		if r.Before, err = l.Chain(after); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
		after = r.To
	}
	return runs
}

// pullSealed pulls all that an origin has.
func pullSealed(t testing.TB, p *partition.Replica, origin *partition.Origin) {
	t.Helper()
	for _, r := range sealedRuns(t, origin, p.Cursor().Seq) {
		if _, err := p.Pull(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// framesOf returns the frames that a replica keeps, with their numbers.
func framesOf(t testing.TB, p *partition.Replica) (frames []partition.Frame, numbers []uint64) {
	t.Helper()
	err := p.KeptAfter(0, func(n uint64, f partition.Frame) bool {
		frames, numbers = append(frames, f), append(numbers, n)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return frames, numbers
}

// framesAfter returns the entries of an origin's log after an entry as a replica that pulled them keeps them.
func framesAfter(t testing.TB, origin *partition.Origin, after uint64) (frames []partition.Frame) {
	t.Helper()
	for _, r := range sealedRuns(t, origin, after) {
		frames = append(frames, r.Frame)
	}
	return frames
}

// takeBack has a log take frames back. missing has the reason for each operation without its picture.
func takeBack(t testing.TB, p *partition.Origin, frames []partition.Frame, missing map[log.Dot]string) {
	t.Helper()
	if err := p.TakeBack(t.Context(), &partition.Returned{Opening: p.Opening(), Frames: frames, Missing: missing}, nil); err != nil {
		t.Fatal(err)
	}
}

// giveBack has a replica give back what a log may lack, as in a session: the frames after the last entry that both have.
func giveBack(t testing.TB, r *partition.Replica, to *partition.Origin) {
	t.Helper()
	have, chain, err := to.Common(r.Kept())
	if err != nil {
		t.Fatal(err)
	}
	from, err := r.KeptFrom(have, chain)
	if err != nil {
		t.Fatal(err)
	}
	frames, numbers := framesOf(t, r)
	for i, n := range numbers {
		if n >= from {
			takeBack(t, to, frames[i:i+1], nil)
		}
	}
}

func conflictsOf(t testing.TB, p kind) (list []partition.Conflict) {
	t.Helper()
	if err := p.Conflicts(func(c partition.Conflict) bool { list = append(list, c); return true }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTakeBack has a restored origin take back what a replica has pulled: the same log, unless it was written to before. A log takes an operation
// back once, however often it comes.
func TestTakeBack(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	doomed := submit(t, origin, create("doomed"))[0].Dot
	image := imageOf(t, store)
	submit(t, origin, create("a"), create("b"))
	submit(t, origin, &log.InputDelete{Input: doomed})
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	frames, _ := framesOf(t, r)
	head := origin.Log().Head()
	want, err := origin.Log().Chain(head)
	if err != nil {
		t.Fatal(err)
	}

	for name, back := range map[string]func(*partition.Origin){
		"all frames":      func(p *partition.Origin) { takeBack(t, p, frames, nil) },
		"what is missing": func(p *partition.Origin) { giveBack(t, r, p) },
		"one entry a time": func(p *partition.Origin) {
			for at := range head {
				takeBack(t, p, []partition.Frame{singleFrame(t, origin, at+1)}, nil)
			}
		},
	} {
		same := openRestored(t, image, 2)
		for range 2 {
			back(same)
			if chain, err := same.Log().Chain(head); err != nil || chain != want || same.Log().Head() != head || len(conflictsOf(t, same)) > 0 {
				t.Errorf("%s: the log ends at %d with %x, %v, want %d with %x", name, same.Log().Head(), chain, err, head, want)
			}
		}
		if got := same.Log().EpochOf(head); got != (log.Mark{Epoch: same.Opening(), To: head}) {
			t.Errorf("%s: the entries have the epoch %x, want %x", name, got, same.Opening())
		}
	}
	takeBack(t, origin, frames, nil)
	if origin.Log().Head() != head || len(conflictsOf(t, origin)) > 0 {
		t.Errorf("a log that lacks nothing ends at %d, want %d", origin.Log().Head(), head)
	}

	other := openRestored(t, image, 3)
	verdict := submit(t, other, create("a"))[0]
	if verdict.Dot.Writer == doomed.Writer {
		t.Errorf("a restored log writes as %v, like the log of before", verdict.Dot)
	}
	giveBack(t, r, other)
	v := other.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[a b]" {
		t.Errorf("inputs %v", got)
	}
	c := conflictsOf(t, other)
	if len(c) != 1 {
		t.Fatalf("conflicts %+v", c)
	}
	if x, ok := c[0].Op.Body.(*log.InputCreate); !ok || x.ID != "a" || c[0].Verdict.Dot != verdict.Dot {
		t.Errorf("conflict %+v", c[0])
	}
}

// singleFrame returns one entry of an origin's log as a frame.
func singleFrame(t testing.TB, origin *partition.Origin, seq uint64) partition.Frame {
	t.Helper()
	f := run(t, origin, partition.Cursor{Seq: seq - 1}, 1).Frame
	var err error
	if f.Before, err = origin.Log().Chain(seq - 1); err != nil {
		t.Fatal(err)
	}
	f.Seal = origin.Seal(seq, f.Chain)
	return f
}

// TestTakeBackPicture: a log takes an operation back without its picture, and lists it. It lists it no more once the picture has come, and does
// not list an operation that it already has.
func TestTakeBackPicture(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	dots := submit(t, origin, create("a"), create("b"), &log.ModelCreate{ID: "m", Version: "v"})
	a, m := dots[0].Dot, dots[2].Dot
	p, frames := openRestored(t, image, 2), framesAfter(t, origin, 0)
	head := origin.Log().Head()
	for i, tt := range []struct {
		missing map[log.Dot]string
		listed  []log.Dot
	}{
		{map[log.Dot]string{a: partition.LostPicture, m: partition.LostManifest}, []log.Dot{a, m}},
		{map[log.Dot]string{a: partition.LostPicture, m: partition.LostManifest}, []log.Dot{a, m}},
		{map[log.Dot]string{a: partition.LostPicture}, []log.Dot{a}},
		{nil, nil},
		{map[log.Dot]string{a: partition.LostPicture}, nil},
	} {
		takeBack(t, p, frames, tt.missing)
		lost, err := lostOf(p)
		if err != nil || lost[create("a").Blob] != slices.Contains(tt.listed, a) || lost[create("b").Blob] || p.Log().Head() != head {
			t.Errorf("offer %d: lost pictures %v, %v; the log ends at %d, want %d", i, lost, err, p.Log().Head(), head)
		}
		var listed []log.Dot
		for _, c := range conflictsOf(t, p) {
			listed = append(listed, c.Op.Dot)
		}
		if !slices.Equal(listed, tt.listed) {
			t.Errorf("offer %d: conflicts of %v, want %v", i, listed, tt.listed)
		}
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[a b]" {
			t.Errorf("offer %d: inputs %s", i, got)
		}
		_ = v.Close()
	}
}

// TestTakeBackRefused: a restored log refuses an operation that it had before, when its replica sends it again. Another replica gives the
// operation back. It is listed with its content, also if the log was trimmed since.
func TestTakeBackRefused(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	creation := log.Op{Dot: log.Dot{Writer: 9, Seq: 1}, At: log.HLC(clock().UnixMilli()) << 16, By: "token", Body: &log.ModelCreate{ID: "m", Version: "v"}}
	if _, _, err := origin.Accept(t.Context(), []log.Op{creation}, nil); err != nil {
		t.Fatal(err)
	}
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	frames, _ := framesOf(t, r)
	p := openRestored(t, image, 2)
	no := creation
	partition.Refuse(&no, "scope: the token was revoked")
	if _, _, err := p.Accept(t.Context(), []log.Op{no}, nil); err != nil {
		t.Fatal(err)
	}
	refused := singleFrame(t, p, p.Log().Head())
	if err := p.Log().Trim(p.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	for _, secondRestore := range []bool{false, true} {
		if secondRestore { // a replica that has pulled the refusal gives it to a log that was restored once more
			p = openRestored(t, image, 3)
			takeBack(t, p, []partition.Frame{refused}, nil)
		}
		takeBack(t, p, frames, nil)
		c := conflictsOf(t, p)
		if len(c) != 1 || !bytes.Equal(log.Encode(nil, &c[0].Op), log.Encode(nil, &creation)) || !strings.Contains(c[0].Verdict.Detail, "the token was revoked") {
			t.Errorf("again %v: conflicts %+v", secondRestore, c)
		}
	}
}

// fullQuota is a quota that has no space for any operation.
type fullQuota struct{}

func (fullQuota) Prepare([]log.Body) error         { return nil }
func (fullQuota) Cancel([]log.Op)                  {}
func (fullQuota) Settle([]log.Entry, fold.Outcome) {}

func (fullQuota) Reserve(ops []log.Op) (refused []string, err error) {
	for range ops {
		refused = append(refused, "no space")
	}
	return refused, nil
}

// TestTakeBackOverQuota: a restored log has no space for an operation that it had before, when its replica sends it again. Another replica
// gives the operation back. It is listed with its content.
func TestTakeBackOverQuota(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	ops := writerOps(edge, 1, create("a"))
	accept(t, origin, ops)
	p, err := partition.OpenOrigin(partition.Options{Store: image, App: app, Clock: clock, Epoch: log.Epoch{2}, Secret: [32]byte{1}, Quota: fullQuota{}})
	if err != nil {
		t.Fatal(err)
	}
	accept(t, p, ops)
	takeBack(t, p, framesAfter(t, origin, origin.Log().Head()-1), nil)
	c := conflictsOf(t, p)
	if len(c) != 1 || !bytes.Equal(log.Encode(nil, &c[0].Op), log.Encode(nil, &ops[0])) || !strings.Contains(c[0].Verdict.Detail, "no space") {
		t.Errorf("conflicts %+v", c)
	}
}

// TestTakeBackSentLater: a replica gives back an operation without the one before it, which its own replica sends later, with or without the
// other one. The log has both, once each, and lists nothing.
func TestTakeBackSentLater(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	ops := writerOps(edge, 1, create("a"), create("b"))
	accept(t, origin, ops)
	for n := 1; n <= 2; n++ {
		p := openRestored(t, image, 2)
		head := p.Log().Head()
		takeBack(t, p, framesAfter(t, origin, origin.Log().Head()-1), nil)
		accept(t, p, ops[:n])
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[b a]" || p.Log().Head() != head+2 || len(conflictsOf(t, p)) > 0 {
			t.Errorf("sent %d: inputs %s, %d entries, conflicts %+v", n, got, p.Log().Head()-head, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackDeleted: an input and its deletion come back to a restored log from several parties, in every order. The input is deleted. It is
// listed only if it comes back after a deletion of all inputs.
func TestTakeBackDeleted(t *testing.T) {
	for name, body := range map[string]func(log.Dot) log.Body{
		"one": func(d log.Dot) log.Body { return &log.InputDelete{Input: d} },
		"all": func(log.Dot) log.Body { return &log.InputDeleteAll{} },
	} {
		store := kvtest.OrLate(t, memkv.New())
		origin := sealing(t, store)
		image := imageOf(t, store)
		sent := writerOps(edge, 1, create("gone"))
		accept(t, origin, sent)
		before, deleted := openNamed(t, kvtest.OrLate(t, memkv.New()), 1), openNamed(t, memkv.New(), 2)
		pullSealed(t, before, origin)
		pullSealed(t, deleted, origin)
		submit(t, deleted, body(sent[0].Dot))
		sendAllPending(t, deleted, origin)
		after := openNamed(t, kvtest.OrLate(t, memkv.New()), 3)
		pullSealed(t, after, origin)

		back := func(r *partition.Replica) func(*partition.Origin) {
			return func(p *partition.Origin) { giveBack(t, r, p) }
		}
		sends := func(p *partition.Origin) { accept(t, p, sent) }
		pushes := func(p *partition.Origin) { sendAllPending(t, deleted, p) }
		for order, steps := range map[string][]func(*partition.Origin){
			"sent, given back":         {sends, back(after)},
			"given back, sent":         {back(after), sends},
			"sent, given back, pushed": {sends, back(before), pushes},
			"given back, pushed, sent": {back(before), pushes, sends},
			"sent, pushed, given back": {sends, pushes, back(before)},
			"pushed, sent, given back": {pushes, sends, back(before)},
			"pushed, given back, sent": {pushes, back(before), sends},
			"pushed, given back twice": {pushes, back(before), back(after)},
		} {
			p := openRestored(t, image, 2)
			for _, step := range steps {
				step(p)
			}
			v, want := p.View(), 0
			if name == "all" && strings.HasPrefix(order, "pushed, given back") {
				want = 1
			}
			c := conflictsOf(t, p)
			if got := ids(t, v.Reader); len(got) > 0 || len(c) != want || want > 0 && (c[0].Op.Dot != sent[0].Dot || c[0].Verdict.Code != fold.Gone) {
				t.Errorf("%s, %s: inputs %v live, conflicts %+v", name, order, got, c)
			}
			_ = v.Close()
		}
	}
}

// TestTakeBackEarlyTwice: the log of a first restore has a deletion of an input that came later. The log of a second restore has it from
// there, as it was, and deletes the input, too.
func TestTakeBackEarlyTwice(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	submit(t, sealing(t, store), create("old"))
	first := openRestored(t, store, 2)
	accept(t, first, writerOps(edge+1, 1, &log.InputDelete{Input: log.Dot{Writer: edge, Seq: 1}}))
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, first)
	second := openRestored(t, store, 3)
	giveBack(t, r, second)
	for name, p := range map[string]*partition.Origin{"first": first, "second": second} {
		accept(t, p, writerOps(edge, 1, create("deleted")))
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[old]" || len(conflictsOf(t, p)) > 0 {
			t.Errorf("after the %s restore the inputs are %v, conflicts %+v", name, got, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackLostThenDeleted: the entry that made an input is lost, but one that deletes it with all others comes back. Its replica sends
// the input later. It is deleted, although its clock is newer than that of the deletion.
func TestTakeBackLostThenDeleted(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	inputs := writerOps(edge, 1, create("a"), create("b"), create("unseen"))
	accept(t, origin, inputs[:2])
	lost := origin.Log().Head()
	all := writerOps(edge+1, 1, &log.InputDeleteAll{Upto: []log.Dot{inputs[1].Dot}})
	all[0].At = inputs[0].At - 1
	accept(t, origin, all)
	p := openRestored(t, image, 2)
	takeBack(t, p, framesAfter(t, origin, lost), nil)
	if v := accept(t, p, inputs); v[0].Code != fold.Gone || v[1].Code != fold.Gone || v[2].Code != fold.OK {
		t.Errorf("verdicts %+v, want gone, gone and ok", v)
	}
	v := p.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[unseen]" || len(conflictsOf(t, p)) > 0 {
		t.Errorf("inputs %s, conflicts %+v", got, conflictsOf(t, p))
	}
}

// TestTakeBackForged has an origin refuse frames that it did not seal, and frames for another opening. It takes nothing of them.
func TestTakeBackForged(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("a"))
	image := imageOf(t, store)
	submit(t, origin, create("b"))
	frames := framesAfter(t, origin, 0)
	mallory := log.Op{Dot: log.Dot{Writer: edge, Seq: 1}, Body: &log.Rules{Version: 1 << 20}}
	p := openRestored(t, image, 2)
	for name, x := range map[string]struct {
		want error
		edit func(b *partition.Returned, f *partition.Frame)
	}{
		"another opening":   {partition.ErrOpening, func(b *partition.Returned, _ *partition.Frame) { b.Opening = origin.Opening() }},
		"no opening":        {partition.ErrOpening, func(b *partition.Returned, _ *partition.Frame) { b.Opening = log.Epoch{} }},
		"no seal":           {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.Seal = nil }},
		"another seal":      {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.Seal = append([]byte{f.Seal[0] + 1}, f.Seal[1:]...) }},
		"another place":     {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.From, f.To = f.From+1, f.To+1 }},
		"another end":       {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.To++ }},
		"another chain":     {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.Chain[3]++ }},
		"another beginning": {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.Before[3]++ }},
		"another operation": {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) {
			f.Rows = log.EncodeRows([]log.Op{mallory})
		}},
		"one operation more": {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) {
			f.Rows = log.AppendRow(f.Rows, log.Encode(nil, &mallory))
		}},
		"rows that are short": {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) { f.Rows = f.Rows[:len(f.Rows)-1] }},
		"a seal of another log": {partition.ErrSeal, func(_ *partition.Returned, f *partition.Frame) {
			other, err := partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Epoch: opening(), Secret: [32]byte{2}})
			if err != nil {
				t.Fatal(err)
			}
			f.Seal = other.Seal(f.To, f.Chain)
		}},
	} {
		b := partition.Returned{Opening: p.Opening(), Frames: slices.Clone(frames)}
		last := len(b.Frames) - 1 // the frames before it are sealed
		x.edit(&b, &b.Frames[last])
		head := p.Log().Head()
		if err := p.TakeBack(t.Context(), &b, nil); !errors.Is(err, x.want) || p.Log().Head() != head || len(conflictsOf(t, p)) > 0 {
			t.Errorf("%s: %v, want %v; %d entries, conflicts %+v", name, err, x.want, p.Log().Head()-head, conflictsOf(t, p))
		}
	}
	b := partition.Returned{Opening: p.Opening(), Frames: frames}
	p.SetOpening(log.Epoch{9})
	if err := p.TakeBack(t.Context(), &b, nil); !errors.Is(err, partition.ErrOpening) {
		t.Errorf("frames for the opening of before: %v, want ErrOpening", err)
	}
	takeBack(t, p, frames, nil)
	if p.Log().Head() != origin.Log().Head() {
		t.Errorf("the log ends at %d, want %d", p.Log().Head(), origin.Log().Head())
	}
}

// lostOf are the pictures that are listed as lost.
func lostOf(p *partition.Origin) (map[blob.Hash]bool, error) {
	v := p.View()
	defer v.Close()
	return partition.LostPictures(v.Reader.KV(), app)
}

// TestTakeBackTwice: a log has an operation twice if a horizon dropped its name in between. A restored origin takes it back once.
func TestTakeBackTwice(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	image := imageOf(t, store)
	maker := openReplica(t, kvtest.OrLate(t, memkv.New()))
	submit(t, maker.Replica, create("a"))
	maker.push(t, origin, 9)
	submit(t, origin, &log.Horizon{At: now() + 100})
	maker.sent = 0
	maker.push(t, origin, 9)
	p := openNamed(t, kvtest.OrLate(t, memkv.New()), 7)
	pullSealed(t, p, origin)
	again := openRestored(t, image, 9)
	giveBack(t, p, again)
	count := map[log.Dot]int{}
	if err := again.Log().Read(1, func(e log.Entry) bool { count[e.Op.Dot]++; return true }); err != nil {
		t.Fatal(err)
	}
	for dot, n := range count {
		if n != 1 {
			t.Errorf("the log has %v %d times", dot, n)
		}
	}
	if len(count) < 3 {
		t.Errorf("the log has %d operations", len(count))
	}
}
