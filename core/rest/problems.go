package rest

import (
	"html/template"
	"maps"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
)

// explanation says what a code means and what to do about it.
type explanation struct {
	Means, Cure string
}

// explanations are the pages at /problems/{code}. Codes that are not here have what
// their detail says; these need more words.
var explanations = map[string]explanation{
	"account_closed":         {"The person was disabled or left the workspace.", "Ask an owner of the workspace."},
	"action_expired":         {"Nobody decided in time, so the proposal lapsed.", "POST /api/actions/{id}/retry makes a new one, which needs its own approval."},
	"already_initialised":    {"The installation has its first owner.", "Sign in, or add people with POST /api/users."},
	"already_sending":        {"The bytes are on their way; nothing can call them back.", "Read the action to learn how it ended."},
	"approval_required":      {"Only a person decides. A key of kind agent never does, whatever its scopes.", "Give reviewUrl to the person and wait; the run's events tell when they decided."},
	"bad_cursor":             {"The cursor is not one that this list gave out.", "Begin again without a cursor."},
	"body_too_large":         {"The body exceeds the limit of the operation: 1 MiB, for data sets 20 MiB.", "Send less, or several data sets."},
	"digest_mismatch":        {"The digest named is not the one in force: what was reviewed has changed.", "Read it again, review the change, and name currentDigest."},
	"duplicate_key":          {"A JSON object has the same key twice, which readers understand differently.", "Send each key once."},
	"expired":                {"The deadline passed before anybody decided.", "POST /api/actions/{id}/retry makes a new proposal."},
	"host_not_allowed":       {"The request names a host that this installation is not known by.", "Use the base URL, or add the name to allowedHosts."},
	"idempotency_key_reused": {"The key stands for another request of the last 24 hours.", "Choose a new key for each thing to be done."},
	"internal":               {"Something failed on our side.", "Try again. The server's log names the request by its requestId."},
	"invalid_body":           {"The body does not fit the schema of the operation; errors point at each field. Unknown fields are refused.", "Compare with /openapi.json."},
	"invalid_key":            {"The key is mistyped, revoked, expired or unknown.", "Make a new one: sallyport key create --name NAME --kind agent."},
	"invalid_parameter":      {"A parameter of the address or a header does not fit, or is unknown.", "Compare with /openapi.json."},
	"invalid_token":          {"The access token was not made here, for here, or was changed.", "Make a new one: sallyport token create --email YOU."},
	"malformed_json":         {"The body is not one JSON value.", "Check quotes and commas near the byte named."},
	"missing_scope":          {"The credential is good, but may not do this.", "Use one with the scope named, or ask an owner."},
	"no_such_address":        {"Nothing is served there.", "/openapi.json lists what is."},
	"not_found":              {"It does not exist, or belongs to another workspace; the two look the same.", "Check the identifier and the credential."},
	"not_seen":               {"A decision without a digest means what was last shown to you, and nothing was within 30 minutes.", "GET the run or its actions, then decide; or name expectedDigest."},
	"oauth_client_missing":   {"The installation has no OAuth client for the provider.", "Set oauth.PROVIDER.clientId and clientSecret; the connector's setup guidance has the steps."},
	"origin_not_allowed":     {"A page of another site tried to call.", "An owner can add its origin to allowedOrigins."},
	"plugin_unavailable":     {"The plugin that serves the tool is not running.", "Try again after Retry-After; GET /api/plugins shows why it stopped."},
	"rate_limited":           {"Too many requests in a minute.", "Wait as long as Retry-After says. To follow a run, use its events."},
	"self_approval":          {"Who proposed or last edited an action may not approve it while the workspace has another approver.", "Ask another approver."},
	"session_ended":          {"The session expired, or was ended elsewhere.", "Sign in again."},
	"setup_token_gone":       {"The set-up link was used or is older than 30 minutes.", "Restart sallyport serve for a new one, or run sallyport init."},
	"stale_review":           {"The pack changed after it was shown to you.", "Read it again, review the change, and decide then."},
	"still_running":          {"The first request with this Idempotency-Key has not ended.", "Ask again in a moment with the same key."},
	"token_expired":          {"Access tokens live for 15 minutes.", "Make a new one: sallyport token create --email YOU."},
	"too_many_sign_ins":      {"Too many wrong passwords for this account or from this address.", "Wait as long as Retry-After says. sallyport user reset sets a new password on the machine itself."},
	"unauthenticated":        {"No credential was sent.", "Send Authorization: Bearer TOKEN (sallyport token create --email YOU), or a key in X-Api-Key (sallyport key create)."},
	"unsupported_media_type": {"The body is not declared as something that the operation takes.", "Send Content-Type: application/json; for datasets text/csv does too."},
	"too_many_webhooks":      {"The workspace has as many webhooks as it may.", "DELETE /api/webhooks/{id} one that is not needed."},
	"weak_password":          {"The password is too easy to guess.", "Choose a phrase of at least ten characters."},
	"weak_proof":             {"The sign-in is older than five minutes, and what is decided leaves for good.", "Sign in again, or mint a new token, and repeat the request."},
	"wrong_password":         {"E-mail address or password is wrong.", "Try again; sallyport user reset sets a new one on the machine itself."},
	"wrong_state":            {"The state of the action or run does not allow this.", "Read it; its status says what is possible."},
}

// ProblemCodes lists the codes that have a page, sorted.
func ProblemCodes() []string { return slices.Sorted(maps.Keys(explanations)) }

var problemPage = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Problem: {{.Code}}</title></head>
<body><main><h1><code>{{.Code}}</code></h1><p>{{.Means}}</p><h2>What to do</h2><p>{{.Cure}}</p><p><a href="{{.Base}}/openapi.json">Description of the interface</a></p></main></body></html>
`))

func (s *server) getProblem(w http.ResponseWriter, r *http.Request) error {
	code := chi.URLParam(r, "code")
	e, ok := explanations[code]
	if !ok {
		if !isCode(code) {
			return core.Errf(core.KindNotFound, "not_found", "There is no such problem.")
		}
		e = explanation{"The detail of the problem says what failed and why.", "The detail and nextAction of the problem say what to do next."}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	return problemPage.Execute(w, struct {
		explanation
		Code, Base string
	}{e, code, s.BaseURL})
}

// isCode reports whether text has the form of a code.
func isCode(text string) bool {
	for _, c := range text {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= 60
}
