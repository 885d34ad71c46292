package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Outcome is how a call of a tool ended: exactly one of its fields is set.
type Outcome struct {
	Result  json.RawMessage
	Sealed  *effect.Sealed
	Failure *Failure
	Ask     json.RawMessage
}

// Invoke calls a tool of p the way Serve does, and is what sdktest calls: it runs the
// handler, catches its panics and turns what it returned into one outcome that fits
// the tool's document. It never returns an error of its own: what goes wrong is a Failure.
func Invoke(ctx context.Context, p Plugin, c Call, progress func(done, total float64, message string)) Outcome {
	for i := range p.Tools {
		if p.Tools[i].Document.Name == c.Tool {
			return newRunner(p.Tools[i]).invoke(ctx, c, progress)
		}
	}
	return Outcome{Failure: Fail("unknown_tool", "This plugin has no tool %q.", c.Tool)}
}

// runner is a tool with its compiled output schema.
type runner struct {
	tool   Tool
	output *schemas.Schema
	err    error
}

func newRunner(t Tool) *runner {
	r := &runner{tool: t}
	if t.Document.Effect != schemas.EffectWrite {
		r.output, r.err = schemas.Compile(t.Document.Name+".output", t.Document.OutputSchema.MustJSON())
	}
	return r
}

func (r *runner) invoke(ctx context.Context, c Call, progress func(done, total float64, message string)) (out Outcome) {
	if c.Log == nil {
		c.Log = hclog.NewNullLogger()
	}
	c.progress = progress
	defer func() {
		if v := recover(); v != nil {
			c.Log.Error("tool panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			out = Outcome{Failure: Fail("internal", "The tool %s failed unexpectedly; the plugin's log has the reason.", c.Tool)}
		}
	}()
	if r.err != nil {
		return Outcome{Failure: Fail("internal", "The output schema of %s does not compile: %v", c.Tool, r.err)}
	}
	if r.tool.Document.Effect == schemas.EffectWrite {
		c.Host = nil // a write tool is a pure function of its input
		sealed, err := r.tool.Compile(ctx, &c)
		if err == nil && sealed == nil {
			err = Fail("internal", "The write tool %s compiled nothing.", c.Tool)
		}
		if err != nil {
			return outcomeOf(ctx, c, err)
		}
		return Outcome{Sealed: sealed}
	}
	result, err := r.tool.Run(ctx, &c)
	if err != nil {
		return outcomeOf(ctx, c, err)
	}
	b, err := json.Marshal(result)
	if err != nil {
		return Outcome{Failure: Fail("invalid_output", "The result of %s is not JSON: %v", c.Tool, err)}
	}
	if err := r.output.Validate(b); err != nil {
		return Outcome{Failure: Fail("invalid_output", "The result of %s does not fit its output schema: %v", c.Tool, err)}
	}
	return Outcome{Result: b}
}

// outcomeOf sorts the error of a handler.
func outcomeOf(ctx context.Context, c Call, err error) Outcome {
	if a, ok := errors.AsType[*asked](err); ok {
		return Outcome{Ask: a.questions}
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return Outcome{Failure: f}
	}
	if ctx.Err() != nil {
		return Outcome{Failure: &Failure{Code: "deadline", Message: "The call of " + c.Tool + " was stopped: " + context.Cause(ctx).Error(), Retryable: true}}
	}
	c.Log.Error("tool failed", "error", err)
	return Outcome{Failure: Fail("internal", "The tool %s failed: %v", c.Tool, err)}
}

// bind decodes JSON strictly: unknown fields and trailing text are refused.
func bind(raw json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		f := Fail("invalid_input", "The input does not fit: %v", err)
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			f.Fields = []FieldError{{Pointer: pointerOf(te.Field), Message: "must be " + te.Type.String()}}
		}
		return f
	}
	if _, err := dec.Token(); err != io.EOF {
		return Fail("invalid_input", "Something stands after the JSON value of the input.")
	}
	return nil
}

// pointerOf turns the dotted path of encoding/json into a JSON pointer.
func pointerOf(dotted string) string {
	if dotted == "" {
		return ""
	}
	return "/" + string(bytes.ReplaceAll([]byte(dotted), []byte("."), []byte("/")))
}
