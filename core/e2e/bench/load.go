package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// figure is what one measurement gave.
type figure struct {
	perSecond float64
	p50, p99  time.Duration
}

// request is what a load repeats.
type request struct {
	url    string
	body   []byte
	header map[string]string
	// want must stand in every answer, so that an error page does not count as a call.
	want []byte
}

// load repeats a request with so many callers for so long and counts whole answers.
func load(ctx context.Context, r request, callers int, length time.Duration) (figure, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, MaxConnsPerHost: callers}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	if err := call(ctx, client, r); err != nil { // warm up, and fail early
		return figure{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var (
		mu    sync.Mutex
		took  []time.Duration
		first error
		wg    sync.WaitGroup
	)
	start := time.Now()
	for range callers {
		wg.Go(func() {
			var own []time.Duration
			for ctx.Err() == nil {
				t := time.Now()
				if err := call(ctx, client, r); err != nil {
					if ctx.Err() == nil {
						mu.Lock()
						first = errors.Join(first, err)
						mu.Unlock()
					}
					break
				}
				own = append(own, time.Since(t))
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	if first != nil || len(took) == 0 {
		return figure{}, fmt.Errorf("load on %s: %d calls, %w", r.url, len(took), first)
	}
	slices.Sort(took)
	return figure{float64(len(took)) / elapsed.Seconds(), took[len(took)/2], took[len(took)*99/100]}, nil
}

func call(ctx context.Context, client *http.Client, r request) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(b, r.want) {
		return fmt.Errorf("answer %d %.300s", resp.StatusCode, b)
	}
	return nil
}

// median of several figures, by rate.
func median(fs []figure) figure {
	slices.SortFunc(fs, func(a, b figure) int { return int(a.perSecond - b.perSecond) })
	return fs[len(fs)/2]
}
