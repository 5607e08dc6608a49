package wire_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/sync/wire"
)

func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []wire.Frame
		var stream []byte
		for range rapid.IntRange(0, 6).Draw(t, "frames") {
			f := wire.Frame{
				Type: wire.Type(rapid.IntRange(2, 255).Draw(t, "type")),
				Body: bytes.Repeat([]byte{byte(len(want))}, rapid.SampledFrom([]int{0, 1, 100, wire.MaxBody, wire.MaxBody + 1, 2*wire.MaxBody + 7}).Draw(t, "size")),
			}
			want = append(want, f)
			stream = wire.AppendFrame(stream, f.Type, f.Body)
		}
		var r wire.Reader
		var got []wire.Frame
		for len(stream) > 0 {
			n := min(rapid.SampledFrom([]int{1, 3, 5, 1000, 70000, 1 << 20}).Draw(t, "piece"), len(stream))
			_, _ = r.Write(stream[:n])
			stream = stream[n:]
			for {
				f, ok, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				got = append(got, f)
			}
		}
		if !r.Idle() {
			t.Fatal("Idle = false at the end of the stream")
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames, want %d", len(got), len(want))
		}
		for i := range want {
			if got[i].Type != want[i].Type || !bytes.Equal(got[i].Body, want[i].Body) {
				t.Fatalf("frame %d: %v of %d bytes, want %v of %d", i, got[i].Type, len(got[i].Body), want[i].Type, len(want[i].Body))
			}
		}
	})
}

// TestReaderCut cuts a stream at every byte. The reader returns every complete frame and nothing else.
func TestReaderCut(t *testing.T) {
	bodies := []string{"one", "", "three"}
	var stream []byte
	var ends []int
	for _, b := range bodies {
		stream = wire.AppendFrame(stream, wire.TypeEntries, []byte(b))
		ends = append(ends, len(stream))
	}
	for n := range len(stream) + 1 {
		var r wire.Reader
		_, _ = r.Write(stream[:n])
		frames, idle := 0, n == 0
		for _, end := range ends {
			if end <= n {
				frames++
			}
			idle = idle || end == n
		}
		for i := range frames {
			f, ok, err := r.Next()
			if err != nil || !ok || string(f.Body) != bodies[i] {
				t.Fatalf("cut at %d: frame %d is %q, %v, %v", n, i, f.Body, ok, err)
			}
		}
		if _, ok, err := r.Next(); ok || err != nil {
			t.Errorf("cut at %d: Next = %v, %v after %d frames, want more", n, ok, err, frames)
		}
		if r.Idle() != idle {
			t.Errorf("cut at %d: Idle = %v, want %v", n, r.Idle(), idle)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	tests := []struct {
		name   string
		stream []byte
		want   error
	}{
		{"no type", []byte{0, 0, 0, 0, 0}, wire.ErrFormat},
		{"empty part", []byte{0, 0, 0, 0, 1}, wire.ErrFormat},
		{"long body", []byte{1, 0, 4, 0, 5}, wire.ErrTooLarge},
		{"longest length", []byte{255, 255, 255, 255, 5}, wire.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r wire.Reader
			_, _ = r.Write(tt.stream)
			for range 2 {
				if _, ok, err := r.Next(); ok || !errors.Is(err, tt.want) {
					t.Errorf("Next = %v, %v, want %v", ok, err, tt.want)
				}
			}
		})
	}
}

// TestReaderBoundsParts: the reader rejects a message of parts that is longer than MaxMessage.
func TestReaderBoundsParts(t *testing.T) {
	part := wire.AppendFrame(nil, wire.TypeEntries, make([]byte, wire.MaxBody))
	part[4] = byte(wire.TypePart)
	var r wire.Reader
	for range wire.MaxMessage/wire.MaxBody + 1 {
		_, _ = r.Write(part)
		if _, ok, err := r.Next(); err != nil {
			if !errors.Is(err, wire.ErrTooLarge) {
				t.Errorf("Next: %v, want ErrTooLarge", err)
			}
			return
		} else if ok {
			t.Fatal("a part was given as a message")
		}
	}
	t.Error("a message of more than MaxMessage bytes was taken")
}

func TestTypes(t *testing.T) {
	for typ, want := range map[wire.Type]string{wire.TypePart: "part", wire.TypeEnd: "end", 0: "type 0", 200: "type 200"} {
		if got := typ.String(); got != want {
			t.Errorf("String of %d = %q, want %q", uint8(typ), got, want)
		}
	}
}

func TestReasons(t *testing.T) {
	for why, want := range map[wire.EndReason]string{wire.WhyDone: "done", wire.WhyError: "error", 0: "reason 0", 99: "reason 99"} {
		if got := why.String(); got != want {
			t.Errorf("String of %d = %q, want %q", uint32(why), got, want)
		}
	}
}

func TestMillis(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 7e6, time.FixedZone("", 3600))
	m := wire.MillisOf(at)
	if !m.Time().Equal(at) || m.Time().Location() != time.UTC {
		t.Errorf("Time = %v, want %v", m.Time(), at)
	}
	if m := wire.MillisOf(time.Time{}); m != 0 {
		t.Errorf("MillisOf before 1970 = %d, want 0", m)
	}
}

// FuzzReader reads a stream in one piece and in two. The frames are the same, and the memory is proportional to the input.
func FuzzReader(f *testing.F) {
	f.Add(wire.AppendFrame(wire.AppendFrame(nil, wire.TypeEntries, []byte("one")), wire.TypeEnd, nil), 3)
	f.Add(wire.AppendFrame([]byte{2, 0, 0, 0, 1, 'a', 'b'}, wire.TypeObject, []byte("c")), 8)
	f.Add([]byte{255, 255, 255, 255, 4}, 1)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		if cut < 0 || cut > len(stream) {
			return
		}
		want, wantErr := readAll(stream)
		parts, partsErr := readAll(stream[:cut], stream[cut:])
		if len(want) != len(parts) || (wantErr == nil) != (partsErr == nil) {
			t.Fatalf("%d frames, %v whole; %d, %v in two", len(want), wantErr, len(parts), partsErr)
		}
		total := 0
		for i := range want {
			if want[i].Type != parts[i].Type || !bytes.Equal(want[i].Body, parts[i].Body) {
				t.Fatalf("frame %d differs", i)
			}
			total += len(want[i].Body) + wire.HeaderSize
		}
		if total > len(stream) {
			t.Fatalf("frames of %d bytes in a stream of %d", total, len(stream))
		}
	})
}

func readAll(pieces ...[]byte) (frames []wire.Frame, err error) {
	var r wire.Reader
	for _, p := range pieces {
		_, _ = r.Write(p)
		for {
			f, ok, err := r.Next()
			if err != nil {
				return frames, err
			}
			if !ok {
				break
			}
			frames = append(frames, f)
		}
	}
	return frames, nil
}
