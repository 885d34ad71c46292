package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Config is the configuration of a host, complete and checked.
type Config struct {
	Addr, Data, DatabaseURL, BaseURL, Plugins string
	LogLevel                                  slog.Level
	LogFormat                                 string
	AllowedOrigins, AllowedHosts              []string
	// AllowUnjailed names third-party plugins that may run although nothing confines them.
	AllowUnjailed []string
	// UndoWindow lies between an approval and the send; 0 is allowed.
	UndoWindow, Lease, ActionTTL time.Duration
	// AllowPrivate lists host:port pairs in private ranges that may be reached.
	AllowPrivate []string
	Checkpoint   time.Duration
	OAuth        map[string]OAuthClient
	CallTimeout  time.Duration
	Concurrency  int
}

// OAuthClient is the client of this installation at a provider.
type OAuthClient struct{ ID, Secret string }

// Setting is one value with its origin, as `sallyport config show` prints it.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // flag, environment, file PATH or default
}

type option struct {
	key    string
	value  any // default
	secret bool
	list   bool
	number bool
}

// options are the settings that flags and environment may name; the environment's name
// is SALLYPORT_ and the key in upper case with underscores.
var options = []option{
	{key: "addr", value: "127.0.0.1:8080"},
	{key: "data", value: "./var"},
	{key: "databaseUrl", value: "", secret: true},
	{key: "baseUrl", value: "http://localhost:8080"},
	{key: "plugins", value: ""},
	{key: "logLevel", value: "info"},
	{key: "logFormat", value: "text"},
	{key: "allowedOrigins", list: true},
	{key: "allowedHosts", list: true},
	{key: "allowUnjailed", list: true},
	{key: "execution.undoWindow", value: "30s"},
	{key: "execution.leaseSeconds", value: 180, number: true},
	{key: "execution.actionTtl", value: "72h"},
	{key: "egress.allowPrivate", list: true},
	{key: "audit.checkpointSeconds", value: 60, number: true},
	{key: "limits.callSeconds", value: 120, number: true},
	{key: "limits.concurrentCallsPerPlugin", value: 16, number: true},
}

// EnvName is the environment variable of a configuration key.
func EnvName(key string) string {
	var b strings.Builder
	b.WriteString("SALLYPORT_")
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteByte('_')
		case r >= 'A' && r <= 'Z':
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteString(strings.ToUpper(string(r)))
		}
	}
	return b.String()
}

// LoadConfig reads the configuration: flags win over the environment, that over the
// file, that over defaults. path names the file; when empty, ./sallyport.yaml is read
// if it is there. Unknown keys are an error that names the nearest known one.
func LoadConfig(flags map[string]string, getenv func(string) string, path string) (Config, []Setting, error) {
	k := koanf.New(".")
	origin := map[string]string{}
	for _, o := range options {
		if o.value != nil {
			if err := k.Set(o.key, o.value); err != nil {
				return Config{}, nil, err
			}
		}
		origin[o.key] = "default"
	}
	if err := loadFile(k, path, origin); err != nil {
		return Config{}, nil, err
	}
	for _, o := range options {
		value, from, err := fromEnv(o, getenv)
		if err != nil {
			return Config{}, nil, err
		}
		if v, ok := flags[o.key]; ok {
			value, from = v, "flag"
		}
		if from == "" {
			continue
		}
		if err := set(k, o, value); err != nil {
			return Config{}, nil, fmt.Errorf("%s from %s: %w", o.key, from, err)
		}
		origin[o.key] = from
	}
	cfg, err := build(k)
	return cfg, settings(k, origin), err
}

func fromEnv(o option, getenv func(string) string) (value, from string, err error) {
	name := EnvName(o.key)
	if v := getenv(name); v != "" {
		return v, "environment " + name, nil
	}
	if file := getenv(name + "_FILE"); file != "" && o.secret {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", "", fmt.Errorf("%s_FILE: %w", name, err)
		}
		return strings.TrimSpace(string(b)), "file " + file, nil
	}
	return "", "", nil
}

func set(k *koanf.Koanf, o option, value string) error {
	switch {
	case o.list:
		var items []string
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		return k.Set(o.key, items)
	case o.number:
		var n int
		if _, err := fmt.Sscanf(value, "%d", &n); err != nil {
			return fmt.Errorf("%q is no whole number", value)
		}
		return k.Set(o.key, n)
	}
	return k.Set(o.key, value)
}

func loadFile(k *koanf.Koanf, path string, origin map[string]string) error {
	if path == "" {
		if _, err := os.Stat("sallyport.yaml"); err != nil {
			return nil
		}
		path = "sallyport.yaml"
	}
	from := koanf.New(".")
	if err := from.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	raw, err := json.Marshal(from.Raw())
	if err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	schema, err := schemas.Meta("config")
	if err != nil {
		return err
	}
	if err := schema.Validate(raw); err != nil {
		ve, ok := errors.AsType[*schemas.ValidationError](err)
		if !ok {
			return err
		}
		lines := make([]string, len(ve.Issues))
		for i, issue := range ve.Issues {
			lines[i] = strings.ReplaceAll(strings.TrimPrefix(issue.Pointer, "/"), "/", ".") + " " + issue.Message
			if near := nearest(issue.Pointer); near != "" && strings.Contains(issue.Message, "not a known") {
				lines[i] += " (did you mean " + near + "?)"
			}
		}
		return fmt.Errorf("configuration file %s: %s", path, strings.Join(lines, "; "))
	}
	for _, key := range from.Keys() {
		origin[key] = "file " + path
	}
	return k.Merge(from)
}

// nearest finds the known key that differs least from what a pointer names.
func nearest(pointer string) string {
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", "."))
	best, distance := "", 4
	for _, o := range options {
		if d := levenshtein(name, strings.ToLower(o.key)); d < distance {
			best, distance = o.key, d
		}
	}
	return best
}

func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func build(k *koanf.Koanf) (Config, error) {
	c := Config{
		Addr: k.String("addr"), Data: k.String("data"), DatabaseURL: k.String("databaseUrl"),
		BaseURL: strings.TrimRight(k.String("baseUrl"), "/"), Plugins: k.String("plugins"), LogFormat: k.String("logFormat"),
		AllowedOrigins: k.Strings("allowedOrigins"), AllowedHosts: k.Strings("allowedHosts"), AllowPrivate: k.Strings("egress.allowPrivate"), AllowUnjailed: k.Strings("allowUnjailed"),
		UndoWindow: k.Duration("execution.undoWindow"), ActionTTL: k.Duration("execution.actionTtl"),
		Lease: time.Duration(k.Int("execution.leaseSeconds")) * time.Second, Checkpoint: time.Duration(k.Int("audit.checkpointSeconds")) * time.Second,
		CallTimeout: time.Duration(k.Int("limits.callSeconds")) * time.Second,
		Concurrency: k.Int("limits.concurrentCallsPerPlugin"), OAuth: map[string]OAuthClient{},
	}
	if c.Plugins == "" {
		c.Plugins = filepath.Join(c.Data, "plugins")
	}
	if err := c.LogLevel.UnmarshalText([]byte(k.String("logLevel"))); err != nil {
		return c, fmt.Errorf("logLevel: %q is none of debug, info, warn, error", k.String("logLevel"))
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		return c, fmt.Errorf("logFormat: %q is neither text nor json", c.LogFormat)
	}
	if err := checkBaseURL(c.BaseURL); err != nil {
		return c, err
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return c, fmt.Errorf("addr: %q is no host:port", c.Addr)
	}
	for _, key := range []string{"execution.undoWindow", "execution.actionTtl"} {
		if d, err := time.ParseDuration(k.String(key)); err != nil || d < 0 {
			return c, fmt.Errorf("%s: %q is no duration such as 30s or 72h", key, k.String(key))
		}
	}
	if c.ActionTTL == 0 {
		c.ActionTTL = core.DefaultActionTTL
	}
	for _, pair := range c.AllowPrivate {
		if _, _, err := net.SplitHostPort(pair); err != nil {
			return c, fmt.Errorf("egress.allowPrivate: %q is no host:port", pair)
		}
	}
	return c, oauthClients(k, c.OAuth)
}

// checkBaseURL refuses addresses that passkeys and links cannot live with.
func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("baseUrl: %q must be http(s)://name[:port] and nothing more", base)
	}
	if net.ParseIP(u.Hostname()) != nil {
		return fmt.Errorf("baseUrl: %q needs a name instead of an address, as passkeys refuse addresses; use http://localhost:PORT on this machine", base)
	}
	return nil
}

func oauthClients(k *koanf.Koanf, into map[string]OAuthClient) error {
	for _, provider := range k.MapKeys("oauth") {
		client := OAuthClient{ID: k.String("oauth." + provider + ".clientId"), Secret: k.String("oauth." + provider + ".clientSecret")}
		if path := k.String("oauth." + provider + ".clientSecretFile"); path != "" {
			b, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("oauth.%s.clientSecretFile: %w", provider, err)
			}
			client.Secret = strings.TrimSpace(string(b))
		}
		into[provider] = client
	}
	return nil
}

func settings(k *koanf.Koanf, origin map[string]string) []Setting {
	var out []Setting
	for _, key := range k.Keys() {
		value := k.Get(key)
		lower := strings.ToLower(key)
		if text, ok := value.(string); ok && text != "" && (strings.HasSuffix(lower, "secret") || lower == "databaseurl") {
			value = mask(text)
		}
		out = append(out, Setting{Key: key, Value: value, Origin: origin[key]})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

// mask hides a secret; of an address it hides only the password.
func mask(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Redacted()
	}
	return "********"
}

// StoreURL is the database as store.Open wants it.
func (c Config) StoreURL() string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return "sqlite:" + filepath.Join(c.Data, "sallyport.db")
}
