package connector

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// ReadRequest is a read through an endpoint of a manifest.
type ReadRequest struct {
	WorkspaceID string
	// Provider whose connection signs; empty for plugins that are no connectors.
	Provider string
	// Connection names one of several connections of the provider.
	Connection string
	Endpoint   schemas.Endpoint
	PathParams map[string]string
	Query      []effect.Pair
	Headers    []effect.Pair
	Body       []byte
	// URL is only for endpoints whose host is $web.
	URL string
}

// Read does a read on behalf of a plugin: it holds the request against the endpoint,
// signs it with the workspace's connection and sends it through egress. Whatever the
// endpoint does not allow is refused with code read_refused.
func (s *Service) Read(ctx context.Context, r ReadRequest) (*egress.Reply, error) {
	ep := r.Endpoint
	if ep.Class != schemas.ClassRead {
		return nil, refuse("endpoint %s is of class %s", ep.ID, ep.Class)
	}
	req := egress.Request{Class: egress.Read, Method: "GET", Body: r.Body}
	if ep.Method != nil {
		req.Method = string(*ep.Method)
	}
	if ep.MaxResponseBytes != nil {
		req.MaxBytes = int64(*ep.MaxResponseBytes)
	}
	if ep.TimeoutSeconds != nil {
		req.Timeout = time.Duration(*ep.TimeoutSeconds) * time.Second
	}
	for _, h := range r.Headers {
		free := strings.EqualFold(h.Name, "Accept") || strings.EqualFold(h.Name, "Accept-Language") || strings.EqualFold(h.Name, "Content-Type")
		if !free && !slices.ContainsFunc(ep.Headers, func(n string) bool { return strings.EqualFold(n, h.Name) }) {
			return nil, refuse("header %q is not in the manifest", h.Name)
		}
		req.Headers = append(req.Headers, h)
	}
	if ep.Host == schemas.HostWeb {
		if req.Method != "GET" || len(r.Body) > 0 || len(ep.Signers) > 0 || len(r.Query) > 0 {
			return nil, refuse("the open web is read by GET, without body, query and credential")
		}
		req.Class, req.URL = egress.Web, r.URL
		return s.Egress.Fetch(ctx, req)
	}
	if r.URL != "" {
		return nil, refuse("endpoint %s has a fixed host; an address is not taken", ep.ID)
	}
	if err := checkBody(ep, req.Method, r.Body); err != nil {
		return nil, err
	}
	req.ReadPost = ep.ReadPost != nil && *ep.ReadPost
	if err := s.sign(ctx, r, &req); err != nil {
		return nil, err
	}
	return s.Egress.Fetch(ctx, req)
}

// sign finds the connection, fills in the address and adds the credential.
func (s *Service) sign(ctx context.Context, r ReadRequest, req *egress.Request) error {
	ep := r.Endpoint
	base := "https://" + ep.Host
	if ep.Host == schemas.HostConnection || len(ep.Signers) > 0 {
		conn, err := s.Bind(ctx, r.WorkspaceID, r.Provider, r.Connection)
		if err != nil {
			return err
		}
		if ep.Host == schemas.HostConnection {
			base = strings.TrimSuffix(conn.BaseURL, "/")
		}
		for _, signer := range ep.Signers {
			req.Signers = append(req.Signers, string(signer))
		}
		if len(ep.Signers) > 0 {
			if req.Credential, err = s.Credential(ctx, r.WorkspaceID, conn.ID); err != nil {
				return err
			}
		}
	} else if !exactHost.MatchString(ep.Host) {
		return refuse("%q is not an exact host name", ep.Host)
	}
	address, err := fill(base, ep, r.PathParams, r.Query)
	req.URL = address
	return err
}

func refuse(format string, args ...any) error {
	return core.Errf(core.KindForbidden, "read_refused", "The read was refused: "+format+".", args...)
}

// checkBody holds a body against the schema that the owner agreed to at install.
func checkBody(ep schemas.Endpoint, method string, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if method != "POST" || len(ep.BodySchema) == 0 {
		return refuse("endpoint %s takes no body", ep.ID)
	}
	schema, err := schemas.Compile(ep.ID+".body", schemas.Document(ep.BodySchema).MustJSON())
	if err != nil {
		return refuse("the body schema of %s does not compile", ep.ID)
	}
	if err := schema.Validate(body); err != nil {
		return refuse("the body does not fit the manifest: %v", err)
	}
	return nil
}

var (
	exactHost   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.[a-z][a-z0-9-]*$`)
	placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_]*)\}`)
	segmentID   = regexp.MustCompile(`^[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]{0,199}$`)
	segmentSlug = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
)

// fill puts typed segments into the path template and declared keys into the query.
func fill(base string, ep schemas.Endpoint, params map[string]string, query []effect.Pair) (string, error) {
	template := ""
	if ep.Path != nil && *ep.Path != schemas.HostConnection {
		template = *ep.Path
	}
	if template != "" && !strings.HasPrefix(template, "/") {
		return "", refuse("the path of %s does not begin with a slash", ep.ID)
	}
	used := map[string]bool{}
	var failed error
	path := placeholder.ReplaceAllStringFunc(template, func(place string) string {
		name := place[1 : len(place)-1]
		value, given := params[name]
		used[name] = true
		if !given || !fits(string(ep.PathParams[name]), value) {
			failed = refuse("path parameter %s is missing or not of its type", name)
		}
		return url.PathEscape(value)
	})
	if failed != nil {
		return "", failed
	}
	for name := range params {
		if !used[name] {
			return "", refuse("path parameter %s is not in the template", name)
		}
	}
	values := url.Values{}
	for _, q := range query {
		if !slices.Contains(ep.Query, q.Name) {
			return "", refuse("query key %q is not in the manifest", q.Name)
		}
		values.Add(q.Name, q.Value)
	}
	address := base + path
	if len(values) > 0 {
		address += "?" + values.Encode()
	}
	return address, nil
}

// fits checks a segment's type; "encoded" may hold slashes, which are escaped.
func fits(kind, value string) bool {
	switch kind {
	case "int":
		_, err := strconv.ParseUint(value, 10, 63)
		return err == nil
	case "slug":
		return segmentSlug.MatchString(value)
	case "encoded":
		return value != "" && value != "." && value != ".." && len(value) <= 2000
	case "id", "":
		return segmentID.MatchString(value)
	}
	return false
}
