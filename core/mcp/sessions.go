package mcp

import (
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// sessions remembers who opened each session of this process. The SDK keeps the sessions
// themselves; it neither bounds their number nor tells who owns one.
type sessions struct {
	clock core.Clock
	limit func(owner string) int

	mu      sync.Mutex
	open    map[string]*session
	byOwner map[string]int
}

type session struct {
	owner string // id of the principal; empty when opened without credential
	seen  time.Time
}

func newSessions(clock core.Clock) *sessions {
	return &sessions{clock: clock, open: map[string]*session{}, byOwner: map[string]int{}, limit: func(owner string) int {
		if owner == "" {
			return MaxAnonymousSessions
		}
		return MaxSessionsPerKey
	}}
}

// room reports whether owner may open one more.
func (s *sessions) room(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOwner[owner] < s.limit(owner) {
		return true
	}
	for id, one := range s.open {
		if s.clock.Now().Sub(one.seen) > SessionTimeout {
			s.drop(id)
		}
	}
	return s.byOwner[owner] < s.limit(owner)
}

func (s *sessions) opened(id, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
	s.open[id] = &session{owner: owner, seen: s.clock.Now()}
	s.byOwner[owner]++
}

// owner says who opened the session; false when it is not known here.
func (s *sessions) owner(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[id]
	if !ok {
		return "", false
	}
	one.seen = s.clock.Now()
	return one.owner, true
}

func (s *sessions) closed(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

func (s *sessions) drop(id string) {
	one, ok := s.open[id]
	if !ok {
		return
	}
	delete(s.open, id)
	if s.byOwner[one.owner]--; s.byOwner[one.owner] == 0 {
		delete(s.byOwner, one.owner)
	}
}
