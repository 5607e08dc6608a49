package httpd

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/auth"
)

// HostedRates limit what one network may request below /hosted/. A rate of 0 is unlimited.
type HostedRates struct {
	Requests float64 // requests a second
	Bytes    int64   // bytes of answers a second
}

const (
	hostedBurst    = 20     // seconds whose requests and bytes a network may use at once
	hostedNetworks = 10_000 // networks that the limiters remember
)

// hostedLimiters enforce HostedRates.
type hostedLimiters struct {
	requests  *auth.Limiter
	kilobytes *auth.Limiter // of answers
}

func newHostedLimiters(r HostedRates) hostedLimiters {
	limit := func(perSecond float64) *auth.Limiter {
		return auth.NewLimiter(auth.Rate{PerSecond: perSecond, Burst: int(hostedBurst * perSecond)}, hostedNetworks)
	}
	return hostedLimiters{limit(r.Requests), limit(float64(r.Bytes) / 1024)}
}

// take counts a request of a network. It returns a refusal if the network has exceeded its rate.
func (l *hostedLimiters) take(network string, now time.Time) error {
	return tooMany(l.requests.Take(auth.HashKey(network), now))
}

// takeBytes counts n bytes of an answer likewise. One answer may exceed the rate.
func (l *hostedLimiters) takeBytes(network string, n int64, now time.Time) error {
	return tooMany(l.kilobytes.TakeN(auth.HashKey(network), (n+1023)/1024, now))
}

// tooMany returns the refusal for a rate that a network has exceeded, or nil.
func tooMany(err error) error {
	var rate *auth.RateError
	if !errors.As(err, &rate) {
		return nil
	}
	over := &auth.RateError{Wait: rate.Wait} // without the rate, whose unit may be kilobytes
	return &refusal{fasthttp.StatusTooManyRequests, over, "hosted", over.Error()}
}
