package effect

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Resolved is a sealed effect with the final method, address, headers and body of each
// step: what core sends, but for what its signers add.
type Resolved struct {
	Steps         []ResolvedStep
	Preconditions []ResolvedRead
	Lookup        *ResolvedRead
	Connection    Connection
}

// ResolvedStep is one request. Exactly one of HTTP and Mail is set.
type ResolvedStep struct {
	Endpoint string
	HTTP     *ResolvedHTTP
	Mail     *ResolvedMail
	Signers  []string
	Definite []int
	Success  Success
	Captures []Capture
	Result   Result
	// TimeoutSeconds and MaxResponseBytes are 0 where the manifest says nothing.
	TimeoutSeconds   int
	MaxResponseBytes int
}

// ResolvedHTTP is an HTTP request. With SecretURL the address is only the origin: the
// signer secret_url puts the rest in.
type ResolvedHTTP struct {
	Method    string
	URL       string
	Headers   []Pair
	Body      []byte
	SecretURL bool
	// IdempotencyHeader is set to the idempotency key by the sender, if named.
	IdempotencyHeader string
}

// ResolvedMail is one SMTP envelope; the sender puts a Date line before Message.
type ResolvedMail struct {
	Server  string // host:port
	TLS     string // empty for STARTTLS, implicit or none
	From    string
	To      []string
	Message []byte
}

// ResolvedRead is a declared read: a precondition (Expected) or a look-up (Marker).
type ResolvedRead struct {
	Endpoint string
	Method   string
	URL      string
	Signers  []string
	Pointer  string
	Expected string
	Marker   string
}

// Resolve fills the endpoints' templates. It fails when the effect asks for anything
// the endpoints do not allow.
func Resolve(s Sealed, endpoints []Endpoint, conn Connection) (*Resolved, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	out := &Resolved{Connection: conn}
	for i, step := range s.Steps {
		ep, err := pick(endpoints, step.Endpoint, "write")
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		r, err := resolveStep(step, ep, conn)
		if err != nil {
			return nil, fmt.Errorf("step %d, endpoint %s: %w", i+1, ep.ID, err)
		}
		out.Steps = append(out.Steps, *r)
	}
	for i, p := range s.Preconditions {
		r, err := resolveRead(endpoints, p.Endpoint, p.Params, conn)
		if err != nil {
			return nil, fmt.Errorf("precondition %d: %w", i+1, err)
		}
		r.Pointer, r.Expected = p.Pointer, p.Expected
		out.Preconditions = append(out.Preconditions, *r)
	}
	if l := s.Lookup; l != nil {
		if l.Marker == "" {
			return nil, errors.New("look-up: marker is missing, so that nothing could tell our own object")
		}
		r, err := resolveRead(endpoints, l.Endpoint, l.Params, conn)
		if err != nil {
			return nil, fmt.Errorf("look-up: %w", err)
		}
		r.Pointer, r.Marker = l.Pointer, l.Marker
		out.Lookup = r
	}
	return out, nil
}

// Used returns the endpoints the effect names, in the order of the manifest.
func Used(s Sealed, endpoints []Endpoint) []Endpoint {
	named := map[string]bool{}
	for _, step := range s.Steps {
		named[step.Endpoint] = true
	}
	for _, p := range s.Preconditions {
		named[p.Endpoint] = true
	}
	if s.Lookup != nil {
		named[s.Lookup.Endpoint] = true
	}
	used := []Endpoint{}
	for _, ep := range endpoints {
		if named[ep.ID] {
			used = append(used, ep)
		}
	}
	return used
}

func pick(endpoints []Endpoint, id, class string) (*Endpoint, error) {
	i := slices.IndexFunc(endpoints, func(e Endpoint) bool { return e.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("endpoint %q is not in the manifest", id)
	}
	if endpoints[i].Class != class {
		return nil, fmt.Errorf("endpoint %q is of class %s, not %s", id, endpoints[i].Class, class)
	}
	return &endpoints[i], nil
}

func resolveStep(step Step, ep *Endpoint, conn Connection) (*ResolvedStep, error) {
	r := &ResolvedStep{Endpoint: ep.ID, Signers: ep.Signers, Definite: ep.Definite, Success: step.Success, Captures: step.Captures,
		Result: step.Result, TimeoutSeconds: ep.TimeoutSeconds, MaxResponseBytes: ep.MaxResponseBytes}
	if ep.Transport == "smtp" {
		if step.Mail == nil {
			return nil, errors.New("the endpoint takes mail")
		}
		server, err := mailServer(ep, conn)
		if err != nil {
			return nil, err
		}
		m := step.Mail
		r.Mail = &ResolvedMail{Server: server, TLS: conn.TLS, From: m.From, To: m.To, Message: m.Message}
		return r, nil
	}
	if step.HTTP == nil {
		return nil, errors.New("the endpoint takes HTTP")
	}
	h, err := resolveHTTP(step.HTTP, ep, conn)
	if err != nil {
		return nil, err
	}
	r.HTTP = h
	return r, nil
}

func mailServer(ep *Endpoint, conn Connection) (string, error) {
	if ep.Host != "$connection" {
		return "", errors.New("a mail endpoint must have the host $connection")
	}
	server := strings.TrimPrefix(strings.TrimPrefix(conn.BaseURL, "smtp://"), "smtps://")
	u, err := url.Parse("smtp://" + server)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return "", fmt.Errorf("the connection's server %q is not host:port", conn.BaseURL)
	}
	if conn.TLS != "" && conn.TLS != "implicit" && conn.TLS != "none" {
		return "", fmt.Errorf("the connection's tls %q is not known", conn.TLS)
	}
	return u.Host, nil
}

func resolveHTTP(h *HTTPStep, ep *Endpoint, conn Connection) (*ResolvedHTTP, error) {
	if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, ep.Method) {
		return nil, fmt.Errorf("method %q cannot be a write", ep.Method)
	}
	address, secret, err := resolveURL(ep, h.PathParams, h.Query, conn)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{strings.ToLower(h.IdempotencyHeader): true}
	for _, p := range h.Headers {
		if err := checkHeader(p, ep.Headers); err != nil {
			return nil, err
		}
		name := strings.ToLower(p.Name)
		if seen[name] { // only one of them would be sent
			return nil, fmt.Errorf("header %q stands twice", p.Name)
		}
		seen[name] = true
	}
	if h.IdempotencyHeader != "" {
		if err := checkHeader(Pair{Name: h.IdempotencyHeader, Value: "key"}, append([]string{"Idempotency-Key"}, ep.Headers...)); err != nil {
			return nil, err
		}
	}
	return &ResolvedHTTP{Method: ep.Method, URL: address, Headers: h.Headers, Body: h.Body, SecretURL: secret, IdempotencyHeader: h.IdempotencyHeader}, nil
}

func resolveRead(endpoints []Endpoint, id string, params map[string]string, conn Connection) (*ResolvedRead, error) {
	ep, err := pick(endpoints, id, "read")
	if err != nil {
		return nil, err
	}
	if ep.Method != "GET" && ep.Method != "HEAD" {
		return nil, fmt.Errorf("endpoint %q is read by %s; only GET and HEAD can be checked before a send", id, ep.Method)
	}
	path, query := map[string]string{}, []Pair{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if strings.Contains(ep.Path, "{"+name+"}") {
			path[name] = params[name]
		} else {
			query = append(query, Pair{Name: name, Value: params[name]})
		}
	}
	address, _, err := resolveURL(ep, path, query, conn)
	if err != nil {
		return nil, err
	}
	return &ResolvedRead{Endpoint: ep.ID, Method: ep.Method, URL: address, Signers: ep.Signers}, nil
}

var placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_]*)\}`)

// resolveURL builds the final address. Captures stay as their blanks, unescaped, so
// that Fill finds them.
func resolveURL(ep *Endpoint, params map[string]string, query []Pair, conn Connection) (address string, secret bool, err error) {
	origin, basePath, baseQuery, err := baseOf(ep, conn)
	if err != nil {
		return "", false, err
	}
	if slices.Contains(ep.Signers, "secret_url") {
		if len(params) > 0 || len(query) > 0 {
			return "", false, errors.New("a secret URL takes no path parameters and no query")
		}
		return origin + "/", true, nil
	}
	path := basePath
	if ep.Path != "$connection" {
		filled, err := fillPath(ep, params)
		if err != nil {
			return "", false, err
		}
		path, baseQuery = strings.TrimSuffix(basePath, "/")+filled, ""
	} else if len(params) > 0 {
		return "", false, errors.New("the path is the connection's own; it takes no parameters")
	}
	parts := []string{}
	if baseQuery != "" {
		parts = append(parts, baseQuery)
	}
	for _, q := range query {
		if !slices.Contains(ep.Query, q.Name) {
			return "", false, fmt.Errorf("query key %q is not in the manifest", q.Name)
		}
		parts = append(parts, url.QueryEscape(q.Name)+"="+keepBlanks(q.Value, url.QueryEscape))
	}
	address = origin + path
	if len(parts) > 0 {
		address += "?" + strings.Join(parts, "&")
	}
	return address, false, nil
}

func baseOf(ep *Endpoint, conn Connection) (origin, path, query string, err error) {
	if ep.Host != "$connection" {
		if !plainHost.MatchString(ep.Host) {
			return "", "", "", fmt.Errorf("%q is not an exact host name", ep.Host)
		}
		return "https://" + ep.Host, "", "", nil
	}
	u, err := url.Parse(conn.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return "", "", "", errors.New("the connection's address is not a plain http or https URL")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == ".." || segment == "." {
			return "", "", "", errors.New("the connection's address has a relative path")
		}
	}
	path = u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + u.Host, path, u.RawQuery, nil
}

var (
	plainHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.[a-z][a-z0-9-]*$`)
	typeID    = regexp.MustCompile(`^[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]{0,199}$`)
	typeSlug  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
)

func fillPath(ep *Endpoint, params map[string]string) (string, error) {
	if !strings.HasPrefix(ep.Path, "/") {
		return "", fmt.Errorf("path %q does not begin with a slash", ep.Path)
	}
	used := 0
	var failed error
	filled := placeholder.ReplaceAllStringFunc(ep.Path, func(place string) string {
		name := place[1 : len(place)-1]
		value, ok := params[name]
		if !ok {
			failed = fmt.Errorf("path parameter %q is missing", name)
			return place
		}
		used++
		if capturePlace.FindString(value) == value && value != "" {
			return value // its pattern was checked; Fill escapes what comes in
		}
		if err := checkSegment(ep.PathParams[name], value); err != nil {
			failed = fmt.Errorf("path parameter %q: %w", name, err)
		}
		return url.PathEscape(value)
	})
	if failed == nil && used < len(params) {
		failed = errors.New("a path parameter is not in the template")
	}
	return filled, failed
}

func checkSegment(kind, value string) error {
	ok := false
	switch kind {
	case "int":
		_, err := strconv.ParseUint(value, 10, 63)
		ok = err == nil
	case "slug":
		ok = typeSlug.MatchString(value)
	case "encoded":
		ok = value != "" && value != "." && value != ".." && len(value) <= 2000
	case "id", "":
		ok = typeID.MatchString(value)
	}
	if !ok {
		return fmt.Errorf("%q is not of type %s", value, kind)
	}
	return nil
}

// Headers that decide where a request goes, who sends it or how it is framed are never
// a plugin's to set.
var forbiddenHeader = regexp.MustCompile(`(?i)^(authorization|cookie|host|proxy-.*|x-http-method.*|x-method-override|x-original-.*|x-rewrite-.*|x-forwarded-.*|forwarded|upgrade|connection|expect|content-length|transfer-encoding|te|trailer|keep-alive|date|webhook-.*)$`)

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)

func checkHeader(p Pair, allowed []string) error {
	if !headerName.MatchString(p.Name) || forbiddenHeader.MatchString(p.Name) {
		return fmt.Errorf("header %q may not be set", p.Name)
	}
	free := strings.EqualFold(p.Name, "Content-Type") || strings.EqualFold(p.Name, "Accept")
	if !free && !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, p.Name) }) {
		return fmt.Errorf("header %q is not in the manifest", p.Name)
	}
	if strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
		return fmt.Errorf("header %q has a control character or is not ASCII", p.Name)
	}
	return nil
}
