package source

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// Bounds on what is taken from one context; the rest is counted in Repo.LeftOut.
const (
	maxCommits      = 50
	maxFiles        = 200
	maxRoutes       = 300
	maxRouteItems   = 40
	maxReadmeBlocks = 80
)

// Repo is what the collector, or a caller by hand, says of a repository. Every field may be missing, and commits, files,
// routes and the readme may be given as plain text.
type Repo struct {
	Schema  string  `json:"schema"`
	Project Project `json:"project"`

	WhatChanged    string    `json:"whatChanged"`
	Commits        []Commit  `json:"recentCommits"`
	Files          []File    `json:"changedFiles"`
	Routes         []Route   `json:"routes"`
	Readme         Readme    `json:"readme"`
	Changelog      Flexible  `json:"changelog"`
	Deploy         Deploy    `json:"deploy"`
	Analytics      Labels    `json:"analytics"`
	Payments       Labels    `json:"payments"`
	Auth           Labels    `json:"auth"`
	TargetCustomer string    `json:"targetCustomer"`
	LaunchGoal     string    `json:"launchGoal"`
	Redactions     Redaction `json:"redactions"`
	Warnings       Labels    `json:"warnings"`
}

// Project is what the manifest of the repository says.
type Project struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Languages   Labels `json:"languages"`
	Frameworks  Labels `json:"frameworks"`
}

// Commit is a commit by its subject.
type Commit struct {
	SHA         string `json:"sha"`
	Date        string `json:"date"`
	Subject     string `json:"subject"`
	Type        string `json:"type"`
	Scope       string `json:"scope"`
	UserVisible *bool  `json:"userVisible"`
}

// File is a changed file.
type File struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// Route is an address of the program.
type Route struct {
	Path    string   `json:"path"`
	Methods []string `json:"methods"`
	Kind    string   `json:"kind"`
	File    string   `json:"file"`
}

// Readme is the README, or the part of it that was collected.
type Readme struct {
	Path     string `json:"path"`
	Headline string `json:"headline"`
	Excerpt  string `json:"excerpt"`
}

// Deploy says where the program runs.
type Deploy struct {
	Targets Labels `json:"targets"`
	URLs    Labels `json:"urls"`
}

// Flexible is a text that may come as a string or as an object with an excerpt or text.
type Flexible string

// Labels is a list of names, given as strings or as objects with a name, id, provider or path.
type Labels []string

// Redaction counts the secrets that the collector removed.
type Redaction int

// UnmarshalJSON takes a subject alone or an object.
func (c *Commit) UnmarshalJSON(raw []byte) error {
	type plain Commit
	return stringOr(raw, &c.Subject, (*plain)(c))
}

// UnmarshalJSON takes a path alone or an object.
func (f *File) UnmarshalJSON(raw []byte) error {
	type plain File
	return stringOr(raw, &f.Path, (*plain)(f))
}

// UnmarshalJSON takes a path alone, perhaps with its method before it, or an object.
func (r *Route) UnmarshalJSON(raw []byte) error {
	type plain Route
	if err := stringOr(raw, &r.Path, (*plain)(r)); err != nil {
		return err
	}
	if method, path, ok := strings.Cut(r.Path, " "); ok && strings.HasPrefix(path, "/") {
		r.Methods, r.Path = []string{method}, path
	}
	return nil
}

// UnmarshalJSON takes the text alone or an object.
func (r *Readme) UnmarshalJSON(raw []byte) error {
	type plain Readme
	return stringOr(raw, &r.Excerpt, (*plain)(r))
}

// UnmarshalJSON takes a string or an object that holds the text under excerpt, text or content.
func (f *Flexible) UnmarshalJSON(raw []byte) error {
	var object struct{ Excerpt, Text, Content string }
	var plain string
	if err := stringOr(raw, &plain, &object); err != nil {
		return nil //nolint:nilerr // an unknown shape holds nothing to quote
	}
	*f = Flexible(plain + object.Excerpt + object.Text + object.Content)
	return nil
}

// UnmarshalJSON takes strings and objects; an unknown shape gives an empty list.
func (l *Labels) UnmarshalJSON(raw []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, item := range list {
		var object struct{ Name, ID, Provider, Path, URL, Target string }
		var plain string
		if stringOr(item, &plain, &object) != nil {
			continue
		}
		for _, label := range []string{plain, object.Name, object.ID, object.Provider, object.Path, object.URL, object.Target} {
			if label != "" {
				*l = append(*l, text.OneLine(label, 200))
				break
			}
		}
	}
	return nil
}

// UnmarshalJSON sums the counts of a list of rules.
func (r *Redaction) UnmarshalJSON(raw []byte) error {
	var list []struct {
		Count int `json:"count"`
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, item := range list {
			*r += Redaction(max(1, item.Count))
		}
		return nil
	}
	var n int
	if json.Unmarshal(raw, &n) == nil {
		*r = Redaction(n)
	}
	return nil
}

func stringOr(raw []byte, plain *string, object any) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, plain)
	}
	return json.Unmarshal(raw, object)
}

var conventional = regexp.MustCompile(`^([a-z]+)(?:\(([^)]*)\))?!?:\s+(.+)$`)

// invisibleTypes are the commit types that a user does not notice.
var invisibleTypes = []string{"chore", "ci", "test", "tests", "build", "refactor", "style", "docs", "doc", "revert"}

var routineSubject = regexp.MustCompile(`(?i)^(?:merge\b|bump\b|release\b|wip\b|update (?:dependencies|deps|lockfile|go\.(?:mod|sum))|fix (?:typo|lint|tests?|ci|build)s?\b|typo|lint|format|rename\b|cleanup|clean up|initial commit|v?\d+\.\d+)`)

// Parts returns the type, the scope and the rest of a commit's subject.
func (c Commit) Parts() (kind, scope, subject string) {
	if m := conventional.FindStringSubmatch(c.Subject); m != nil {
		return m[1], m[2], m[3]
	}
	return c.Type, c.Scope, c.Subject
}

// Internal ends the locator of a commit that users of the program do not notice.
const Internal = "#internal"

// newsVerbs open the subject of a commit that gives users something. Without a type in front, any other subject is
// taken for work behind the scenes: an announcement of it would be noise.
var newsVerbs = regexp.MustCompile(`(?i)^(?:add|adds|added|allow|allows|introduce|introduces|support|supports|enable|let users|show|fix|fixes|fixed|speed up|make|import|export|offer|accept|draft|remember)\b`)

var behindTheScenes = regexp.MustCompile(`(?i)\b(?:tests?|test suite|lint(?:er|ing)?|ci|refactor\w*|fixtures?|coverage|benchmarks?|schemas?|makefile|dependenc(?:y|ies)|docs?|readme|comments?|typos?|harness|nouns|seam)\b`)

// Visible tells whether users of the program notice the commit. What the collector says against it is believed; what it
// says for it is not enough.
func (c Commit) Visible() bool {
	if c.UserVisible != nil && !*c.UserVisible {
		return false
	}
	kind, _, subject := c.Parts()
	if slices.Contains(invisibleTypes, kind) || routineSubject.MatchString(subject) {
		return false
	}
	return kind != "" || newsVerbs.MatchString(subject) && !behindTheScenes.MatchString(subject)
}

// Empty tells whether the context says nothing to write about.
func (r *Repo) Empty() bool {
	return r == nil || strings.TrimSpace(r.WhatChanged+r.Readme.Excerpt+r.Project.Description) == "" && len(r.Commits) == 0
}

// Evidence turns the context into evidence items. The caller stated all of it, so that none of it is more than
// owner_stated. Sentences that speak to a machine become items of their own, which no draft uses.
func (r *Repo) Evidence() []ground.Evidence {
	if r == nil {
		return nil
	}
	var c collector
	c.add(ground.UserStatement, "caller", "whatChanged", "What changed", r.WhatChanged)
	c.add(ground.UserStatement, "caller", "targetCustomer", "Target customer", r.TargetCustomer)
	c.add(ground.RepoManifest, "repository", "project.description", "", r.Project.Description)
	for i, commit := range r.Commits[:min(len(r.Commits), maxCommits)] {
		locator := commit.SHA
		if locator == "" {
			locator = fmt.Sprintf("recentCommits[%d]", i)
		}
		if !commit.Visible() {
			locator += Internal
		}
		c.addAt(ground.RepoCommit, "repository", locator, "", commit.Subject, commit.Date)
	}
	for _, route := range r.Routes[:min(len(r.Routes), maxRouteItems)] {
		c.add(ground.RepoRoute, "repository", route.Path, "", strings.TrimSpace(strings.Join(route.Methods, ", ")+" "+route.Path))
	}
	path := r.Readme.Path
	if path == "" {
		path = "README.md"
	}
	c.blocks(ground.RepoReadme, path, Markdown(r.Readme.Excerpt), maxReadmeBlocks)
	c.blocks(ground.RepoFile, "CHANGELOG.md", Markdown(string(r.Changelog)), 20)
	return c.items
}

type collector struct{ items []ground.Evidence }

func (c *collector) add(kind, source, locator, fact, quote string) {
	c.addAt(kind, source, locator, fact, quote, "")
}

func (c *collector) addAt(kind, source, locator, fact, quote, period string) {
	kept, setAside := text.WithoutInstructions(text.Clean(quote))
	if kept != "" && text.WordCount(kept) > 0 {
		c.items = append(c.items, ground.Evidence{Kind: kind, Source: source, Locator: locator, Fact: fact, Quote: kept, Period: period, Trust: ground.OwnerStated})
	}
	if setAside != "" {
		c.items = append(c.items, ground.Evidence{Kind: kind, Source: source, Locator: locator + "#set-aside", Quote: setAside, Trust: ground.OwnerStated})
	}
}

func (c *collector) blocks(kind, path string, blocks []Block, limit int) {
	for _, block := range blocks[:min(len(blocks), limit)] {
		heading := block.Heading
		if text.Instruction(heading) {
			heading = ""
		}
		c.add(kind, "repository", fmt.Sprintf("%s:%d", path, block.Line), heading, block.Text)
	}
}

// Find returns the path of the first route, in the order of words, whose last segment is one of words; "" when none is.
func (r *Repo) Find(words ...string) string {
	if r == nil {
		return ""
	}
	for _, word := range words {
		for _, route := range r.Routes[:min(len(r.Routes), maxRoutes)] {
			segments := strings.Split(strings.Trim(strings.ToLower(route.Path), "/"), "/")
			if last := segments[len(segments)-1]; last == word && !strings.ContainsAny(route.Path, ":{[*") && readable(route) {
				return route.Path
			}
		}
	}
	return ""
}

func readable(r Route) bool {
	return r.Kind != "cli" && (len(r.Methods) == 0 || slices.Contains(r.Methods, "GET") || slices.Contains(r.Methods, "get") || r.Kind == "page")
}
