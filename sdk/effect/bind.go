package effect

import "time"

// Endpoint is a door of a manifest, as far as sealing and sending need it.
type Endpoint struct {
	ID        string `json:"id"`
	Class     string `json:"class"`     // read or write
	Transport string `json:"transport"` // http or smtp
	// Host is an exact host name, or $connection: the host the owner typed when connecting.
	Host   string `json:"host"`
	Method string `json:"method,omitempty"`
	// Path is a template such as /v1/posts/{id}, or $connection: the path of the connected URL.
	Path string `json:"path,omitempty"`
	// PathParams gives the type of each segment: id, slug, int or encoded.
	PathParams map[string]string `json:"pathParams,omitempty"`
	// Query and Headers are the names a step may set.
	Query   []string `json:"query,omitempty"`
	Headers []string `json:"headers,omitempty"`
	// Signers are the named signers of core that add what depends on time or a secret.
	Signers []string `json:"signers,omitempty"`
	// Definite are the statuses that certainly mean that nothing happened.
	Definite         []int `json:"definite,omitempty"`
	TimeoutSeconds   int   `json:"timeoutSeconds,omitempty"`
	MaxResponseBytes int   `json:"maxResponseBytes,omitempty"`
}

// Connection is the account an effect is bound to and where it is reached. It holds
// no secret.
type Connection struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// Name tells several connections of one provider apart.
	Name string `json:"name,omitempty"`
	// AccountID is the account as the provider names it, Account is what people call it.
	AccountID string `json:"accountId"`
	Account   string `json:"account"`
	// BaseURL is what the owner connected: an http or https URL, or host:port of a mail server.
	BaseURL string `json:"baseUrl"`
	// TLS of a mail server: empty for STARTTLS, implicit, or none.
	TLS string `json:"tls,omitempty"`
	// Binding changes whenever the account or the address of the connection changes.
	Binding string `json:"binding"`
}

// AssetRef points at one revision of a draft the effect rests on.
type AssetRef struct {
	ID       string `json:"id"`
	Revision int    `json:"revision"`
	Digest   string `json:"digest"`
}

// Binding is everything besides the sealed effect that an approval is a yes to.
type Binding struct {
	InstallationID string `json:"installationId"`
	WorkspaceID    string `json:"workspaceId"`
	RunID          string `json:"runId"`
	ActionID       string `json:"actionId"`
	Revision       int    `json:"revision"`
	Tool           string `json:"tool"`
	Plugin         string `json:"plugin"`
	Connector      string `json:"connector"`
	Channel        string `json:"channel"`
	PluginDigest   string `json:"pluginDigest"`   // of the binary that compiled it
	ManifestDigest string `json:"manifestDigest"` // of what the plugin declares
	ToolDigest     string `json:"toolDigest"`     // of the tool's document
	// InputSHA256 is the hash of the input that was compiled, as stored.
	InputSHA256 string     `json:"inputSha256"`
	Connection  Connection `json:"connection"`
	// Endpoints are those the steps, preconditions and the look-up name, with what the
	// manifest says about them.
	Endpoints     []Endpoint `json:"endpoints"`
	AssetRefs     []AssetRef `json:"assetRefs"`
	EvidenceIDs   []string   `json:"evidenceIds"`
	DependsOn     []string   `json:"dependsOn"`
	Supersedes    string     `json:"supersedes,omitempty"`
	Reversibility string     `json:"reversibility"`
	Proof         string     `json:"proof"`
	Needed        int        `json:"needed"`
	// IdempotencyKey is what the provider is told; the action id, or that of the action
	// whose bytes this one sends again.
	IdempotencyKey string `json:"idempotencyKey"`
	// NotAfter is when an approval ends.
	NotAfter time.Time `json:"notAfter"`
}
