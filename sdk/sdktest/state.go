package sdktest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

// state is what the host keeps between calls.
type state struct {
	mu          sync.Mutex
	calls       int
	actions     int
	evidence    []sdk.Evidence
	assets      []Asset
	proposals   []Proposal
	updates     []sdk.RunUpdate
	memory      map[string]json.RawMessage
	datasets    map[string][]json.RawMessage
	connections []sdk.Connection
	pages       map[string]sdk.FetchReply
	fetches     map[string]func(sdk.FetchRequest) (sdk.FetchReply, error)
	tools       map[string]func(any) any
	model       func(sdk.CompleteRequest) (string, error)
}

func newState() *state {
	return &state{
		memory: map[string]json.RawMessage{}, datasets: map[string][]json.RawMessage{}, pages: map[string]sdk.FetchReply{},
		fetches: map[string]func(sdk.FetchRequest) (sdk.FetchReply, error){}, tools: map[string]func(any) any{},
	}
}

// mark is a place in the three lists.
type mark struct{ evidence, assets, proposals int }

func (s *state) mark() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mark{len(s.evidence), len(s.assets), len(s.proposals)}
}

func (s *state) since(m mark) ([]sdk.Evidence, []Asset, []Proposal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sdk.Evidence(nil), s.evidence[m.evidence:]...), append([]Asset(nil), s.assets[m.assets:]...), append([]Proposal(nil), s.proposals[m.proposals:]...)
}

func (s *state) nextCall() int { s.mu.Lock(); defer s.mu.Unlock(); s.calls++; return s.calls }

func (s *state) nextAction() int { s.mu.Lock(); defer s.mu.Unlock(); s.actions++; return s.actions }

// connection picks the connection of a provider that input names, or the only one.
func (s *state) connection(provider string, input json.RawMessage) *sdk.Connection {
	var named struct {
		Connection string `json:"connection"`
	}
	if err := json.Unmarshal(input, &named); err != nil {
		named.Connection = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connections {
		if c.Provider == provider && c.Name == named.Connection {
			return &c
		}
	}
	return nil
}

// saveEvidence stores items, each once, and returns them with ids.
func (s *state) saveEvidence(runID string, items []sdk.Evidence) []sdk.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]sdk.Evidence, 0, len(items))
	for _, e := range items {
		e.RunID = runID
		value, err := json.Marshal(e.Value)
		if err != nil {
			value = fmt.Append(nil, e.Value)
		}
		content := hashOf(e.Fact, string(value), e.Unit, e.Period, e.URL, e.Quote)
		e.ID = "ev_" + hashOf(runID, e.Kind, e.Source, e.Locator, content)[:20]
		e.Digest = hashOf(e.Kind, e.Source, e.Locator, content)
		e.FetchID = ""
		out = append(out, e)
		if !s.knows(e.ID) {
			s.evidence = append(s.evidence, e)
		}
	}
	return out
}

func (s *state) knows(id string) bool {
	for _, e := range s.evidence {
		if e.ID == id {
			return true
		}
	}
	return false
}

// hashOf is SHA-256 in hex over the parts, each preceded by its length.
func hashOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// failureOf turns a schema error into the failure that the real host gives.
func failureOf(err error) *sdk.Failure {
	if err == nil {
		return nil
	}
	f := sdk.Fail("invalid_input", "The input does not fit its schema: %v", err)
	if v, ok := errors.AsType[*schemas.ValidationError](err); ok {
		for _, issue := range v.Issues {
			f.Fields = append(f.Fields, sdk.FieldError{Pointer: issue.Pointer, Message: issue.Message})
		}
	}
	return f
}
