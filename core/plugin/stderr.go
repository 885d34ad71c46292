package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
)

// Limits of what a plugin may say on standard error.
const (
	maxLine        = 16 << 10
	linesPerSecond = 100
)

// lineLog turns what a plugin writes into log records. It is bounded in the length of a
// line and in lines per second, and lets no control character through: a plugin can
// neither fill the disk nor forge records.
type lineLog struct {
	log   *slog.Logger
	clock core.Clock

	mu      sync.Mutex
	rest    []byte // of an unfinished line
	cut     bool   // the line is longer than maxLine; the rest of it is dropped
	second  time.Time
	lines   int
	dropped int
}

func newLineLog(log *slog.Logger, clock core.Clock) *lineLog { return &lineLog{log: log, clock: clock} }

// Write implements io.Writer; it never fails and never blocks on the log for long.
func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		line, after, whole := bytes.Cut(b, []byte{'\n'})
		b = after
		if !l.cut {
			room := maxLine - len(l.rest)
			l.rest = append(l.rest, line[:min(room, len(line))]...)
			l.cut = len(line) > room
		}
		if !whole {
			break
		}
		l.emit(string(l.rest), l.cut)
		l.rest, l.cut = l.rest[:0], false
	}
	return n, nil
}

func (l *lineLog) emit(line string, cut bool) {
	now := l.clock.Now()
	if now.Sub(l.second) >= time.Second || now.Before(l.second) {
		if l.dropped > 0 {
			l.log.Warn("plugin writes too much", "lines_dropped", l.dropped)
		}
		l.second, l.lines, l.dropped = now, 0, 0
	}
	if l.lines >= linesPerSecond {
		l.dropped++
		return
	}
	l.lines++
	level, message, attrs := parseLine(line)
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	l.log.LogAttrs(context.Background(), level, message, attrs...)
}

// parseLine reads a record of hclog, or takes the line as it is. Values keep their text
// only: what a plugin writes is never markup or structure of ours.
func parseLine(line string) (slog.Level, string, []slog.Attr) {
	var record map[string]any
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &record) != nil {
		return slog.LevelInfo, escape(line), nil
	}
	level := slog.LevelDebug
	switch record["@level"] {
	case "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	message, ok := record["@message"].(string)
	if !ok {
		return slog.LevelInfo, escape(line), nil
	}
	var attrs []slog.Attr
	for _, key := range []string{"call", "tool", "error", "panic", "stack"} {
		if v, ok := record[key]; ok {
			attrs = append(attrs, slog.String(key, escape(fmt.Sprint(v))))
		}
	}
	return level, escape(message), attrs
}

// escape makes control, format and invalid characters visible.
func escape(s string) string {
	clean := func(r rune) bool {
		return r == utf8.RuneError || unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029'
	}
	if !strings.ContainsFunc(s, clean) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if clean(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
