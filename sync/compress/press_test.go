package compress_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/sync/compress"
)

func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, sent bytes.Buffer
		w := compress.NewWriter(&sent)
		for range rapid.IntRange(0, 5).Draw(t, "writes") {
			p := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"), rapid.SampledFrom([]int{1, 50, 9000}).Draw(t, "times"))
			want.Write(p)
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v, want %d", n, err, len(p))
			}
		}
		got, err := readAll(sent.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%d bytes read, want the %d that were written", len(got), want.Len())
		}
	})
}

func readAll(sent []byte) ([]byte, error) {
	r, err := compress.NewReader(bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestBytes(t *testing.T) {
	body := bytes.Repeat([]byte("snapshot "), 1000)
	packed := compress.Bytes(body)
	if len(packed) > len(body)/20 {
		t.Errorf("%d bytes of %d", len(packed), len(body))
	}
	if got, err := readAll(packed); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(body))
	}
}

// TestLargeBytes reads bodies about as long as the window, and longer.
func TestLargeBytes(t *testing.T) {
	body := make([]byte, 3<<20)
	random := uint64(7)
	for i := range body {
		random = random*6364136223846793005 + 1442695040888963407
		body[i] = byte(random >> 60)
	}
	for _, n := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, len(body)} {
		if got, err := readAll(compress.Bytes(body[:n])); err != nil || !bytes.Equal(got, body[:n]) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, n)
		}
	}
}

// TestForeignBytes checks that reading fails for text that is not compressed.
func TestForeignBytes(t *testing.T) {
	if got, err := readAll([]byte("plain text, as some proxy sends it")); err == nil {
		t.Errorf("read %q from plain text", got)
	}
}

// step is a reader of a stream in pieces. It fails the test if the caller reads more than available pieces.
type step struct {
	t         *testing.T
	pieces    [][]byte
	available int
}

func (s *step) Read(p []byte) (int, error) {
	if s.available == 0 {
		s.t.Fatal("the reader wants more before it gives what has come")
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces, s.available = s.pieces[1:], s.available-1
	}
	return n, nil
}

// TestReaderReturnsMessagesAtOnce reads a live stream. The reader returns each message as soon as it has arrived, before the next one
// arrives.
func TestReaderReturnsMessagesAtOnce(t *testing.T) {
	messages := []string{"one", "two, which is longer", "three"}
	s := &step{t: t}
	for _, m := range messages {
		var b bytes.Buffer
		if _, err := compress.NewWriter(&b).Write([]byte(m)); err != nil {
			t.Fatal(err)
		}
		s.pieces = append(s.pieces, b.Bytes())
	}
	s.available = 1
	r, err := compress.NewReader(s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, m := range messages {
		got := make([]byte, len(m))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != m {
			t.Fatalf("message %d: %q, %v, want %q", i, got, err, m)
		}
		s.available++
	}
	s.available++
	if n, err := r.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("Read at the end = %d, %v", n, err)
	}
}

// TestCut cuts a stream at every byte.
func TestCut(t *testing.T) {
	var b bytes.Buffer
	w := compress.NewWriter(&b)
	var ends []int
	for _, m := range []string{"first message", "second message"} {
		if _, err := w.Write([]byte(m)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	for n := 1; n < b.Len(); n++ {
		got, err := readAll(b.Bytes()[:n])
		if n == ends[0] {
			if err != nil || string(got) != "first message" {
				t.Errorf("cut after the first: %q, %v", got, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("cut at %d of %d: %q and no error", n, b.Len(), got)
		}
	}
}

// failing is a writer that returns err once it is set.
type failing struct {
	bytes.Buffer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(p)
}

func TestWriterReturnsErrors(t *testing.T) {
	f := &failing{}
	w := compress.NewWriter(f)
	f.err = errors.New("reader is gone")
	if n, err := w.Write([]byte("a")); n != 0 || !errors.Is(err, f.err) {
		t.Errorf("Write = %d, %v, want %v", n, err, f.err)
	}
}
