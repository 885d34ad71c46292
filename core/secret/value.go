package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

const hidden = "[secret]"

// Value holds something that must not be printed. Every way of printing, logging or
// encoding it yields "[secret]"; only Reveal gives it out.
type Value struct{ plain []byte }

// Of wraps a secret that was obtained elsewhere. It keeps a copy.
func Of(plain string) Value { return Value{plain: []byte(plain)} }

// Reveal is the secret itself. Keep the result out of structs and errors.
func (v Value) Reveal() string { return string(v.plain) }

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return len(v.plain) == 0 }

// String is "[secret]".
func (Value) String() string { return hidden }

// GoString is "[secret]".
func (Value) GoString() string { return hidden }

// Format prints "[secret]" for every verb.
func (Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText is "[secret]".
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON is "[secret]" in quotes.
func (Value) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// LogValue is "[secret]".
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }
