// Package effect holds the sealed effect: the exact bytes a write tool asks core to
// send, what must still be true, what success looks like and how to look the result
// up. Core, the test kit and authors share this one definition.
package effect

import "time"

// FormatVersion is the version of the digest encoding.
const FormatVersion = 1

// MaxSteps is the largest number of requests in one sealed effect.
const MaxSteps = 8

// Sealed is what a write tool compiles from its input and the action id. A sealed
// effect without steps is manual: a person does it and reports the proof URL.
type Sealed struct {
	// Kind of action, for example email.send, webhook.post or manual.task.
	Kind string `json:"kind"`
	// Explanation is the plugin's own words; reviewers see them marked as unverified.
	Explanation string `json:"explanation,omitempty"`
	Target      Target `json:"target"`
	// Connection names the connection that is used: the provider's only one when
	// empty, a named URL where the connector takes several.
	Connection    string         `json:"connection,omitempty"`
	Steps         []Step         `json:"steps,omitempty"`
	Manual        *Manual        `json:"manual,omitempty"`
	Preconditions []Precondition `json:"preconditions,omitempty"`
	Lookup        *Lookup        `json:"lookup,omitempty"`
	Money         *Money         `json:"money,omitempty"`
	NotBefore     *time.Time     `json:"notBefore,omitempty"`
	// Reach is the number of people or audiences touched directly.
	Reach int `json:"reach,omitempty"`
}

// Target says where the effect lands, in words an approver knows.
type Target struct {
	AccountID string `json:"accountId"`
	Label     string `json:"label"`
}

// Money is the most the effect may cost, in millionths of the currency unit.
type Money struct {
	Micros   int64  `json:"micros"`
	Currency string `json:"currency"` // ISO 4217
}

// Step is one request. Exactly one of HTTP and Mail is set, as the transport of the
// endpoint says.
type Step struct {
	// Endpoint is the id of a write endpoint of the plugin's own manifest.
	Endpoint string    `json:"endpoint"`
	HTTP     *HTTPStep `json:"http,omitempty"`
	Mail     *MailStep `json:"mail,omitempty"`
	// Success is what must hold beyond the status code.
	Success  Success   `json:"success"`
	Captures []Capture `json:"captures,omitempty"`
	Result   Result    `json:"result"`
}

// HTTPStep is an HTTP request. Method, host and path template come from the endpoint.
type HTTPStep struct {
	PathParams map[string]string `json:"pathParams,omitempty"`
	Query      []Pair            `json:"query,omitempty"`
	Headers    []Pair            `json:"headers,omitempty"`
	Body       []byte            `json:"body,omitempty"`
	// IdempotencyHeader is set by core to the action id, if named.
	IdempotencyHeader string `json:"idempotencyHeader,omitempty"`
}

// MailStep is one SMTP envelope with its message. Core adds the Date line when it
// sends; everything else goes out as sealed.
type MailStep struct {
	From    string   `json:"from"`
	To      []string `json:"to"`
	Message []byte   `json:"message"` // MIME, CRLF line ends, without Date
}

// Pair is a name and a value; order is kept.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Success is the predicate on a reply.
type Success struct {
	Statuses []int  `json:"statuses,omitempty"` // any 2xx when empty
	Pointer  string `json:"pointer,omitempty"`  // JSON pointer into the reply
	Value    string `json:"value,omitempty"`    // what must stand there, as text
}

// Capture takes a value from the reply of a step for use in later steps, where
// {{capture:NAME}} stands. The approver sees it as a blank with its pattern.
type Capture struct {
	Name      string `json:"name"`
	Pointer   string `json:"pointer,omitempty"`
	Header    string `json:"header,omitempty"`
	Pattern   string `json:"pattern"`
	MaxLength int    `json:"maxLength"`
}

// Result says where a reply holds the external id and address.
type Result struct {
	IDPointer  string `json:"idPointer,omitempty"`
	URLPointer string `json:"urlPointer,omitempty"`
	IDHeader   string `json:"idHeader,omitempty"`
}

// Precondition is a declared read whose answer must still be what the proposal rests on.
type Precondition struct {
	Endpoint string            `json:"endpoint"`
	Params   map[string]string `json:"params,omitempty"`
	Pointer  string            `json:"pointer"`
	Expected string            `json:"expected"`
}

// Lookup finds the result of a send whose reply was lost, by a marker in the sealed bytes.
type Lookup struct {
	Endpoint string            `json:"endpoint"`
	Params   map[string]string `json:"params,omitempty"`
	Pointer  string            `json:"pointer"` // where the list of candidates stands
	Marker   string            `json:"marker"`  // text that only our own object carries
}

// Manual is what a person does by hand.
type Manual struct {
	Title     string   `json:"title"`
	Text      string   `json:"text"`
	Fields    []Pair   `json:"fields,omitempty"` // further texts to paste, by the name of the place
	Checklist []string `json:"checklist,omitempty"`
	OpenURL   string   `json:"openUrl,omitempty"` // where it is done
}
