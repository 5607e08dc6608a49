package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/blob"
)

// Times of a request. minio-go waits up to 0.2, 0.4 and 0.8 s before the retries, at random.
const (
	retries    = 3
	dialTime   = 2 * time.Second  // for each address of the server
	answerTime = 5 * time.Second  // from the end of a request to the header of its answer
	callTime   = 10 * time.Second // for a call with its retries, apart from its bytes
	deleteTime = 5 * time.Second  // for a deletion with its retries: a late one must not meet a new primary
	slowest    = 1 << 20          // bytes a second that a transfer must reach
	listPage   = 1000             // maximum number of names in one answer of a server
)

// transferTime returns the time that a transfer of n bytes may take.
func transferTime(n int64) time.Duration {
	return callTime + time.Duration(n)*time.Second/slowest
}

// Errors of requests that have an answer.
var (
	errExists = errors.New("the object exists")          // a conditional request met an object
	errCut    = errors.New("the answer ended too early") // another try may succeed
)

// dial connects to an address of the server.
func (s *Store) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	addresses := []netip.Addr{{}}
	if addresses[0], err = netip.ParseAddr(host); err != nil {
		if addresses, err = s.o.Resolve(ctx, host); err != nil {
			return nil, err
		}
	}
	var failures error
	for _, a := range addresses {
		one, cancel := context.WithTimeout(ctx, dialTime)
		c, err := s.o.Dial(one, network, netip.AddrPortFrom(a, uint16(port)).String(), nil)
		cancel()
		if err == nil {
			return c, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

// metrics are the Prometheus metrics of a store, by operation.
type metrics struct {
	errors  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// Operations in the metrics.
const (
	opGet    = "get"
	opPut    = "put"
	opStat   = "stat"
	opDelete = "delete"
	opList   = "list"
)

func newMetrics() metrics {
	m := metrics{
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "sightline", Subsystem: "s3", Name: "errors_total", Help: "Requests to S3 that failed after all retries.",
		}, []string{"operation"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "sightline", Subsystem: "s3", Name: "seconds", Help: "Time of requests to S3 with their retries.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
	}
	for _, op := range []string{opGet, opPut, opStat, opDelete, opList} {
		m.errors.WithLabelValues(op)
		m.seconds.WithLabelValues(op)
	}
	return m
}

// do calls request with a context that ends after limit. If request fails, the error is that of ctx, blob.ErrNotFound, errExists,
// or a blob.ErrUnavailable.
func (s *Store) do(ctx context.Context, op string, limit time.Duration, request func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began := s.o.Now()
	bounded, cancel := context.WithTimeout(ctx, limit)
	err := request(bounded)
	cancel()
	s.metrics.seconds.WithLabelValues(op).Observe(s.o.Now().Sub(began).Seconds())
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("s3: %s: %w", op, ended)
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return blob.ErrNotFound
	case minio.PreconditionFailed:
		return errExists
	}
	s.metrics.errors.WithLabelValues(op).Inc()
	return &requestError{op, err}
}

// requestError is a blob.ErrUnavailable with its cause. It hides the type of its cause: a request that takes too long is not the end of the
// caller's context.
type requestError struct {
	op    string // "": the cause is a sentence
	cause error
}

func (e *requestError) Error() string {
	if e.op == "" {
		return e.cause.Error()
	}
	return fmt.Sprintf("s3: %s: %v", e.op, e.cause)
}

// Is reports whether e is a blob.ErrUnavailable, or has the cause errCut.
func (e *requestError) Is(target error) bool {
	return target == blob.ErrUnavailable || target == errCut && errors.Is(e.cause, errCut)
}

// read returns the bytes of an object. If there are more than limit, it returns blob.ErrCorrupt.
func (s *Store) read(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = s.do(ctx, opGet, transferTime(limit), func(ctx context.Context) (err error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := cancelAfter(ctx, cancel, callTime)
		r, info, _, err := s.client.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
		stop()
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		defer cancelAfter(ctx, cancel, transferTime(info.Size))()
		b := bytes.NewBuffer(make([]byte, 0, min(max(info.Size, 0), limit)+bytes.MinRead))
		if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
			return fmt.Errorf("%w: %w", errCut, err)
		}
		data = b.Bytes()
		return nil
	})
	if err == nil && int64(len(data)) > limit {
		err = blob.ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// cancelAfter cancels ctx after limit, unless the caller calls stop before. Unlike a context with a timeout, the limit of an answer's header
// does not end its body.
func cancelAfter(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration) (stop func()) {
	limited, done := context.WithTimeout(ctx, limit)
	off := context.AfterFunc(limited, func() { cancel(limited.Err()) })
	return func() {
		off()
		done()
	}
}

// write stores an object. The signature covers the SHA-256 of the bytes, and Content-MD5 protects them on their way: all servers know both. In
// minio-go's other form, by HTTP, each chunk has a signature. versitygw 1.8.0 leaves a part of an empty body unread then, and takes it for the
// next request. It refuses checksums behind the body.
func (s *Store) write(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) error {
	o.DisableContentSha256, o.ContentType = true, "application/octet-stream" // no signature of chunks
	sum := md5.Sum(data)
	encoded := base64.StdEncoding.EncodeToString(sum[:])
	err := s.do(ctx, opPut, transferTime(int64(len(data))), func(ctx context.Context) error {
		_, err := s.client.PutObject(ctx, s.bucket, name, bytes.NewReader(data), int64(len(data)), encoded, blob.Sum(data).String(), o)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// stat returns the number of bytes of an object.
func (s *Store) stat(ctx context.Context, name string) (n int64, err error) {
	err = s.do(ctx, opStat, callTime, func(ctx context.Context) error {
		info, err := s.client.StatObject(ctx, s.bucket, name, minio.StatObjectOptions{})
		n = info.Size
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// remove deletes an object. If it does not exist, remove returns nil.
func (s *Store) remove(ctx context.Context, name string) error {
	err := s.do(ctx, opDelete, deleteTime, func(ctx context.Context) error {
		return s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{})
	})
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// list calls yield with the objects that begin with prefix, starting behind the name after, in ascending order. yield may take any time.
func (s *Store) list(ctx context.Context, prefix, after string, yield func(minio.ObjectInfo) error) error {
	for {
		var page []minio.ObjectInfo
		err := s.do(ctx, opList, callTime, func(ctx context.Context) error {
			for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{
				Prefix: prefix, StartAfter: after, Recursive: true, MaxKeys: listPage,
			}) {
				if o.Err != nil {
					return o.Err
				}
				if page = append(page, o); len(page) == listPage {
					break
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		for _, o := range page {
			if err := yield(o); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		after = page[len(page)-1].Key
	}
}
