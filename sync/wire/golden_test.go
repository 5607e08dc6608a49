package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txt from what is encoded now")

const goldenPath = "testdata/golden.txt"

// count returns n bytes that count up, starting at from.
func count(n int, from byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = from + byte(i)
	}
	return b
}

var unknown = protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 7)

// goldenOps returns operations with each form of body.
func goldenOps() []log.Op {
	at := func(millis, tick uint64) log.HLC { return log.HLC(1_790_000_000_000+millis)<<16 | log.HLC(tick) }
	first := log.Dot{Writer: 2, Seq: 41}
	return []log.Op{
		{Dot: first, At: at(0, 0), By: "key-a", Body: &log.InputCreate{
			ID: hex.EncodeToString(count(16, 0)), URL: "https://example.com/a.jpg", AllowDuplicate: true,
			Blob: blob.Hash(count(32, 0x20)), ContentType: "image/jpeg", Hosted: [16]byte(count(16, 0x40)),
			Crop:   raster.Crop{Top: 0.25, Left: 0, Bottom: 0.75, Right: 1},
			Labels: []log.Label{{Concept: "cat", Value: log.True}, {Concept: "dog", Value: log.False}},
			Meta:   []byte(`{"a":1}`), Geo: &log.Point{Longitude: 13.404954, Latitude: 52.520008},
		}},
		{Dot: log.Dot{Writer: 2, Seq: 42}, At: at(0, 1), By: "key-a", Body: &log.InputCreate{ID: "mine", MergeIfEqual: true, Geo: &log.Point{Longitude: 1e-7}}},
		{Dot: log.Dot{Writer: 3, Seq: 7}, At: at(5, 0), By: "key-b", Body: &log.InputLabels{Input: first, Labels: []log.Label{{Concept: "dog", Value: log.Removed}}}},
		{Dot: log.Dot{Writer: 1, Seq: 900}, At: at(6, 3), Body: &log.InputFetched{Input: log.Dot{Writer: 2, Seq: 42}, Code: 30000, Blob: blob.Hash(count(32, 0x60)), ContentType: "image/png"}},
		{Dot: log.Dot{Writer: 1, Seq: 901}, At: at(6, 4), Body: &log.InputFetched{Input: log.Dot{Writer: 2, Seq: 40}, Code: 30002, Detail: "Download failed"}},
		{Dot: log.Dot{Writer: 3, Seq: 8}, At: at(1000, 0), By: "key-b", Body: &log.InputDelete{Input: first}},
		{Dot: log.Dot{Writer: 3, Seq: 9}, At: at(1001, 0), By: "key-b", Body: &log.ConceptName{ID: "cat", Name: "Cat"}, Extra: log.Extra{Op: protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300), Body: unknown}},
		{Dot: log.Dot{Writer: 3, Seq: 10}, At: at(1002, 0), By: "key-b", Body: &log.Unknown{Kind: 999, Data: []byte{1, 2, 3}}},
	}
}

func goldenMessages() []message {
	epoch, chain := log.Epoch(count(16, 1)), log.Chain(count(16, 0x81))
	hash := blob.Hash(count(32, 0xa0))
	chunks := []wire.Chunk{{Hash: hash, Size: 300}}
	entries := &wire.Entries{
		Epoch: epoch, From: 1200, To: 1208, Chain: chain, Rows: log.EncodeRows(goldenOps()), Seal: count(32, 0x60), Before: log.Chain(epoch), Extra: unknown,
	}
	earlier := protowire.AppendBytes(protowire.AppendTag(nil, 13, protowire.BytesType), hash[:]) // hash of a core module
	return []message{
		&wire.Session{
			Min: 2, Max: 3, Fold: 1, Schema: 1, Require: []string{"columns"}, Features: []string{"seam"}, Name: "Anna's laptop",
			Apps: []wire.Position{{
				App: "app", Epoch: epoch, Seq: 1200, Chain: chain, Register: 9, Calls: 55, Extra: unknown,
				Kept: []log.Mark{{Epoch: epoch, To: 1200}, {Epoch: log.Epoch(chain), To: 1100}},
			}},
			Vectors: wire.VectorsQ16, Extra: append(earlier, unknown...),
		},
		&wire.SessionReply{
			Protocol: 2, Fold: 1, Now: 1_790_000_000_000, Features: []string{"columns"}, Expires: 1_790_000_900_000,
			Grants: []wire.Grant{{
				App: "app", Do: wire.DoRebase, Detail: "why", Opening: epoch, Head: 1300, Stable: 1290, Horizon: 5 << 16, Over: 1_790_003_600_000, Drain: true,
				Lacks: true, Have: 1100, HaveChain: chain, Extra: unknown,
			}},
			Limits: wire.Limits{PushOps: 512, PushBytes: 1 << 20, OpsRate: 100, FrameRate: 1 << 20, BlobBytes: 1 << 30, BlobSize: 20_000_000, Snapshots: 6, Streams: 4, PollMillis: 25_000, AliveMillis: 15_000, Extra: unknown},
			Links:  []wire.Link{{Name: "keys", Path: "/v2/sync/keys"}}, Extra: unknown,
		},
		&wire.Derived{Base: hash, Records: []wire.DerivedRecord{{Blob: hash, Crop: raster.Crop{Bottom: 0.5, Right: 1}, Record: []byte("record")}}, Extra: unknown},
		&wire.Object{Hash: hash, Size: 10, Offset: 4, Data: []byte("object"), Extra: unknown},
		&wire.AppRecord{App: "app", Seq: 9, Data: []byte("register"), Extra: unknown},
		entries,
		&wire.Checkpoint{Opening: epoch, To: 1208, Head: 1300, Stable: 1290, Now: 1_790_000_000_000, Extra: unknown},
		&wire.Keepalive{Now: 1_790_000_000_000, ExpiresIn: 600, Extra: unknown},
		&wire.End{Why: wire.WhyShutdown, Detail: "restarting", WaitMillis: 2000, Extra: unknown},
		&wire.Push{
			App: "app", Opening: epoch, Writer: 1<<62 + 3, Secret: count(16, 0x70), Before: 5 << 16, Gap: true, Rows: log.EncodeRows(goldenOps()[:1]), Extra: unknown,
			For: []wire.Delegation{{First: 41, Last: 41, Subject: "client", Token: "jti", Issued: 1_790_000_000_000, Scopes: []string{"Inputs:Add"}}},
		},
		&wire.Pushed{
			Opening: epoch, Accepted: 12, Head: 1302, Stable: 1290, WaitMillis: 100, Extra: unknown,
			Verdicts: []wire.Verdict{{Seq: 12, Code: 3, Detail: "id", Dot: log.Dot{Writer: 1, Seq: 5}, ID: "mine"}},
		},
		&wire.Back{App: "app", Opening: epoch, Frames: [][]byte{entries.Encode(), {1}}, Extra: unknown},
		&wire.TakenBack{Opening: epoch, To: 1208, Extra: unknown},
		&wire.Manifest{App: "app", Epoch: epoch, Seq: 1200, Chain: chain, Fold: 1, Digest: hash, Stable: 1200, Horizon: 5 << 16, Chunks: chunks, Objects: chunks, Extra: unknown},
		&wire.Digest{Epoch: epoch, Seq: 1200, Digest: hash, Extra: unknown},
		&wire.HaveRequest{App: "app", Hashes: []blob.Hash{hash, {1}}, Extra: unknown},
		&wire.HaveReply{Hashes: []blob.Hash{hash}, Partial: []wire.PartialBlob{{Hash: blob.Hash{1}, Size: 4096}}, Extra: unknown},
		&wire.Refusal{Code: wire.RefusedFeatures, Detail: "features are not known here", Features: []string{"later"}, Min: 1, Max: 2, Limit: "push_ops", Value: 512, WaitMillis: 1000, Epoch: epoch, Accepted: 12, Blobs: []blob.Hash{hash}, Extra: unknown},
		&wire.DatesRequest{App: "app", Names: bytes.Repeat([]byte{7}, 160), Extra: unknown},
		&wire.Dates{Dates: []wire.Date{{Read: 1, Taken: exif.Time{Wall: -1, Offset: -540, HasOffset: true, Known: true}}, {}}, Extra: unknown},
	}
}

// goldenTokens returns a push that names the tokens of its operations.
func goldenTokens() *wire.Push {
	return &wire.Push{
		App: "app", Writer: 3, Secret: []byte("secret"), Rows: log.EncodeRows(goldenOps()[:1]), Extra: unknown,
		Tokens: []wire.Tokens{{First: 41, Last: 42, Client: "client", Generation: 300}, {First: 43, Last: 43, Client: "client", Generation: 301}},
	}
}

func nameOf(m message) string { return strings.TrimPrefix(fmt.Sprintf("%T", m), "*wire.") }

// TestGolden compares every message with the bytes that were recorded when the protocol was defined.
// A change of these bytes needs a new version of the protocol.
func TestGolden(t *testing.T) {
	messages := goldenMessages()
	stream := wire.AppendFrame(nil, wire.TypeCheckpoint, messages[6].Encode())
	stream = wire.AppendFrame(stream, wire.Optional+1, []byte("passed over"))
	stream = wire.AppendFrame(stream, wire.TypeEnd, messages[8].Encode())
	want := map[string][]byte{"Block": log.EncodeRows(goldenOps()), "Stream": stream, "PushTokens": goldenTokens().Encode()}
	order := []string{"Stream", "Block", "PushTokens"}
	for _, m := range messages {
		want[nameOf(m)] = m.Encode()
		order = append(order, nameOf(m))
	}
	if *update {
		writeGolden(t, order, want)
	}
	golden := readGolden(t)
	if len(golden) != len(want) {
		t.Errorf("%d samples in %s, want %d", len(golden), goldenPath, len(want))
	}
	for _, name := range order {
		if !bytes.Equal(want[name], golden[name]) {
			t.Errorf("%s is encoded %x, want %x", name, want[name], golden[name])
		}
	}
	ops, err := wire.DecodeOps(golden["Block"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenOps(), ops); diff != "" {
		t.Errorf("Block (-want +got):\n%s", diff)
	}
	if got, err := wire.DecodePush(golden["PushTokens"]); err != nil || !cmp.Equal(goldenTokens(), &got, cmpopts.EquateEmpty()) {
		t.Errorf("PushTokens is read as %+v, %v", got, err)
	}
	for i, m := range messages {
		got, err := codecs[i].decode(golden[nameOf(m)])
		if err != nil {
			t.Errorf("%s: %v", nameOf(m), err)
			continue
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", nameOf(m), diff)
		}
	}
}

// TestGoldenFields compares a message of each kind, with all fields set, with the bytes recorded when its last field was added.
func TestGoldenFields(t *testing.T) {
	var g testkit.Golden
	for _, c := range codecs {
		m := c.empty()
		logtest.Set(m)
		if o, ok := m.(*wire.Object); ok {
			o.Size = o.Offset + uint64(len(o.Data))
		}
		g.Add(c.name, m.Encode(), func(data []byte) ([]byte, error) {
			m, err := c.decode(data)
			return m.Encode(), err
		})
	}
	g.Check(t, "testdata/fields.txt", *update)
}

func writeGolden(t *testing.T, order []string, samples map[string][]byte) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# What golden_test.go encodes, in hexadecimal digits; `go test -update` writes it.\n")
	for _, name := range order {
		fmt.Fprintf(&b, "\n%s\n", name)
		for data := samples[name]; len(data) > 0; {
			n := min(48, len(data))
			fmt.Fprintf(&b, "    %x\n", data[:n])
			data = data[n:]
		}
	}
	if err := os.WriteFile(goldenPath, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readGolden(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(goldenPath)
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]byte{}
	name := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		digits, data := strings.CutPrefix(line, "    ")
		switch {
		case data:
			p, err := hex.DecodeString(digits)
			if err != nil {
				t.Fatalf("%s: %s: %v", goldenPath, name, err)
			}
			samples[name] = append(samples[name], p...)
		case line != "" && line[0] != '#':
			name = line
		}
	}
	return samples
}
