package core

import "time"

// Clock tells the time. Services take one, so that tests decide when things happen.
type Clock interface {
	// Now returns the current time in UTC.
	Now() time.Time
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now returns the time of the machine in UTC, with monotonic reading.
func (SystemClock) Now() time.Time { return time.Now().UTC() }
