package abi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
	"github.com/sightline-dev/sightline/wasm/abi"
)

func TestAnswer(t *testing.T) {
	for _, tt := range [][2]uint32{{0, 0}, {1, 2}, {1<<32 - 1, 1<<32 - 2}} {
		if a, n := abi.AnswerAt(abi.Answer(tt[0], tt[1])); a != tt[0] || n != tt[1] {
			t.Errorf("AnswerAt(Answer(%v)) = %d, %d", tt, a, n)
		}
	}
}

// TestErrorsCross checks that a decoded error has the same meaning and text.
func TestErrorsCross(t *testing.T) {
	own := errors.New("disk on fire")
	tests := []struct {
		err  error
		code abi.Code
		is   error
	}{
		{api.ErrFetch, abi.Fetch, api.ErrFetch},
		{fmt.Errorf("%w: 404", api.ErrFetch), abi.Fetch, api.ErrFetch},
		{api.DownloadError("it is empty"), abi.Answered, api.ErrAnswered},
		{fmt.Errorf("1 call: %w", api.ErrBusy), abi.Busy, api.ErrBusy},
		{fmt.Errorf("%w: fewer", api.ErrTimeout), abi.Timeout, api.ErrTimeout},
		{context.DeadlineExceeded, abi.Timeout, api.ErrTimeout},
		{context.Canceled, abi.Timeout, api.ErrTimeout},
		{fmt.Errorf("%w: HEIC", raster.ErrUnsupported), abi.Unsupported, raster.ErrUnsupported},
		{raster.ErrTooLarge, abi.TooLarge, raster.ErrTooLarge},
		{raster.ErrCorrupt, abi.Corrupt, raster.ErrCorrupt},
		{raster.ErrExpired, abi.Expired, raster.ErrExpired},
		{jpg.ErrTooManyScans, abi.TooLarge, raster.ErrTooLarge},
		{jpg.ErrCorrupt, abi.Corrupt, raster.ErrCorrupt},
		{fmt.Errorf("network: %w", predict.ErrNetwork), abi.Network, predict.ErrNetwork},
		{blob.ErrNotFound, abi.NoBlob, blob.ErrNotFound},
		{kv.ErrFull, abi.Full, kv.ErrFull},
		{fmt.Errorf("%w: store picture: %w", api.ErrInternal, blob.ErrNotFound), abi.Internal, api.ErrInternal},
		{fmt.Errorf("%w: store picture: %w", api.ErrInternal, kv.ErrFull), abi.Full, kv.ErrFull},
		{own, abi.Internal, api.ErrInternal},
	}
	for _, tt := range tests {
		code, text := abi.CodeOf(tt.err)
		back := code.Err(text)
		if code != tt.code || !errors.Is(back, tt.is) || back.Error() != tt.err.Error() {
			t.Errorf("%v crosses as %d %q and is %v", tt.err, code, text, back)
		}
		again, words := abi.CodeOf(back)
		if again != code || words != text {
			t.Errorf("%v crosses a second time as %d %q", tt.err, again, words)
		}
	}
	if code, text := abi.CodeOf(nil); code != abi.NoError || text != "" || code.Err("x") != nil {
		t.Errorf("CodeOf(nil) = %d, %q", code, text)
	}
	if err := abi.Code(1e6).Err("new"); !errors.Is(err, abi.ErrRemote) || err.Error() != "new" {
		t.Errorf("an unknown code is %v", err)
	}
}

func TestErrnos(t *testing.T) {
	for _, err := range []error{
		kv.ErrNotFound, kv.ErrClosed, kv.ErrFull, kv.ErrCorrupt, kv.ErrFailed, auth.ErrToken, auth.ErrExpired,
		blob.ErrNotFound,
	} {
		no := abi.ErrnoOf(fmt.Errorf("wrapped: %w", err))
		if no <= abi.OK || no == abi.Other || !errors.Is(no.Err(), err) {
			t.Errorf("%v is number %d, which is %v", err, no, no.Err())
		}
	}
	if abi.ErrnoOf(nil) != abi.OK || abi.OK.Err() != nil {
		t.Error("nil is an error")
	}
	if no := abi.ErrnoOf(errors.New("x")); no != abi.Other || !errors.Is(no.Err(), abi.ErrHost) || !errors.Is(abi.Errno(77).Err(), abi.ErrHost) {
		t.Errorf("another error is number %d, %v", no, no.Err())
	}
}

// TestHead checks that a head followed by the body is an encoded request.
func TestHead(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 70_000} {
		r := api.Request{Method: "POST", Path: "/v2", Body: bytes.Repeat([]byte{7}, n)}
		head := abi.AppendRequestHead(nil, &r)
		if got := append(head, r.Body...); !bytes.Equal(got, abi.AppendRequest(nil, &r)) {
			t.Errorf("a request of %d bytes in parts: %x", n, got)
		}
	}
}

// TestBorrows checks that parsing does not copy large parts.
func TestBorrows(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	data := abi.AppendRequest(nil, &api.Request{Method: "POST", Body: body})
	r, err := abi.ParseRequest(data)
	if err != nil || &r.Body[0] != &data[len(data)-len(body)] {
		t.Errorf("the body was copied: %v", err)
	}
	data = abi.AppendJob(nil, &api.Job{Data: body})
	if allocated := testing.AllocsPerRun(10, func() {
		if _, err := abi.ParseJob(data); err != nil {
			t.Error(err)
		}
	}); allocated > 2 {
		t.Errorf("reading a job allocates %v times", allocated)
	}
}

func TestRefused(t *testing.T) {
	good := settings()
	tests := []struct {
		name string
		err  error
	}{
		{"empty", second(abi.ParseSettings(nil))},
		{"newer", second(abi.ParseRequest([]byte{2}))},
		{"no role", second(abi.ParseSettings((&abi.Settings{Store: abi.StoreHost}).Marshal()))},
		{"no store", second(abi.ParseSettings((&abi.Settings{Role: abi.Both}).Marshal()))},
		{"cut", second(abi.ParseSettings(good.Marshal()[:20]))},
		{"crop", second(abi.ParseJob([]byte{1, 4<<3 | 2, 1, 0}))},
		{"want", second(abi.ParseJob([]byte{1, 5 << 3, 0x80, 2}))},
		{"values", second(abi.ParseAnalysis([]byte{1, 3<<3 | 2, 1, 0}))},
		{"embedding", second(abi.ParseAnalysis([]byte{1, 1 << 3, 1, 2<<3 | 2, 1, 0}))},
		{"parts", second(abi.ParseAnalysis([]byte{1, 1 << 3, 1}))},
		{"analysis of a result", second(abi.ParseResult([]byte{1, 3<<3 | 2, 1, 9}))},
		{"token", third(abi.ParseToken(make([]byte, 7)))},
		{"picture", second(abi.ParsePicture(make([]byte, 39)))},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, field.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", tt.name, tt.err)
		}
	}
	for _, data := range [][]byte{make([]byte, 7), {1, 0, 0, 0, 0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}} {
		if _, _, _, err := abi.NextRecord(data); !errors.Is(err, field.ErrFormat) {
			t.Errorf("NextRecord(%x) = %v", data, err)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestHostServiceValues(t *testing.T) {
	claims := auth.Claims{App: "a", Client: "c", Generation: 3, Page: true, Session: "s"}
	if got, err := abi.ParseClaims(abi.MarshalClaims(claims)); got != claims || err != nil {
		t.Errorf("claims %+v, %v", got, err)
	}
	if token, life, err := abi.ParseToken(abi.AppendToken(nil, "token", time.Hour)); token != "token" || life != time.Hour || err != nil {
		t.Errorf("token %q, %v, %v", token, life, err)
	}
	for _, p := range []blob.Picture{{Hash: blob.Sum(nil)}, {Hash: blob.Sum(nil), ContentType: "image/png", Expires: time.UnixMilli(1234567).UTC()}} {
		if got, err := abi.ParsePicture(abi.AppendPicture(nil, &p)); got != p || err != nil {
			t.Errorf("picture %+v, %v, want %+v", got, err, p)
		}
	}
	var chunk []byte
	for i := range 3 {
		chunk = abi.AppendRecord(chunk, []byte{byte(i)}, bytes.Repeat([]byte{9}, i))
	}
	for i := range 3 {
		key, value, rest, err := abi.NextRecord(chunk)
		if err != nil || !bytes.Equal(key, []byte{byte(i)}) || len(value) != i {
			t.Fatalf("record %d: %x, %x, %v", i, key, value, err)
		}
		chunk = rest
	}
	if len(chunk) != 0 {
		t.Errorf("%d bytes left", len(chunk))
	}
}

func TestReplies(t *testing.T) {
	if guestErr, err := abi.ParseDone(abi.AppendDone(nil, nil)); guestErr != nil || err != nil {
		t.Errorf("Done = %v, %v", guestErr, err)
	}
	if guestErr, err := abi.ParseDone(abi.AppendDone(nil, fmt.Errorf("%w: x", api.ErrOptions))); !errors.Is(guestErr, api.ErrOptions) || err != nil {
		t.Errorf("Done = %v, %v", guestErr, err)
	}
	if value, guestErr, err := abi.ParseReply(abi.AppendReply(nil, []byte("v"), nil)); string(value) != "v" || guestErr != nil || err != nil {
		t.Errorf("Reply = %q, %v, %v", value, guestErr, err)
	}
	if value, guestErr, err := abi.ParseReply(abi.AppendReply(nil, []byte("v"), blob.ErrNotFound)); value != nil || !errors.Is(guestErr, blob.ErrNotFound) || err != nil {
		t.Errorf("Reply = %q, %v, %v", value, guestErr, err)
	}
	hosted := abi.HostedReply{ContentType: "image/png", Data: []byte("p"), Expires: time.UnixMilli(99).UTC(), Hash: blob.Sum([]byte("p"))}
	if got, err := abi.ParseHosted(hosted.Marshal()); !cmp.Equal(got, hosted) || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, hosted)
	}
	salvage := abi.SalvageReply{Records: 1, Lost: 2, LostPictures: 1 << 40}
	if got, err := abi.ParseSalvage(salvage.Marshal()); got != salvage || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, salvage)
	}
	memory := abi.MemoryReply{Heap: 1, System: 1 << 40}
	if got, err := abi.ParseMemory(memory.Marshal()); got != memory || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, memory)
	}
}
