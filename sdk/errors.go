package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// Fail makes a Failure with a stable snake_case code and a message for people: what
// failed, why, and what to do next.
func Fail(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Ask makes the call end with questions for the caller. The call is repeated with the
// answers in Call.Answers; what was done before Ask is done again, so ask first.
func Ask(questions any) error {
	b, err := json.Marshal(questions)
	if err != nil {
		return Fail("internal", "The questions are not JSON: %v", err)
	}
	return &asked{questions: b}
}

type asked struct{ questions json.RawMessage }

func (a *asked) Error() string { return "the tool asks the caller" }

func failureToWire(f *Failure) *pluginpb.Failure {
	if f == nil {
		return nil
	}
	w := &pluginpb.Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, WhatWouldHelp: f.WhatWouldHelp}
	for _, field := range f.Fields {
		w.Fields = append(w.Fields, &pluginpb.FieldError{Pointer: field.Pointer, Message: field.Message})
	}
	return w
}

func failureFromWire(w *pluginpb.Failure) error {
	if w == nil {
		return nil
	}
	f := &Failure{Code: w.GetCode(), Message: w.GetMessage(), Retryable: w.GetRetryable(), WhatWouldHelp: w.GetWhatWouldHelp()}
	for _, field := range w.GetFields() {
		f.Fields = append(f.Fields, FieldError{Pointer: field.GetPointer(), Message: field.GetMessage()})
	}
	return f
}
