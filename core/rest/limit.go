package rest

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sallyport-dev/sallyport/core"
)

// DefaultPerMinute is how many requests a principal may make in a minute on one host.
// It is there to stop loops that ran away, not to ration.
const DefaultPerMinute = 600

// maxCallers bounds the memory of the limiter. Beyond it the callers that were idle
// for a whole window are forgotten, which loses nothing: their bucket is full again.
const maxCallers = 20_000

// limiter is a token bucket per caller, in the memory of this host.
type limiter struct {
	clock     core.Clock
	perMinute int
	mu        sync.Mutex
	callers   map[string]*caller
}

type caller struct {
	bucket *rate.Limiter
	seen   time.Time
}

func newLimiter(clock core.Clock, perMinute int) *limiter {
	if perMinute <= 0 {
		perMinute = DefaultPerMinute
	}
	return &limiter{clock: clock, perMinute: perMinute, callers: map[string]*caller{}}
}

// take counts one request and says in the headers how many are left.
func (l *limiter) take(w http.ResponseWriter, who string) error {
	now := l.clock.Now()
	l.mu.Lock()
	c := l.callers[who]
	if c == nil {
		if len(l.callers) >= maxCallers {
			l.forget(now)
		}
		c = &caller{bucket: rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute)}
		l.callers[who] = c
	}
	c.seen = now
	allowed := c.bucket.AllowN(now, 1)
	left := c.bucket.TokensAt(now)
	l.mu.Unlock()

	perSecond := float64(l.perMinute) / 60
	full := int(math.Ceil((float64(l.perMinute) - left) / perSecond))
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"principal";q=%d;w=60`, l.perMinute))
	w.Header().Set("RateLimit", fmt.Sprintf(`"principal";r=%d;t=%d`, max(0, int(left)), max(0, full)))
	if allowed {
		return nil
	}
	e := core.Errf(core.KindRateLimited, "rate_limited", "More than %d requests in a minute. Wait as long as Retry-After says; to follow a run, use its events.", l.perMinute)
	e.RetryAfter = time.Duration((1 - left) / perSecond * float64(time.Second))
	return e
}

func (l *limiter) forget(now time.Time) {
	for who, c := range l.callers {
		if now.Sub(c.seen) > time.Minute {
			delete(l.callers, who)
		}
	}
	if len(l.callers) >= maxCallers { // a flood of new callers: start over rather than grow
		clear(l.callers)
	}
}
