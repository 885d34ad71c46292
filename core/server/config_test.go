package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	file := write(t, "c.yaml", "addr: 127.0.0.1:1\nlogLevel: warn\nbaseUrl: http://file.example\nexecution: {undoWindow: 5s}\n")
	cfg, shown, err := LoadConfig(map[string]string{"addr": "127.0.0.1:3"}, env("SALLYPORT_ADDR", "127.0.0.1:2", "SALLYPORT_BASE_URL", "http://env.example/", "SALLYPORT_EGRESS_ALLOW_PRIVATE", "localhost:25, 127.0.0.1:9"), file)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Addr != "127.0.0.1:3" || cfg.BaseURL != "http://env.example" || cfg.LogLevel.String() != "WARN" || cfg.UndoWindow != 5*time.Second || cfg.ActionTTL != 72*time.Hour || len(cfg.AllowPrivate) != 2 {
		t.Errorf("got %+v", cfg)
	}
	want := map[string]string{"addr": "flag", "baseUrl": "environment SALLYPORT_BASE_URL", "logLevel": "file " + file, "data": "default"}
	for _, s := range shown {
		if origin, ok := want[s.Key]; ok && s.Origin != origin {
			t.Errorf("%s comes from %s, want %s", s.Key, s.Origin, origin)
		}
	}
}

func TestBadConfigurationNamesKeyAndCure(t *testing.T) {
	for text, want := range map[string]string{
		"adr: x":                         "did you mean addr",
		"baseUrl: http://127.0.0.1:8080": "localhost",
		"baseUrl: ftp://x":               "http(s)",
		"addr: nonsense":                 "host:port",
		"execution: {undoWindow: soon}":  "execution.undoWindow",
		"egress: {allowPrivate: [x]}":    "host:port",
		"logLevel: loud":                 "logLevel",
	} {
		if _, _, err := LoadConfig(nil, env(), write(t, "c.yaml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to mention %q", text, err, want)
		}
	}
}

func TestSecretsAreMaskedWhenShown(t *testing.T) {
	secret := write(t, "url", "postgres://u:hunter2@db.example/x\n")
	cfg, shown, err := LoadConfig(nil, env("SALLYPORT_DATABASE_URL_FILE", secret), write(t, "c.yaml", "oauth: {google_ads: {clientId: a, clientSecret: hunter3}}"))
	if err != nil || cfg.DatabaseURL != "postgres://u:hunter2@db.example/x" || cfg.OAuth["google_ads"].Secret != "hunter3" {
		t.Fatal(cfg, err)
	}
	for _, s := range shown {
		if v, ok := s.Value.(string); ok && strings.Contains(v, "hunter") {
			t.Errorf("%s shows %s", s.Key, v)
		}
	}
}
